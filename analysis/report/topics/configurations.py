"""Topics: configurations compared where neither MTD nor the method varies; settings and score."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.runs import choose_evenly, completed_runs, varied_settings
from analysis.data.settings import format_value
from analysis.inference.intervals import Estimate, summarise
from analysis.inference.verdict import describe_points
from analysis.measures.trace import PARTS
from analysis.report.cells import LEVEL, PERCENT, clean, count, describe_covered, make_table
from analysis.report.topics.base import Drawing, StudyContext, Table, Topic
from analysis.statistics.configurations import (
    COLUMNS,
    MOST_RUNS,
    Effects,
    compute_effects,
    compute_importances,
    independent_settings,
    name_configurations,
)

_MOST_DRAWN = 12
_MOST_LETTERS = 60


@dataclass(frozen=True)
class Configurations:
    """The results `compute_configurations` and `compute_effects`, and names of the rows."""

    context: StudyContext
    table: pd.DataFrame
    effects: Effects | None
    names: tuple[str, ...]


def compute(context: StudyContext) -> Configurations | None:
    """The comparison; None where MTD or the method varies, or without two scored configurations."""
    if context.verdict.levels_run > 1 or len(context.methods):
        return None
    study, table = context.study, context.configurations
    if len(table) < 2:
        return None
    varied = [name for name in table if name not in COLUMNS]
    names = [clean(name, most=_MOST_LETTERS) for name in name_configurations(table[varied])]
    effects = compute_effects(study.trials, study.settings, items=study.items)
    return Configurations(context, table, effects, tuple(names))


def describe(info: Configurations) -> tuple[str, ...]:
    """Sentences on the best configuration, and on how many others are significantly worse."""
    table = info.table
    worse = len(table) - int(table["may_be_best"].sum())
    rest = "With fewer than two common seeds, no difference is tested."
    if np.isfinite(table["difference_low"]).any():
        rest = (
            f"{worse:,} of {count(len(table) - 1, 'other configuration')} "
            f"{'is' if worse == 1 else 'are'} significantly worse than the best (comparisons with "
            f"the best at {info.context.of_comparisons} confidence)."
        )
    best = f"The mean score is highest with {info.names[0]}: {table['mean'].iloc[0]:.2f}."
    if info.effects is None:
        return (best, rest)
    return (best, rest, describe_effect(info.effects), _describe_interactions(info.effects))


def describe_effect(effects: Effects) -> str:
    """A sentence on the setting with the largest effect."""
    row = effects.settings.iloc[0]
    size = Estimate(row["difference"], row["low"], row["high"])
    name = str(row["setting"])
    values = " instead of ".join(clean(format_value(name, row[end])) for end in ("best", "worst"))
    doubt = "" if size.low > 0 else ", not significant"
    return (
        f"The largest effect is that of {clean(name)}: {describe_points(size, LEVEL)} with "
        f"{values}, averaged over the other settings{doubt}."
    )


def _describe_interactions(effects: Effects) -> str:
    """A sentence on effects that depend on another setting, adjusted for pairs (Bonferroni)."""
    pairs = effects.interactions
    clear = pairs[pairs["p_value"] * len(pairs) <= 1 - LEVEL]
    if not len(clear):
        return "No effect depends significantly on the value of another setting."
    named = [
        " and ".join(map(clean, pair)) for pair in clear[["first", "second"]].to_numpy(dtype=str)
    ]
    return f"The effects of {'; of '.join(named)} depend on each other."


def show(info: Configurations) -> tuple[Table, ...]:
    configurations = make_table(
        info.table.drop(columns="items").rename(columns={"number": "first trial"}),
        caption=f"Mean score of each configuration with its {PERCENT} CI, the difference to the "
        f"best with a {info.context.of_comparisons} CI that is simultaneous for all pairs of "
        "configurations, and whether no other "
        f"is significantly better. CIs cover seeds{describe_covered(info.table)}.",
        csv="configurations",
        sortable=True,
        labels=info.context.labels,
        many="configurations",
    )
    effects = make_table(
        _tabulate_effects(info),
        caption="Effect of each setting: its best value less its worst, averaged over the other "
        f"settings, with a {PERCENT} CI that is simultaneous for all values of all settings and "
        f"covers seeds{describe_covered(info.table)}.",
        csv="effects",
    )
    return configurations, effects


def _tabulate_effects(info: Configurations) -> pd.DataFrame:
    return info.effects.settings if info.effects is not None else pd.DataFrame()


def draw(info: Configurations) -> Drawing:
    table, names = info.table.head(_MOST_DRAWN), info.names[:_MOST_DRAWN]
    score = info.context.score_label
    caption = f"Mean over seeds; bars are {PERCENT} CIs over seeds{describe_covered(info.table)}."
    if len(table) < len(info.table):
        caption += f" The {len(table)} best of {len(info.table):,}."
    return Drawing(
        "Score by configuration",
        [("", lambda ax: figures.draw_rows(table, ax, names=names, label="", name=score))],
        height=1.1 + 0.4 * len(table),
        rigid=True,
        caption=caption,
        alt=" ".join(describe(info)),
    )


TOPIC = Topic(
    name="configurations",
    title="Configurations compared",
    compute=compute,
    csv={"configurations": lambda info: info.table, "effects": _tabulate_effects},
    figures={"configurations": draw},
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
        [("", lambda ax: figures.draw_parallel(drawn, ax, names=names, name=score, labels=drawn))],
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
