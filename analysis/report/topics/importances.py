"""Topic: hyperparameter importances, and all configurations as parallel coordinates."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.runs import choose_evenly, completed_runs, varied_settings
from analysis.inference.intervals import summarise
from analysis.measures.trace import PARTS
from analysis.report.cells import clean, make_table
from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.configurations import MOST_RUNS, compute_importances, independent_settings

if TYPE_CHECKING:
    pass

_FEWEST_LINES = 3
_MOST_LINES = 200
_MOST_COLUMNS = 7
_MOST_LETTERS = 30


@dataclass(frozen=True)
class Importances:
    """table: `compute_importances`, with the column label.

    Attributes:
        configurations: a row per configuration: its settings, n, seeds, mean, low, high, text,
            trial.
        names: of the settings of the configurations, in order.
        label: of scores.
        left_out: settings that others determine.
    """

    table: pd.DataFrame
    configurations: pd.DataFrame
    names: Mapping[str, str]
    left_out: tuple[str, ...]
    runs: int
    label: str


def compute(context: StudyContext) -> Importances | None:
    """None unless two settings varied independently, in three configurations or more."""
    settings, runs = context.study.settings, completed_runs(context.trials)
    names = independent_settings(runs, settings)[:_MOST_COLUMNS]
    if len(names) < 2:
        return None
    means = summarise(runs, by=names)
    if len(means) < _FEWEST_LINES:
        return None
    labels = {name: _shorten(context.labels.get(name, name)) for name in names}
    table = compute_importances(context.trials, settings)
    written = [labels.get(name, name) for name in table["setting"]]
    return Importances(
        table=table.assign(label=pd.Series(written, dtype="str")),
        configurations=means.join(_describe_lines(means, runs, labels)),
        names=labels,
        left_out=tuple(name for name in varied_settings(runs, settings) if name not in names),
        runs=min(len(runs), MOST_RUNS),
        label=context.score_label,
    )


def _shorten(label: str) -> str:
    return clean(label, most=_MOST_LETTERS)


def _describe_lines(
    means: pd.DataFrame, runs: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """What each line states: its mean, and the settings that are no part of MTD."""
    described = describe_means(means, runs, by=list(labels))
    others = [name for name in labels if name not in PARTS]
    extra = [
        "".join(f", {labels[name]} {clean(str(row[name]))}" for name in others)
        for row in means.to_dict("records")
    ]
    return described.assign(text=described["text"] + pd.Series(extra, index=described.index))


def describe(info: Importances) -> tuple[str, ...]:
    """The largest importance, and what importances are."""
    if not len(info.table):
        return ()
    first = info.table.iloc[0]
    left = ""
    if info.left_out:
        named = ", ".join(_shorten(name) for name in info.left_out)
        left = (
            f" Left out, since other settings determine them or not all trials have them: {named}."
        )
    return (
        f"The score depends most on {first['label']} (importance {first['importance']:.2f}). "
        f"Importances are shares of the variance of the score over {info.runs:,} trials that a "
        "random forest explains by each setting, with its interactions (functional ANOVA, as "
        f"Optuna computes it); the share of the seed is what does not depend on a setting.{left}",
    )


def show(info: Importances) -> tuple[Table, ...]:
    """A row per setting."""
    if not len(info.table):
        return ()
    shown = info.table[["label", "importance"]].round(3).rename(columns={"label": "setting"})
    return (make_table(shown, caption="Hyperparameter importances.", csv="importances"),)


def draw_importances(info: Importances) -> Drawing | None:
    """A bar per setting; none with too few runs."""
    if not len(info.table):
        return None

    return Drawing(
        "Hyperparameter importances",
        [("", lambda ax: figures.draw_importances(info.table, ax))],
        height=0.8 + 0.36 * len(info.table),
        caption="Share of the variance of the score; grey: the seed.",
        alt=describe(info)[0],
        rigid=True,
    )


def draw_parallel(info: Importances) -> Drawing:
    """A line per configuration through its settings to its mean score."""
    table = info.configurations
    drawn, some = table, ""
    if len(table) > _MOST_LINES:
        drawn = choose_evenly(table.sort_values("mean", kind="stable"), _MOST_LINES)
        some = f" Drawn: {_MOST_LINES} of {len(table):,}, evenly chosen in the order of the score."
    best = table.iloc[int(table["mean"].argmax())]

    return Drawing(
        "Configurations as parallel coordinates",
        [
            (
                "",
                lambda ax: figures.draw_parallel(
                    drawn, ax, names=info.names, name=info.label, labels=drawn
                ),
            )
        ],
        height=3.8,
        caption=f"A line per configuration, coloured by its mean score over seeds.{some}",
        alt=best["text"],
    )


TOPIC = Topic(
    name="importances",
    title="Settings and score",
    compute=compute,
    csv={
        "importances": lambda info: info.table,
        "parallel_coordinates": lambda info: info.configurations.drop(columns=["text", "trial"]),
    },
    figures={"importances": draw_importances, "parallel_coordinates": draw_parallel},
    text=describe,
    tables=show,
)
