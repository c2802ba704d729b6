"""Figures with the maximum traceable distance (MTD) on the horizontal axis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from analysis.data.points import describe_means
from analysis.data.runs import format_mtd
from analysis.figures.spots import add_run_spots, add_spots, can_state
from analysis.figures.style import (
    ACCENT,
    BAND,
    COLOURS,
    INK,
    LINES,
    MARKERS,
    OTHER,
    RUN,
    add_legend,
    is_heavy,
    keep_span,
    label_mtd_axis,
    label_score,
    look_of,
    printable,
)

# Not seaborn: its `lineplot` draws bands of its own estimators, these are t intervals over seeds
# from analysis.inference.intervals and analysis.inference.pairing, cut where they are wide. A line
# per seed through the seed's means would be computed here as well, and `scatterplot` is
# `Axes.scatter` by columns.

_MOST_SEED_LINES = 12
_MOST_MARKERS = 40
_MOST_BAND = 1.5
_MARGIN = 0.05
_MOST_STRETCH = 1.5


def scatter_runs(
    runs: pd.DataFrame, ax: Axes, x: pd.Series, y: pd.Series, *, value: str, zorder: float = 1
) -> None:
    """A grey point per run at (x, y), which states the run's `value`."""
    ax.scatter(
        x,
        y,
        s=14,
        color=RUN,
        alpha=0.55,
        linewidths=0,
        label="one trial",
        zorder=zorder,
        rasterized=is_heavy(len(runs)),
    )
    add_run_spots(ax, runs, x, y, value=value)


def scatter_by_mtd(
    runs: pd.DataFrame,
    ax: Axes,
    x: str,
    y: str,
    norm: Normalize,
    *,
    value: str,
    marker: str = "o",
    label: str | None = None,
) -> None:
    """A point per run at its columns x and y, coloured by MTD, which states the run's `value`."""
    ax.scatter(
        runs[x],
        runs[y],
        c=runs["mtd"],
        norm=norm,
        cmap=COLOURS,
        s=28,
        marker=marker,
        linewidths=0.4,
        edgecolors="white",
        rasterized=is_heavy(len(runs)),
        label=label,
    )
    add_run_spots(ax, runs, runs[x], runs[y], value=value)


def draw_runs(runs: pd.DataFrame, ax: Axes, *, value: str) -> None:
    """A point per run, and a thin line per seed where there are few seeds.

    Args:
        runs: a row per run with number, mtd, seed and `value`.
    """
    scatter_runs(runs, ax, runs["mtd"], runs[value], value=value, zorder=2)
    if runs["seed"].nunique() > _MOST_SEED_LINES:
        return
    for _, seed in runs.groupby("seed"):
        means = seed.groupby("mtd")[value].mean()
        ax.plot(means.index, means, color=RUN, alpha=0.4, linewidth=0.8, zorder=1)


def draw_curve(
    curve: pd.DataFrame,
    ax: Axes,
    *,
    label: str = "mean",
    colour: str = ACCENT,
    marker: str = "o",
    labels: pd.DataFrame | None = None,
) -> None:
    """A line through the means and a band over the intervals, where there are any.

    Args:
        curve: mtd, mean, low, high in rising order of mtd.
        labels: what the means state, a row per mean, as `add_spots` takes it; by default text and
            trial of the curve, if it has them.
    """
    if labels is None and "text" in curve:
        labels = curve
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
            label=BAND,
        )
    if labels is not None:
        add_spots(ax, curve["mtd"], curve["mean"], labels)


def keep_points_in_view(curve: pd.DataFrame, points: pd.Series, ax: Axes) -> None:
    """Cut a band that is far wider than the points, and state its limits in the legend.

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
    for artist in ax.collections:
        if artist.get_label() == BAND:
            artist.set_label(f"{BAND}, cut: {reach[0]:.4g} to {reach[1]:.4g}")


def draw_mtd_curve(
    curve: pd.DataFrame, ax: Axes, *, runs: pd.DataFrame, value: str, name: str
) -> None:
    """Every run, the mean at each MTD, and the interval over seeds as a band.

    Args:
        curve: `compute_mtd_curve`.
        runs: the rows it came from.
        value: their column.
        name: of the vertical axis.
    """
    draw_runs(runs, ax, value=value)
    labels = describe_means(curve, runs, value=value) if can_state(len(curve)) else None
    draw_curve(curve, ax, label="mean over seeds", labels=labels)
    keep_points_in_view(curve, runs[value], ax)
    label_mtd_axis(ax, curve["mtd"])
    if value == "score":
        label_score(ax, name)
    else:
        ax.set_ylabel(name)


def draw_untraced(methods: Mapping[str, pd.DataFrame], ax: Axes) -> None:
    """The mean of the runs of each method without an MTD, as a horizontal line.

    Call it after the curve: its limits are extended to the lines.

    Args:
        methods: label -> a row per run with score, at least one.
    """
    for place, (label, runs) in enumerate(methods.items()):
        # after the curve's own colour
        colour, marker = look_of(place + 1)
        score, line = float(runs["score"].mean()), LINES[place % len(LINES)]
        draw_level(
            score, ax, label=f"{printable(label)} (no MTD)".strip(), colour=colour, line=line
        )
        ax.plot(1, score, marker, color=colour, transform=ax.get_yaxis_transform(), clip_on=False)
        mean = pd.DataFrame({"method": [label], "mean": score, "low": np.nan, "high": np.nan})
        mean = mean.assign(seeds=runs["seed"].nunique() if "seed" in runs else len(runs))
        if "number" in runs:
            labels = describe_means(mean, runs.assign(method=label, mtd=np.nan), by=["method"])
            labels = labels.assign(text=f"{label}. " + labels["text"])
            add_spots(ax, [1.0], [score], labels, transform=ax.get_yaxis_transform())
    extend_to([float(runs["score"].mean()) for runs in methods.values()], ax)


def draw_level(score: float, ax: Axes, *, label: str, colour: str, line: Any = "--") -> None:
    """A horizontal line at a score that belongs to no place of the horizontal axis."""
    ax.axhline(score, color=colour, linestyle=line, linewidth=1.4, label=label, zorder=3)


def draw_baseline(score: float, ax: Axes) -> None:
    """The score of the untrained encoder as a line, or as text if it is far from the data.

    Call it last: it extends the limits of the axes to at most 1.5 times their height.
    """
    low, high = ax.get_ylim()
    if max(high, score) - min(low, score) <= _MOST_STRETCH * (high - low):
        draw_level(score, ax, label=f"untrained: {score:.2f}", colour=INK)
        extend_to([score], ax)
        return
    below = score < low
    ax.text(
        0.98,
        0.03 if below else 0.97,
        f"untrained: {score:.2f}, {'below' if below else 'above'} the axis",
        ha="right",
        va="bottom" if below else "top",
        transform=ax.transAxes,
    )
    ax.set_ylim(low, high)


def extend_to(values: Sequence[float], ax: Axes) -> None:
    """Extend the limits of the vertical axis where values lie outside them, with a margin."""
    if not len(values):
        return
    low, high = ax.get_ylim()
    lowest, highest = min(values), max(values)
    margin = _MARGIN * (max(high, highest) - min(low, lowest))
    ax.set_ylim(
        lowest - margin if lowest < low + margin else low,
        highest + margin if highest > high - margin else high,
    )


def draw_paired_curve(
    curve: pd.DataFrame,
    ax: Axes,
    *,
    smooth: pd.DataFrame,
    optimal: Sequence[float],
    labels: pd.DataFrame | None = None,
) -> None:
    """Difference from the mean over levels at each MTD, with the smooth curve through them.

    Args:
        curve: `compute_paired_curve`.
        smooth: `compute_smooth`, may have no rows.
        optimal: the levels to mark as indistinguishable from the best.
        labels: what the levels state, a row per level, as `add_spots` takes it.
    """
    ax.axhline(0, color=RUN, linewidth=1)
    if len(smooth):
        draw_curve(smooth, ax, label="smooth curve", marker="")
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
        label="indistinguishable from the best",
    )
    if labels is not None:
        add_spots(ax, curve["mtd"], curve["mean"], labels)
    keep_points_in_view(curve, curve["mean"], ax)
    label_mtd_axis(ax, curve["mtd"])
    keep_span(ax)
    ax.set_ylabel("deviation from the\nmean over levels")
    add_legend(ax)


def draw_batch_curves(curves: pd.DataFrame, ax: Axes, *, sizes: Sequence[int], name: str) -> None:
    """A line and a band for each batch size.

    Args:
        curves: batch_size, mtd, mean, low, high; text and trial too where the means state them.
        name: of the vertical axis.
        sizes: every batch size of the figure, so that each has one colour in all its panels.
    """
    for batch, curve in curves.groupby("batch_size"):
        colour, marker = look_of(sizes.index(batch))
        label = f"batch size {batch}"
        draw_curve(curve, ax, label=label, colour=colour, marker=marker)
    label_mtd_axis(ax, curves["mtd"])
    label_score(ax, name)
    add_legend(ax)


def draw_seed_differences(differences: pd.DataFrame, ax: Axes) -> None:
    """A row of points for each end of the range, a point per seed.

    Args:
        differences: end (MTD), seed, difference, as `compare_seeds` of the topic score returns
            them.
    """
    ends = sorted(differences["end"].unique())
    rows = differences["end"].map(ends.index)
    ax.axvline(0, color=RUN, linewidth=1)
    ax.scatter(differences["difference"], rows, color=ACCENT, alpha=0.6, s=26, linewidths=0)
    texts = [
        f"Seed {seed}: {difference:+.2f} points to MTD {format_mtd(end)}"
        for end, seed, difference in differences.itertuples(index=False)
    ]
    labels = pd.DataFrame({"text": texts, "href": "#score", "seed": differences["seed"]})
    add_spots(ax, differences["difference"], rows, labels)
    ax.set_yticks(range(len(ends)), [f"less MTD {format_mtd(end)}" for end in ends])
    ax.set_ylim(len(ends) - 0.5, -0.5)
    ax.set_xlabel("points")


def draw_deviations(curve: pd.DataFrame, published: pd.DataFrame, ax: Axes) -> None:
    """A study's curve and the paper's, each less its mean over its own levels.

    Args:
        curve: `compute_paired_curve`.
        published: mtd, mean, low, high.
    """
    centre = float(published["mean"].mean())
    values = {name: published[name] - centre for name in ("mean", "low", "high")}
    ax.axhline(0, color=RUN, linewidth=1)
    draw_curve(curve, ax, label="this study")
    draw_curve(published.assign(**values), ax, label="paper", colour=OTHER, marker=MARKERS[3])
    label_mtd_axis(ax, pd.concat([curve["mtd"], published["mtd"]]))
    keep_span(ax)
    ax.set_ylabel("deviation from the mean\nover its levels, points")
    add_legend(ax)


def draw_published_curve(curve: pd.DataFrame, ax: Axes, *, name: str) -> None:
    """The paper's curve, on axes of its own: other data, so another height.

    Args:
        curve: mtd, mean, low, high.
        name: of the vertical axis.
    """
    draw_curve(curve, ax, label="published mean", colour=OTHER, marker=MARKERS[3])
    label_mtd_axis(ax, curve["mtd"])
    label_score(ax, name)
    add_legend(ax)


def draw_conditions(
    curves: Mapping[str, pd.DataFrame], ax: Axes, *, name: str, distance: str = ""
) -> None:
    """A line and a band for each condition.

    Args:
        curves: label -> mtd, mean, low, high; text and trial too where the means state them.
        name: of the vertical axis.
        distance: of the horizontal one, if MTD is not in steps.
    """
    for place, (label, curve) in enumerate(curves.items()):
        colour, marker = look_of(place)
        draw_curve(curve, ax, label=label, colour=colour, marker=marker)
    every = pd.concat(list(curves.values()))
    keep_points_in_view(every, every["mean"], ax)
    label_mtd_axis(ax, every["mtd"])
    if distance:
        ax.set_xlabel(distance)
    label_score(ax, name)
    add_legend(ax)


def draw_methods(table: pd.DataFrame, ax: Axes, *, names: Mapping[str, str], name: str) -> None:
    """A curve or a point for each method with an MTD, a horizontal line for each without.

    Args:
        table: `compute_methods`, at least one row with an MTD; text and trial too where the means
            state them.
        names: method -> its label.
        name: of the vertical axis.
    """
    lines = 0
    for place, (method, rows) in enumerate(table.groupby("method")):
        colour, marker = look_of(place)
        label = printable(names.get(str(method), str(method)))
        curve = rows[np.isfinite(rows["mtd"])]
        if len(curve):
            draw_curve(curve, ax, label=label, colour=colour, marker=marker)
            ax.vlines(curve["mtd"], curve["low"], curve["high"], color=colour, linewidth=1)
        for _, row in rows[rows["mtd"].isna()].iterrows():
            ax.axhline(
                row["mean"],
                color=colour,
                linestyle=LINES[lines % len(LINES)],
                linewidth=1.6,
                label=f"{label} (no MTD)",
            )
            if np.isfinite(row["low"]):
                ax.axhspan(row["low"], row["high"], color=colour, alpha=0.1, linewidth=0)
            # a marker at the end of the line, so that methods differ in more than colour
            edge = ax.get_yaxis_transform()
            ax.plot(1, row["mean"], marker, color=colour, transform=edge, clip_on=False)
            if "text" in row:
                add_spots(ax, [1.0], [row["mean"]], row.to_frame().T, transform=edge)
            lines += 1
    label_mtd_axis(ax, table["mtd"].dropna())
    label_score(ax, name)
    add_legend(ax)
