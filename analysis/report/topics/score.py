"""Topic: the score against the maximum traceable distance (MoCoSE, figure 2)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import SOURCE, load_curve
from analysis.data.runs import MTD_DECIMALS, format_mtd
from analysis.inference.pairing import (
    compute_paired_curve,
    compute_smooth,
    merge_levels,
)
from analysis.inference.verdict import Verdict
from analysis.measures.trace import PARTS
from analysis.report.cells import BAND, LEVEL, PERCENT, count, describe_curve, make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.report.warnings import count_collapsed
from analysis.statistics.curves import CONFIGURATION, compute_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_MARKED = 6
_TITLE = "Score against maximum traceable distance"


@dataclass(frozen=True)
class Score:
    """The curve with its runs; paired: each level less the mean of all, seeds as blocks.

    Attributes:
        collapsed: `count_collapsed` at each level of `curve`; NaN where it is not known.
        table: of `LevelScores`.
        smooth: `compute_smooth`.
        cells: `compute_cells`.
        untraced: the runs without an MTD by the name of their method.
        baseline: mean score of the untrained encoder, NaN where it is not known.
        label: of scores.
        program: whether a program of the user made the runs, on other data than the published ones.
    """

    curve: pd.DataFrame
    collapsed: pd.DataFrame
    cells: pd.DataFrame
    table: pd.DataFrame
    paired: pd.DataFrame
    smooth: pd.DataFrame
    traced: pd.DataFrame
    untraced: Mapping[str, pd.DataFrame]
    verdict: Verdict
    baseline: float
    label: str
    program: bool


def compute(context: StudyContext) -> Score:
    """The curve of any study, also an empty one."""
    return Score(
        curve=context.curve,
        collapsed=count_collapsed(context).reindex(context.curve["mtd"]),
        cells=compute_cells(context.curve_trials),
        smooth=compute_smooth(context.levels),
        table=context.levels.table,
        paired=compute_paired_curve(context.levels),
        traced=context.traced,
        untraced=context.untraced_by_method,
        verdict=context.verdict,
        baseline=float(context.traced["score_before"].astype("float64").mean()),
        label=context.score_label,
        program=bool(context.study.program),
    )


def tabulate(info: Score) -> pd.DataFrame:
    """The curve and the paired curve in one table."""
    paired = info.paired.rename(columns=lambda name: f"paired_{name}")
    runs = info.traced.assign(mtd=info.traced["mtd"].astype("float64").round(MTD_DECIMALS))
    median = runs.groupby("mtd")["score"].median().reindex(info.curve["mtd"]).to_numpy()
    merged = info.curve.assign(
        median=median,
        collapsed_share=info.collapsed["share"].to_numpy(),
        paired_mtd=merge_levels(info.curve["mtd"]),
    )
    curve = merged.merge(paired, on="paired_mtd", how="left").assign(level=LEVEL)
    if (curve["paired_mtd"] == curve["mtd"]).all():
        curve = curve.drop(columns="paired_mtd")
    first = ["mtd", "n", "mean", "low", "high", "seeds", "level"]
    return curve[[*first, *(name for name in curve if name not in first)]]


def show(info: Score) -> tuple[Table, ...]:
    """The table on the page, at most 100 levels."""
    if not len(info.curve):
        return ()
    hidden = ["level", "seeds", "paired_seeds", "paired_mtd", "paired_low", "paired_high"]
    if info.collapsed["share"].isna().all():
        hidden.append("collapsed_share")
    shown = tabulate(info).drop(columns=hidden, errors="ignore")
    if info.cells["mtd"].tolist() == info.curve["mtd"].tolist():
        for name, symbol in PARTS.items():
            if info.cells[name].nunique() > 1:
                shown.insert(1, symbol, info.cells[name].to_numpy())
    rows, remark = thin_rows(shown, "levels")
    caption = (
        f"Mean score at each MTD with its {PERCENT} interval over seeds, the median of the trials "
        "and the share that collapsed; then the deviation from the mean over levels, seeds as "
        f"blocks, with a {PERCENT} interval that holds for all levels at once.{remark}"
    )
    return (make_table(rows, caption=caption, csv="mtd_curve"),)


def describe(info: Score) -> tuple[str, ...]:
    """Where the mean is highest and lowest, and what is known of collapses."""
    if not len(info.curve):
        return ()
    return tuple(
        filter(
            None,
            (
                describe_curve(info.curve, "The mean score is"),
                _describe_seeds(info),
                _bound(info),
            ),
        )
    )


def _bound(info: Score) -> str:
    """What levels without a collapse do not show."""
    known = info.collapsed[info.collapsed["share"].notna()]
    seeds = int(min(info.curve["seeds"].max(), known["assessed"].max())) if len(known) else 0
    if known["collapsed"].any() or seeds < 2:
        return ""
    return (
        f"No collapse was detected. That does not bound the mean: with {seeds} trials of a level, "
        f"up to {100 * (1 - (1 - LEVEL) ** (1 / seeds)):.0f} % of further ones may collapse "
        f"({PERCENT} confidence), and each would lower it."
    )


def describe_missing(info: Score) -> str:
    """Why there is no curve."""
    if len(info.curve):
        return ""
    why = "No completed trial has a score"
    if info.untraced:
        why = f"{', '.join(info.untraced)} has no MTD"
    return f"{why}, so there is no curve over MTD."


def draw(info: Score) -> Drawing | None:
    """Every run and the mean, and beside them the paired curve."""
    if not len(info.curve):
        return None
    panels: list[tuple[str, Draw]] = [("every trial, and the mean", _study(info))]
    if info.verdict.seeds > 1 and info.verdict.levels > 1:
        panels.append(("deviation from the mean over levels", _paired(info)))
    return Drawing(
        _TITLE,
        panels,
        height=4.4 if _marks(info) else 3.9,
        columns=len(panels),
        caption=_caption(info, paired=len(panels) > 1),
        alt=f"{describe_curve(info.curve, 'The mean score is')} {info.verdict.sentence}",
    )


def _caption(info: Score, *, paired: bool) -> str:
    parts = ["A point per trial, a thin line per seed, and the mean over seeds."]
    if _marks(info):
        parts.append("Large points are configurations.")
    if paired:
        curve = f"the line is a smooth curve with a {PERCENT} band for the whole of it, "
        parts.append(
            "The other panel, on which the verdict rests, shows the deviation of each level from "
            "the mean over levels, seeds as blocks: bars are intervals for one level, "
            f"{curve if len(info.smooth) else ''}and rings mark the levels that are statistically "
            "indistinguishable from the best."
        )
    return " ".join([*parts, BAND])


def _marks(info: Score) -> bool:
    """Whether configurations have a colour and a marker: two components vary, in few values."""
    varied = [name for name in CONFIGURATION[1:] if info.cells[name].nunique() > 1]
    return len(varied) == 2 and all(info.cells[name].nunique() <= _MOST_MARKED for name in varied)


def _study(info: Score) -> Draw:
    def panel(ax: "Axes") -> None:
        figures.draw_mtd_curve(info.curve, ax, runs=info.traced, value="score", name=info.label)
        entries = None
        if _marks(info):
            labels = describe_means(info.cells, info.traced, by=CONFIGURATION)
            entries = figures.draw_configurations(info.cells, ax, labels=labels)
        else:
            figures.draw_component_axis(info.cells, ax)
        figures.draw_untraced(info.untraced, ax)
        if math.isfinite(info.baseline):
            figures.draw_baseline(info.baseline, ax)
        figures.add_legend(ax, more=entries)

    return panel


def _paired(info: Score) -> Draw:
    labels = _describe_paired(info)

    return lambda ax: figures.draw_paired_curve(
        info.paired, ax, smooth=info.smooth, optimal=info.verdict.optimal_range, labels=labels
    )


def _describe_paired(info: Score) -> pd.DataFrame:
    """What the levels of the paired curve state, each with its best trial."""
    runs = info.traced.assign(level=merge_levels(info.traced["mtd"]))
    named = info.paired.assign(level=info.paired["mtd"])
    labels = describe_means(named, runs, by=["level"])
    return labels.assign(text="Deviation from the mean over levels. " + labels["text"])


def compare_seeds(info: Score) -> pd.DataFrame:
    """The best level less the first and less the last, within each seed.

    Returns:
        end (its MTD), seed, difference; no rows where fewer than two levels or seeds are compared.
    """
    best = info.verdict.peak_mtd
    parts = [
        (info.table[best] - info.table[end])
        .dropna()
        .rename("difference")
        .rename_axis("seed")
        .reset_index()
        .assign(end=end)
        for end in dict.fromkeys((info.verdict.first, info.verdict.last))
        if len(info.table) > 1 and end != best and {best, end} <= set(info.table)
    ]
    columns = ["end", "seed", "difference"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def _describe_seeds(info: Score) -> str:
    """In how many seeds the best level is above the ends of the range."""
    parts = [
        f"{int((rows['difference'] > 0).sum())} of {count(len(rows), 'seed')} above MTD "
        f"{format_mtd(float(str(end)))}"
        for end, rows in compare_seeds(info).groupby("end")
    ]
    best = format_mtd(info.verdict.peak_mtd)
    return f"MTD {best} is in {' and in '.join(parts)}." if parts else ""


def draw_seeds(info: Score) -> Drawing | None:
    """The difference of the best level to the ends of the range, a point per seed."""
    differences = compare_seeds(info)
    if not len(differences):
        return None

    best = format_mtd(info.verdict.peak_mtd)
    return Drawing(
        f"MTD {best} less the ends of the range, seed by seed",
        [("", lambda ax: figures.draw_seed_differences(differences, ax))],
        height=0.9 + 0.45 * differences["end"].nunique(),
        rigid=True,
        caption=f"A point per seed: its score at MTD {best} less that at the end of the range.",
        alt=_describe_seeds(info),
    )


def draw_published(info: Score) -> Drawing | None:
    """The study's curve beside the paper's, each as deviations from its own mean."""
    if len(info.paired) < 2 or info.program:
        return None
    published = load_curve("figure2_mtd")

    return Drawing(
        "Shape of the curve beside that of the paper",
        [("", lambda ax: figures.draw_deviations(info.paired, published, ax))],
        height=3.2,
        caption=(
            f"Each curve less its mean over its own levels, which differ; the paper's is figure 2 "
            f"({SOURCE}). Bands are {PERCENT} intervals."
        ),
        alt=describe_curve(published, "The published mean is"),
    )


TOPIC = Topic(
    name="score",
    title=_TITLE,
    compute=compute,
    csv={"mtd_curve": tabulate},
    figures={"mtd_curve": draw, "seed_differences": draw_seeds, "mtd_published": draw_published},
    text=describe,
    missing=describe_missing,
    tables=show,
    keep_empty=True,
)
