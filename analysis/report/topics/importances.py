"""Topic: hyperparameter importances, and all configurations as parallel coordinates."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.runs import choose_evenly, completed_runs, varied_settings
from analysis.inference.intervals import summarise
from analysis.measures.trace import PARTS
from analysis.report.cells import clean, make_table
from analysis.report.topics.base import Drawing, StudyContext, Table, Topic
from analysis.statistics.configurations import MOST_RUNS, compute_importances, independent_settings

_FEWEST_LINES = 3
_MOST_LINES = 200
_MOST_COLUMNS = 7
_MOST_LETTERS = 30


@dataclass(frozen=True)
class Importances:
    """The results: `table` is `compute_importances` with the column label.

    Attributes:
        configurations: a row per configuration: its settings, n, seeds, mean, low, high, text,
            trial.
        names: the labels of the settings of the configurations, by the settings' names, in order.
    """

    context: StudyContext
    runs: pd.DataFrame
    table: pd.DataFrame
    configurations: pd.DataFrame
    names: Mapping[str, str]


def compute(context: StudyContext) -> Importances | None:
    """The importances; None unless two settings vary independently in at least 3 configurations."""
    settings, runs = context.study.settings, completed_runs(context.trials)
    names = independent_settings(runs, settings)[:_MOST_COLUMNS]
    if len(names) < 2:
        return None
    means = summarise(runs, by=names)
    if len(means) < _FEWEST_LINES:
        return None
    labels = {name: _shorten(context.labels.get(name, name)) for name in names}
    table = compute_importances(context.trials, settings)
    return Importances(
        context,
        runs,
        table.assign(label=table["setting"].replace(labels).astype("str")),
        means.join(_describe_lines(means, runs, labels)),
        labels,
    )


def _shorten(label: str) -> str:
    return clean(label, most=_MOST_LETTERS)


def _describe_lines(
    means: pd.DataFrame, runs: pd.DataFrame, labels: Mapping[str, str]
) -> pd.DataFrame:
    """The text of each line: its mean, and the settings that are no part of MTD."""
    described = describe_means(means, runs, by=list(labels))
    others = [name for name in labels if name not in PARTS]
    described["text"] += [
        "".join(f", {labels[name]} {clean(str(row[name]))}" for name in others)
        for row in means.to_dict("records")
    ]
    return described


def describe(info: Importances) -> tuple[str, ...]:
    """Sentences on the largest importance, and on what importances are."""
    if not len(info.table):
        return ()
    first, left = info.table.iloc[0], ""
    varied = varied_settings(info.runs, info.context.study.settings)
    if named := ", ".join(_shorten(name) for name in varied if name not in info.names):
        left = (
            f" Left out, since other settings determine them or not all trials have them: {named}."
        )
    return (
        f"The score depends most on {first['label']} (importance {first['importance']:.2f}). "
        "Importances are shares of the variance of the score over "
        f"{min(len(info.runs), MOST_RUNS):,} trials that a random forest explains by each setting, "
        "with its interactions (functional ANOVA, as Optuna computes it); the share of the seed is "
        f"what does not depend on a setting.{left}",
    )


def show(info: Importances) -> tuple[Table, ...]:
    shown = info.table[["label", "importance"]].round(3).rename(columns={"label": "setting"})
    return (make_table(shown, caption="Hyperparameter importances.", csv="importances"),)


def draw_importances(info: Importances) -> Drawing | None:
    """The figure with a bar per setting; None with too few runs."""
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
    """The figure with a line per configuration through its settings to its mean score."""
    table, names, score = info.configurations, info.names, info.context.score_label
    drawn = choose_evenly(table.sort_values("mean", kind="stable"), _MOST_LINES)
    caption = "A line per configuration, coloured by its mean score over seeds."
    if len(table) > _MOST_LINES:
        caption += (
            f" Drawn: {_MOST_LINES} of {len(table):,}, evenly chosen in the order of the score."
        )
    else:
        drawn = table
    return Drawing(
        "Configurations as parallel coordinates",
        [("", lambda ax: figures.draw_parallel(drawn, ax, names=names, name=score, labels=drawn))],
        height=3.8,
        caption=caption,
        alt=table.iloc[int(table["mean"].argmax())]["text"],
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
