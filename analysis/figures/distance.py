"""Figures with the maximum traceable distance (MTD) on the horizontal axis."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from analysis.figures.style import ACCENT, BATCHES, MARKERS, OTHER, RUN, add_legend, is_heavy

# Not seaborn: its `lineplot` draws bands of its own estimators, these are t intervals over seeds
# from analysis.intervals and analysis.pairing, cut where they are wide. A line per seed through
# the seed's means would be computed here as well, and `scatterplot` is `Axes.scatter` by columns.

_MOST_SEED_LINES = 12
_MOST_MARKERS = 40
_MOST_BAND = 1.5
_MARGIN = 0.05
_WIDE = 10
_DECADES_BELOW = 0.2
_TICKS = tuple(step * 10**power for power in range(5) for step in (1, 2, 5))


def label_mtd_axis(ax: Axes, levels: pd.Series) -> None:
    """Name the axis, and make it logarithmic above the lowest level if the range is wide.

    Below that level it is linear and short: only runs without an MTD stand there, at 0.
    """
    ax.set_xlabel("maximum traceable distance, MTD (steps)")
    if len(levels) and levels.max() > _WIDE * levels.min() > 0:
        ax.set_xscale("symlog", linthresh=float(levels.min()), linscale=_DECADES_BELOW)
        # a horizontal line that was drawn before has fixed the limits of a linear axis
        ax.autoscale(axis="x")
        ax.xaxis.set_minor_locator(NullLocator())
        ticks = [tick for tick in _TICKS if levels.min() <= tick <= levels.max()]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def draw_runs(runs: pd.DataFrame, ax: Axes, *, value: str) -> None:
    """A point per run, and a thin line per seed where there are few seeds.

    runs  a row per run with mtd, seed and `value`.
    """
    ax.scatter(
        runs["mtd"],
        runs[value],
        s=14,
        color=RUN,
        alpha=0.55,
        linewidths=0,
        label="one run",
        zorder=2,
        rasterized=is_heavy(len(runs)),
    )
    if runs["seed"].nunique() > _MOST_SEED_LINES:
        return
    for _, seed in runs.groupby("seed"):
        means = seed.groupby("mtd")[value].mean()
        ax.plot(means.index, means, color=RUN, alpha=0.4, linewidth=0.8, zorder=1)


def draw_curve(
    curve: pd.DataFrame, ax: Axes, *, label: str = "mean", colour: str = ACCENT, marker: str = "o"
) -> None:
    """A line through the means and a band over the intervals, where there are any.

    curve  mtd, mean, low, high in rising order of mtd.
    """
    ax.plot(
        curve["mtd"],
        curve["mean"],
        color=colour,
        marker=marker,
        markersize=5 if len(curve) <= _MOST_MARKERS else 0,
        label=label,
        zorder=4,
    )
    known = curve[np.isfinite(curve["low"].astype("float64"))]
    if len(known):
        ax.fill_between(
            known["mtd"],
            known["low"],
            known["high"],
            color=colour,
            alpha=0.16,
            linewidth=0,
            zorder=0,
        )


def keep_points_in_view(curve: pd.DataFrame, points: pd.Series, ax: Axes) -> None:
    """Cut a band that is far wider than the points, and note its limits above the axes.

    Two seeds give intervals of six times their distance, beside which the points would all
    coincide.
    """
    reach = float(curve["low"].min()), float(curve["high"].max())
    low, high = float(points.min()), float(points.max())
    margin = _MOST_BAND * (high - low)
    if not margin or not np.isfinite(reach).all():
        return
    if reach[0] >= low - margin and reach[1] <= high + margin:
        return
    ax.set_ylim(low - margin, high + margin)
    ax.text(
        1,
        1.02,
        f"band cut: it reaches from {reach[0]:.4g} to {reach[1]:.4g}",
        transform=ax.transAxes,
        ha="right",
        fontsize=9,
    )


def draw_mtd_curve(
    curve: pd.DataFrame, ax: Axes, *, runs: pd.DataFrame, value: str, name: str
) -> None:
    """Every run, the mean at each MTD, and the interval over seeds as a band.

    curve  `compute_mtd_curve`; runs  the rows it came from; value  their column.
    name   of the vertical axis.
    """
    draw_runs(runs, ax, value=value)
    draw_curve(curve, ax, label="mean over seeds")
    keep_points_in_view(curve, runs[value], ax)
    label_mtd_axis(ax, curve["mtd"])
    ax.set_ylabel(name)


def draw_untraced(methods: Mapping[str, pd.DataFrame], ax: Axes) -> None:
    """The mean of the runs of each method without an MTD, as a point at MTD 0.

    methods  label -> a row per run with score, at least one.

    Call it after the curve: limits that were set for the curve's runs are extended to the points.
    """
    scores = [float(runs["score"].mean()) for runs in methods.values()]
    for place, (label, score) in enumerate(zip(methods, scores, strict=True)):
        colour = (OTHER, *BATCHES[2:])[place % (len(BATCHES) - 1)]
        ax.plot([0.0], [score], marker="*", markersize=12, linestyle="", color=colour, label=label)
    # limits that were not set include the points already
    if scores and not ax.get_autoscaley_on():
        _extend_to(scores, ax)


def _extend_to(values: Sequence[float], ax: Axes) -> None:
    """Extend the limits of the vertical axis where values lie outside them, with a margin."""
    low, high = ax.get_ylim()
    lowest, highest = min(values), max(values)
    margin = _MARGIN * (max(high, highest) - min(low, lowest))
    ax.set_ylim(
        lowest - margin if lowest < low + margin else low,
        highest + margin if highest > high - margin else high,
    )


def draw_paired_curve(
    curve: pd.DataFrame, ax: Axes, *, smooth: pd.DataFrame, optimal: Sequence[float]
) -> None:
    """Difference from the mean over levels at each MTD, with the smooth curve through them.

    curve    `compute_paired_curve`; smooth: `compute_smooth`, may have no rows.
    optimal  the levels to mark as not told from the best.
    """
    ax.axhline(0, color=RUN, linewidth=1)
    if len(smooth):
        draw_curve(smooth, ax, label="smooth", colour=OTHER, marker="")
    reach = curve[["low", "high"]].sub(curve["mean"], axis=0).abs().to_numpy().T
    ax.errorbar(
        curve["mtd"],
        curve["mean"],
        yerr=reach,
        fmt="o",
        color=ACCENT,
        markersize=5,
        zorder=4,
        label="level",
    )
    best = curve[curve["mtd"].isin(optimal)]
    ax.scatter(
        best["mtd"],
        best["mean"],
        s=110,
        facecolors="none",
        edgecolors=ACCENT,
        zorder=5,
        label="not told from the best",
    )
    keep_points_in_view(curve, curve["mean"], ax)
    label_mtd_axis(ax, curve["mtd"])
    ax.set_ylabel("deviation from the\nmean over levels")
    add_legend(ax, columns=3)


def draw_batch_curves(
    curves: pd.DataFrame, ax: Axes, *, sizes: Sequence[int], name: str = "score x 100"
) -> None:
    """A line and a band for each batch size.

    curves  batch_size, mtd, mean, low, high; name  of the vertical axis.
    sizes   every batch size of the figure, so that each has one colour in all its panels.
    """
    for batch, curve in curves.groupby("batch_size"):
        place = sizes.index(batch)
        draw_curve(
            curve,
            ax,
            label=f"batch size {batch}",
            colour=BATCHES[place % len(BATCHES)],
            marker=MARKERS[place % len(MARKERS)],
        )
    label_mtd_axis(ax, curves["mtd"])
    ax.set_ylabel(name)
    add_legend(ax, columns=4)


def draw_published_curve(curve: pd.DataFrame, ax: Axes) -> None:
    """The paper's curve, on axes of its own: other data, so another height.

    curve  mtd, mean, low, high.
    """
    draw_curve(curve, ax, colour=OTHER, marker="D")
    label_mtd_axis(ax, curve["mtd"])
    ax.set_ylabel("Spearman x 100")
