"""Topic: the configurations of a study in which neither MTD nor the method varies."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import figures
from analysis.data.settings import format_value
from analysis.inference.intervals import Estimate
from analysis.inference.verdict import describe_points
from analysis.report.cells import LEVEL, PERCENT, clean, count, describe_items, make_table
from analysis.report.topics.base import Drawing, StudyContext, Table, Topic
from analysis.statistics.configurations import (
    COLUMNS,
    Effects,
    compute_configurations,
    compute_effects,
    name_configuration,
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

    @property
    def covered(self) -> str:
        """The words on what the intervals cover beside seeds."""
        return describe_items(int(self.table["items"].min()))


def compute(context: StudyContext) -> Configurations | None:
    """The comparison; None where MTD or the method varies, or without two scored configurations."""
    if context.verdict.levels_run > 1 or len(context.methods):
        return None
    study = context.study
    table = compute_configurations(study.trials, study.settings, items=study.items)
    if len(table) < 2:
        return None
    varied = [name for name in table if name not in COLUMNS]
    names = [
        clean(name_configuration(row), most=_MOST_LETTERS)
        for _, row in table[varied].astype("object").iterrows()
    ]
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
            f"the best at {PERCENT} confidence)."
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
        "best with a CI that is simultaneous for all pairs of configurations, and whether no other "
        f"is significantly better. CIs cover seeds{info.covered}.",
        csv="configurations",
        sortable=True,
        labels=info.context.labels,
        many="configurations",
    )
    effects = make_table(
        _tabulate_effects(info),
        caption="Effect of each setting: its best value less its worst, averaged over the other "
        f"settings, with a {PERCENT} CI that is simultaneous for all values of all settings and "
        f"covers seeds{info.covered}.",
        csv="effects",
    )
    return configurations, effects


def _tabulate_effects(info: Configurations) -> pd.DataFrame:
    return info.effects.settings if info.effects is not None else pd.DataFrame()


def draw(info: Configurations) -> Drawing:
    table, names = info.table.head(_MOST_DRAWN), info.names[:_MOST_DRAWN]
    score = info.context.score_label
    caption = f"Mean over seeds; bars are {PERCENT} CIs over seeds{info.covered}."
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
