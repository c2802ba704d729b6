"""Topic: the score against the maximum traceable distance (MoCoSE, figure 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis.pairing import compute_paired_curve, merge_levels, score_table
from analysis.published import SOURCE, load_curve
from analysis.report.cells import make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.text import BAND, LEVEL, PERCENT, describe_curve
from analysis.report.topics.base import Topic
from analysis.smooth import compute_smooth
from analysis.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = "Score against maximum traceable distance"


@dataclass(frozen=True)
class Score:
    """The curve with its runs; paired: each level less the mean of all, seeds as blocks.

    smooth    `compute_smooth` of the same scores.
    untraced  the runs without an MTD by the name of their method.
    """

    curve: pd.DataFrame
    paired: pd.DataFrame
    smooth: pd.DataFrame
    traced: pd.DataFrame
    untraced: Mapping[str, pd.DataFrame]
    verdict: Verdict


def compute(context: StudyContext) -> Score:
    """The curve of any study, also an empty one."""
    table = score_table(context.curve_trials, context.study.settings)
    return Score(
        curve=context.curve,
        smooth=compute_smooth(table.to_numpy(), table.columns.to_numpy(dtype=float), level=LEVEL),
        paired=compute_paired_curve(context.curve_trials, context.study.settings, level=LEVEL),
        traced=context.traced,
        untraced=context.untraced_by_method,
        verdict=context.verdict,
    )


def tabulate(info: Score) -> pd.DataFrame:
    """The curve and the paired curve in one table."""
    paired = info.paired.rename(columns=lambda name: f"paired_{name}")
    merged = info.curve.assign(paired_mtd=merge_levels(info.curve["mtd"]))
    curve = merged.merge(paired, on="paired_mtd", how="left").assign(level=LEVEL)
    if (curve["paired_mtd"] == curve["mtd"]).all():
        curve = curve.drop(columns="paired_mtd")
    first = ["mtd", "n", "mean", "low", "high", "seeds", "level"]
    return curve[[*first, *(name for name in curve if name not in first)]]


def show(info: Score) -> tuple[Table, ...]:
    """The table on the page, at most 100 levels."""
    if not len(info.curve):
        return ()
    shown = tabulate(info).drop(columns=["level", "paired_seeds"], errors="ignore")
    rows, remark = thin_rows(shown, "levels")
    caption = (
        f"Mean score at each MTD with its {PERCENT} interval over seeds; then the deviation from "
        f"the mean over levels, seeds as blocks, with a {PERCENT} interval for each level and one "
        f"that holds for all levels at once.{remark}"
    )
    return (make_table(rows, caption=caption, csv="mtd_curve"),)


def describe(info: Score) -> tuple[str, ...]:
    """Where the mean is highest and lowest."""
    if len(info.curve):
        return (describe_curve(info.curve, "The mean score is"),)
    why = "No completed run has a score"
    if info.untraced:
        why = f"{', '.join(info.untraced)} has no MTD"
    return (f"{why}, so there is no curve.",)


def draw(info: Score) -> Drawing | None:
    """Every run, the mean, the paired curve, and the paper's curve."""
    if not len(info.curve):
        return None
    panels: list[tuple[str, Draw]] = [("this study: every run, and the mean", _study(info))]
    if info.verdict.seeds > 1 and info.verdict.levels > 1:
        panels.append(("this study: deviation from the mean over levels", _paired(info)))
    panels.append((SOURCE, _published()))
    return Drawing(
        _TITLE,
        panels,
        height=2.9 * len(panels),
        caption=(
            "Top: a point per run, a thin line per seed, and the mean over seeds. Where there "
            "are several seeds, the panel below it shows the deviation of each level from the "
            "mean over levels, seeds as blocks, on which the verdict rests: bars are intervals "
            "for one level, the line is a smooth curve with a band that holds for all of it, and"
            " rings mark the levels that cannot be told from the best. Bottom: figure 2 of the "
            f"paper; compare its shape, not its level. {BAND}"
        ),
        alt=f"{describe_curve(info.curve, 'The mean score is')} {info.verdict.sentence}",
    )


def _study(info: Score) -> Draw:
    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_mtd_curve(info.curve, ax, runs=info.traced, value="score", name="score x 100")
        figures.draw_untraced(info.untraced, ax)
        figures.add_legend(ax, columns=3)

    return panel


def _paired(info: Score) -> Draw:
    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_paired_curve(
            info.paired, ax, smooth=info.smooth, optimal=info.verdict.optimal_range
        )

    return panel


def _published() -> Draw:
    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_published_curve(load_curve("figure2_mtd"), ax)

    return panel


TOPIC = Topic(
    name="score",
    title=_TITLE,
    compute=compute,
    csv={"mtd_curve": tabulate},
    figures={"mtd_curve": draw},
    text=describe,
    tables=show,
    keep_empty=True,
)
