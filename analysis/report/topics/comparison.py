"""Topic: the configurations of a study in which neither MTD nor the method varies."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.comparison import COLUMNS, compute_configurations, name_configuration
from analysis.report.cells import clean, make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table
from analysis.report.text import LEVEL, PERCENT, count
from analysis.report.topics.base import Topic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_DRAWN = 12
_MOST_LETTERS = 60


@dataclass(frozen=True)
class Configurations:
    """table: `compute_configurations`; names: of its rows; labels: of its settings.

    score  label of the score in figures.
    """

    table: pd.DataFrame
    names: tuple[str, ...]
    labels: dict[str, str]
    score: str


def compute(context: StudyContext) -> Configurations | None:
    """None where MTD or the method varies, or fewer than two configurations have a score."""
    if context.verdict.levels_run > 1 or len(context.methods):
        return None
    table = compute_configurations(
        context.trials, context.study.settings, items=context.study.items, level=LEVEL
    )
    if len(table) < 2:
        return None
    varied = [name for name in table if name not in COLUMNS]
    names = [
        clean(name_configuration(row), most=_MOST_LETTERS)
        for _, row in table[varied].astype("object").iterrows()
    ]
    return Configurations(table, tuple(names), dict(context.labels), context.score_label)


def describe(info: Configurations) -> tuple[str, ...]:
    """The best configuration, and how many others are significantly worse."""
    table, others = info.table, len(info.table) - 1
    worse = int((table["difference_high"] < 0).sum())
    tested = int(np.isfinite(table["difference_low"]).sum())
    if not tested:
        rest = "With fewer than two common seeds, no difference is tested."
    else:
        rest = (
            f"{worse:,} of {count(others, 'other configuration')} "
            f"{'is' if worse == 1 else 'are'} significantly worse (paired differences, "
            f"multiplicity-adjusted {PERCENT} CI)."
        )
    best = f"The mean score is highest with {info.names[0]}: {table['mean'].iloc[0]:.2f}."
    return (best, rest)


def show(info: Configurations) -> tuple[Table, ...]:
    """A row for each configuration."""
    rows, remark = thin_rows(info.table.rename(columns={"number": "first trial"}), "configurations")
    caption = (
        f"Mean score of each configuration with its {PERCENT} CI over seeds, and the paired "
        "difference to the best, its CI adjusted for all pairs of configurations "
        f"(Bonferroni).{remark}"
    )
    return (
        make_table(rows, caption=caption, csv="configurations", sortable=True, labels=info.labels),
    )


def draw(info: Configurations) -> Drawing:
    """The mean and interval of the best configurations."""
    table = info.table.head(_MOST_DRAWN)

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_rows(table, ax, names=info.names[: len(table)], label="", name=info.score)

    part = (
        "" if len(table) == len(info.table) else f" The {len(table)} best of {len(info.table):,}."
    )
    return Drawing(
        "Score by configuration",
        [("", panel)],
        height=1.1 + 0.4 * len(table),
        rigid=True,
        caption=f"Mean over seeds; bars are {PERCENT} t intervals over seeds.{part}",
        alt=" ".join(describe(info)),
    )


TOPIC = Topic(
    name="configurations",
    title="Configurations compared",
    compute=compute,
    csv={"configurations": lambda info: info.table},
    figures={"configurations": draw},
    text=describe,
    tables=show,
)
"""Of a study that varies, for example, the learning rate alone."""
