"""Topics: configurations compared where neither MTD nor the method varies; settings and score."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.runs import choose_evenly, completed_runs, varied_settings
from mtdlab.analysis.inference.intervals import Estimate, summarise
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.report.cells import PERCENT, clean, count, describe_covered, make_table
from mtdlab.analysis.report.topics.base import Axes, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.statistics.configurations import (
    COLUMNS,
    MOST_RUNS,
    compute_importances,
    independent_settings,
    name_rows,
)

_MOST_DRAWN = 12
_MOST_LETTERS = 100
_MOST_IN_FIGURE = 40


def name_table(
    context: StudyContext, table: pd.DataFrame, *, most: int = _MOST_LETTERS
) -> tuple[str, ...]:
    """The rows of a comparison by the settings that differ, the nuisance settings last."""
    names = [str(name) for name in table if name not in COLUMNS and name != "mtd"]
    shown = table
    if "method" in table:
        shown = table.assign(method=[context.name_method(name) for name in table["method"]])
    texts = name_rows(shown, names, beside=context.study.nuisance, most=most)
    return tuple(clean(text, most=most) for text in texts)


def lead_over(row: pd.Series) -> Estimate:
    """The best row of a comparison less another one, in points."""
    return Estimate(-row["difference"], -row["difference_high"], -row["difference_low"])


def draw_ranked(
    context: StudyContext, table: pd.DataFrame, names: Sequence[str], *, title: str, alt: str
) -> Drawing:
    """Means with their intervals, the highest first; `names` are those of the rows of `table`."""
    short = name_table(context, table, most=_MOST_IN_FIGURE)
    order = np.argsort(-table["mean"].to_numpy(), kind="stable")[:_MOST_DRAWN]
    drawn, score = _state(table.iloc[order], [names[at] for at in order]), context.score_label
    caption = f"Mean over seeds; bars are {PERCENT} CIs over seeds{describe_covered(table)}."
    if len(drawn) < len(table):
        caption += f" The {len(drawn)} best of {len(table):,}."

    def panel(ax: Axes) -> None:
        rows = [short[at] for at in order]
        figures.draw_rows(drawn, ax, names=rows, label="", name=score)

    height = 1.1 + 0.4 * len(drawn)
    return Drawing(title, [("", panel)], height=height, rigid=True, caption=caption, alt=alt)


def draw_costs(context: StudyContext, table: pd.DataFrame, names: Sequence[str]) -> Drawing | None:
    """The mean score against the seconds of a trial; None without durations of two rows."""
    order = np.argsort(-table["mean"].to_numpy(), kind="stable")[:_MOST_DRAWN]
    drawn, texts = table.iloc[order], [names[at] for at in order]
    short = name_table(context, table, most=_MOST_IN_FIGURE)
    if drawn["seconds"].notna().sum() < 2:
        return None
    stated, score = _state(drawn, texts), context.score_label
    best = f"{texts[0]}: {drawn['mean'].iloc[0]:.2f} in {drawn['seconds'].iloc[0]:.1f} s"
    return Drawing(
        "Score against duration",
        [("", lambda ax: figures.draw_costs(stated, ax, name=score))],
        height=3.6,
        caption="A point per row, numbered from the highest mean: "
        + "; ".join(f"{place} {short[at]}" for place, at in enumerate(order, start=1))
        + f". Bars are {PERCENT} CIs of the mean score over seeds{describe_covered(table)}. "
        "Durations are comparable where trials ran on one machine without other load.",
        alt=best,
    )


def _state(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The table with what the points of its rows state, and the trial to which they lead."""
    texts = []
    for name, row in zip(names, table.to_dict("records"), strict=True):
        interval = ""
        if np.isfinite(row["low"]):
            interval = f" ({PERCENT} CI {row['low']:.2f} to {row['high']:.2f})"
        cost = f", {row['seconds']:.1f} s a trial" if np.isfinite(row["seconds"]) else ""
        texts.append(
            f"{name}: mean of {count(row['seeds'], 'seed')} {row['mean']:.2f}{interval}{cost}"
        )
    return table.assign(text=texts, trial=table["number"])


@dataclass(frozen=True)
class Configurations:
    """The results of `compute_configurations`, and names of the rows."""

    context: StudyContext
    table: pd.DataFrame
    names: tuple[str, ...]


def compute(context: StudyContext) -> Configurations | None:
    """The comparison; None where MTD or the method varies, or without two scored configurations."""
    if context.verdict.levels_run > 1 or len(context.methods):
        return None
    table = context.configurations
    if len(table) < 2:
        return None
    return Configurations(context, table, name_table(context, table))


def describe(info: Configurations) -> tuple[str, ...]:
    """Sentences on the best configuration, and on how many others are significantly worse."""
    table = info.table
    tested, worse = int(table["difference_low"].notna().sum()), int((~table["may_be_best"]).sum())
    rest = "With fewer than two common seeds, no difference is tested."
    if tested:
        rest = (
            f"{worse:,} of {count(tested, 'other configuration')} "
            f"{'is' if worse == 1 else 'are'} significantly worse than the best: the interval of "
            f"the difference, simultaneous for all pairs at {info.context.of_comparisons}, "
            "excludes 0."
        )
    return (f"The mean score is highest with {info.names[0]}: {table['mean'].iloc[0]:.2f}.", rest)


def draw(info: Configurations) -> Drawing:
    title, alt = "Score by configuration", " ".join(describe(info))
    return draw_ranked(info.context, info.table, info.names, title=title, alt=alt)


def show(info: Configurations) -> tuple[Table, ...]:
    shown = info.table.drop(columns="items").dropna(axis="columns", how="all")
    table = make_table(
        shown.rename(columns={"number": "first trial"}),
        caption=f"Mean score of each configuration with its {PERCENT} CI, the difference to the "
        f"best with a {info.context.of_comparisons} CI that is simultaneous for all pairs of "
        "configurations, and whether that CI includes 0. "
        f"CIs cover seeds{describe_covered(info.table)}."
        + (f" {COSTS}" if {"seconds", "memory"} & set(shown) else ""),
        csv="configurations",
        sortable=True,
        labels=info.context.labels,
        many="configurations",
    )
    return (table,)


COSTS = (
    "Seconds are the mean of a trial, evaluations included; memory is the peak of a trial's "
    "process, or allocated on its GPU."
)


TOPIC = Topic(
    name="configurations",
    title="Configurations compared",
    compute=compute,
    csv={"configurations": lambda info: info.table},
    figures={
        "configurations": draw,
        "configuration_costs": lambda info: draw_costs(info.context, info.table, info.names),
    },
    text=describe,
    tables=show,
)
"""The topic of a study that varies, for example, the learning rate alone."""


_FEWEST_LINES = 3
_MOST_LINES = 200
_MOST_COLUMNS = 7
_MOST_LABEL = 30


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


def _find_importances(context: StudyContext) -> Importances | None:
    """The importances; None unless two settings vary independently in at least 3 configurations."""
    settings, runs = context.study.compared, completed_runs(context.trials)
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
    return clean(label, most=_MOST_LABEL)


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


def _describe_importances(info: Importances) -> tuple[str, ...]:
    """Sentences on the largest importance, and on what importances are."""
    if not len(info.table):
        return ()
    first, left = info.table.iloc[0], ""
    varied = varied_settings(info.runs, info.context.study.compared)
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


def _show_importances(info: Importances) -> tuple[Table, ...]:
    shown = info.table[["label", "importance"]].round(3).rename(columns={"label": "setting"})
    return (make_table(shown, caption="Hyperparameter importances.", csv="importances"),)


def _draw_importances(info: Importances) -> Drawing | None:
    """The figure with a bar per setting; None with too few runs."""
    if not len(info.table):
        return None
    return Drawing(
        "Hyperparameter importances",
        [("", lambda ax: figures.draw_importances(info.table, ax))],
        height=0.8 + 0.36 * len(info.table),
        caption="Share of the variance of the score; grey: the seed.",
        alt=_describe_importances(info)[0],
        rigid=True,
    )


def _draw_parallel(info: Importances) -> Drawing:
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
        [("", lambda ax: figures.draw_parallel(drawn, ax, names=names, name=score))],
        height=3.8,
        caption=caption,
        alt=table.iloc[int(table["mean"].argmax())]["text"],
    )


IMPORTANCES = Topic(
    name="importances",
    title="Settings and score",
    compute=_find_importances,
    csv={
        "importances": lambda info: info.table,
        "parallel_coordinates": lambda info: info.configurations.drop(columns=["text", "trial"]),
    },
    figures={"importances": _draw_importances, "parallel_coordinates": _draw_parallel},
    text=_describe_importances,
    tables=_show_importances,
)
