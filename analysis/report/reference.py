"""Generated reference of the tables: the frames of a study, and the CSV files of its page.

Which columns a CSV file has is read from small example studies, which together have most topics;
the other topics are listed without columns.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from analysis import frames
from analysis.report.column_meanings import COLUMN_MEANINGS
from analysis.report.context import StudyContext
from analysis.report.example_studies import example_studies
from analysis.report.topics import TOPICS
from analysis.report.topics.experiment import EXPERIMENT_TOPICS

_FRAMES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "trials": (
        "A row per trial. Every other setting of the study follows as a column of its own.",
        frames.TRIAL_COLUMNS,
    ),
    "curves": (
        "A row per trial and step; NaN where a step was not evaluated.",
        frames.CURVE_COLUMNS,
    ),
    "scores": ("A row per trial and task.", frames.SCORE_COLUMNS),
    "probes": (
        "A row per trial, step and lag, in studies with `probe_every`.",
        frames.PROBE_COLUMNS,
    ),
    "looks": ("A row per look, in studies with `until`.", frames.LOOK_COLUMNS),
    "environment": (
        "A row per trial that recorded what it was computed with.",
        frames.ENVIRONMENT_COLUMNS,
    ),
}
_SETTING = "setting ([all settings](settings.md))"
_AS_EMA_DECAY = "the varied settings, then as `ema_decay.csv`"
_MOST = 14
"""Columns that are listed of a wide table; the rest is counted."""


def frames_markdown() -> str:
    """The frames of `mtdlab.load_study` with their columns."""
    parts = []
    for name, (text, columns) in _FRAMES.items():
        parts += [f"### `study.{name}`\n", f"{text}\n", _frame_table(columns), ""]
    return "\n".join(parts).rstrip("\n")


def files_markdown() -> str:
    """The CSV files that the topics of a page write, with their columns."""
    rows = ["| file in `tables/` | section of the page | columns |", "|---|---|---|"]
    for topic in TOPICS:
        for name in topic.csv:
            columns = _columns(name, topic in EXPERIMENT_TOPICS)
            rows.append(f"| `{name}.csv` | {topic.title} | {columns} |")
    return "\n".join(rows)


def columns_markdown() -> str:
    """What the columns of the CSV files mean, in the order of the alphabet."""
    used = {name for found in example_columns().values() for name in found}
    rows = [
        f"| `{name}` | {text} |" for name, text in sorted(COLUMN_MEANINGS.items()) if name in used
    ]
    return "\n".join(["| column | meaning |", "|---|---|", *rows])


def _frame_table(columns: Mapping[str, str]) -> str:
    rows = [
        f"| `{name}` | {kind} | {COLUMN_MEANINGS.get(name, _SETTING)} |"
        for name, kind in columns.items()
    ]
    return "\n".join(["| column | type | meaning |", "|---|---|---|", *rows])


def _columns(name: str, is_experiment: bool) -> str:
    """The columns of a CSV file in one line; numbered ones, singular values, as a range."""
    found = example_columns().get(name)
    if found is None:
        return (
            "the varied settings, then as `ema_decay.csv`"
            if is_experiment
            else "depend on the study"
        )
    names = [f"`{column}`" for column in found if not column.isdecimal()]
    if len(names) < len(found):
        names.append("`0`, `1`, … (singular values, the largest first)")
    more = len(names) - _MOST
    return ", ".join(names[:_MOST]) + (f", and {more} more" if more > 0 else "")


@cache
def example_columns() -> Mapping[str, Sequence[str]]:
    """The columns of every CSV file that one of the example studies has."""
    found: dict[str, list[str]] = {}
    for study in example_studies():
        context = StudyContext(study)
        for topic in TOPICS:
            info = topic.compute(context)
            for name, tabulate in topic.csv.items() if info is not None else ():
                columns = [str(column) for column in tabulate(info).columns]
                if columns:
                    found.setdefault(name, columns)
    return found
