"""The figures of the experiments: the study's above, the paper's below, on axes of its own."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis import figures
from analysis.experiments import Comparison, Experiment
from analysis.report.cells import LABELS
from analysis.report.drawing import Draw, make_picture
from analysis.report.experiment_words import describe_comparison, name_rows
from analysis.report.page import Picture
from analysis.report.results import Results
from analysis.report.wording import PERCENT

_MOST_ROWS = 24
_KINDS = {
    "line": "A point per run and the mean over seeds, with its {} t interval.",
    "rows": "Lines are {} t intervals over seeds.",
    "grid": "Mean scores; darker is higher.",
    "boxes": (
        "A box from the lower to the upper quartile of the seeds, its line at the median, "
        "whiskers to the furthest seed within 1.5 times that width; a point per seed. Below it "
        "the mean scores; darker is higher."
    ),
}


def _thin(table: pd.DataFrame) -> pd.DataFrame:
    """At most 24 rows, evenly chosen: more cannot be named in a figure."""
    if len(table) <= _MOST_ROWS:
        return table
    return table.iloc[np.linspace(0, len(table) - 1, _MOST_ROWS).round().astype(int)]


def _labels(experiment: Experiment) -> list[str]:
    names = [LABELS.get(name, name) for name in experiment.by]
    return ["share random at first", *names[1:]] if names[0] == LABELS["share"] else names


def _first_names(experiment: Experiment, table: pd.DataFrame) -> list[str]:
    return [experiment.label(value) for value in sorted(table[experiment.by[0]].unique())]


def _grid(experiment: Experiment, table: pd.DataFrame, value: str) -> Draw:
    labels, names = _labels(experiment), _first_names(experiment, table)

    def draw(ax: Axes) -> None:
        figures.draw_grid(table, ax, by=experiment.by, value=value, labels=labels, names=names)

    return draw


def _boxes(comparison: Comparison) -> Draw:
    experiment, runs = comparison.experiment, comparison.runs
    labels, names = _labels(experiment), _first_names(experiment, runs)
    return lambda ax: figures.draw_boxes(runs, ax, by=experiment.by, labels=labels, names=names)


def _line(comparison: Comparison) -> Draw:
    table = _thin(comparison.table).reset_index(drop=True)
    by = list(comparison.experiment.by)
    runs = comparison.runs.merge(table[by].reset_index(names="place"), on=by)
    names, label = name_rows(comparison, table), _labels(comparison.experiment)[0]
    return lambda ax: figures.draw_line(table, ax, names=names, runs=runs, label=label)


def _rows(comparison: Comparison) -> Draw:
    table = _thin(comparison.table)
    names, label = name_rows(comparison, table), _labels(comparison.experiment)[0]
    return lambda ax: figures.draw_rows(table, ax, names=names, label=label)


def _published(comparison: Comparison) -> Draw:
    experiment = comparison.experiment
    table = experiment.published()
    if experiment.figure in ("grid", "boxes"):
        return _grid(experiment, table, "published")
    label = _labels(experiment)[0]
    if experiment.figure == "rows":
        names = name_rows(comparison, table)
        return lambda ax: figures.draw_published_rows(table, ax, names=names, label=label)
    table = table.sort_values(experiment.by[0])
    names = name_rows(comparison, table)
    return lambda ax: figures.draw_published_line(table, ax, names=names, label=label)


def _is_papers(comparison: Comparison) -> bool:
    """Whether the runs are of the method that the published values are of."""
    return "method" not in comparison.differs


def _panels(comparison: Comparison) -> Sequence[tuple[str, Draw]]:
    experiment, table = comparison.experiment, comparison.table
    kinds: dict[str, list[tuple[str, Draw]]] = {
        "line": [("this study", _line(comparison))],
        "rows": [("this study", _rows(comparison))],
        "grid": [("this study", _grid(experiment, table, "mean"))],
        "boxes": [
            ("this study: seeds", _boxes(comparison)),
            ("this study: means", _grid(experiment, table, "mean")),
        ],
    }
    drawn = kinds[experiment.figure]
    return [*drawn, (figures.PAPER, _published(comparison))] if _is_papers(comparison) else drawn


def picture_experiment(comparison: Comparison, note: str) -> Picture:
    """One experiment as the paper draws it."""
    experiment = comparison.experiment
    panels = _panels(comparison)
    rows = max(len(_thin(comparison.table)), len(experiment.published()))
    height = 1.1 + 0.3 * rows if experiment.figure == "rows" else 2.8
    common = f" ({experiment.fixed})" if experiment.fixed else ""
    thinned = len(comparison.table) > _MOST_ROWS and experiment.figure in ("line", "rows")
    return make_picture(
        experiment.name,
        f"Score by {experiment.title.lower().replace('ema', 'EMA').replace('fgsm', 'FGSM')}",
        panels,
        height=height * len(panels),
        caption=(
            f"{_KINDS[experiment.figure].format(PERCENT)} "
            + (f"Drawn: {_MOST_ROWS} of {len(comparison.table)} values. " if thinned else "")
            + (
                f"Bottom: published, {experiment.source}{common}, for its shape only."
                if _is_papers(comparison)
                else "Nothing of the kind is published for this method."
            )
        ),
        alt=" ".join(describe_comparison(comparison)[:2]),
        note=note,
    )


def picture_collapse(results: Results, table: pd.DataFrame, alt: str) -> Picture:
    """Score and mean cosine over steps by structure. table  with a column structure."""

    def draw_score(ax: Axes) -> None:
        figures.draw_structures(table, ax, value="mean", label="score x 100")
        ax.legend(ncols=2, frameon=True, edgecolor="none", framealpha=0.8)

    def draw_cosine(ax: Axes) -> None:
        figures.draw_structures(table, ax, value="mean_cosine", label="mean cosine")

    return make_picture(
        "collapse",
        "Score over steps by structure",
        [
            ("score on the pairs that choose the checkpoint", draw_score),
            ("mean cosine of random pairs: 1 if all vectors coincide", draw_cosine),
        ],
        height=6.4,
        caption=f"As the paper's figures 5 and 6. The band is the {PERCENT} t interval over seeds.",
        alt=alt,
        note=results.note,
    )
