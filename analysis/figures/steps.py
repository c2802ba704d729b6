"""Figures over training steps: collapse, training curves, and what is retained of a key."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from mtdlab.analysis.data.points import MOST_MARKED
from mtdlab.analysis.figures import style
from mtdlab.analysis.figures.distance import (
    draw_curve,
    draw_runs,
    keep_points_in_view,
    scatter_by_mtd,
)
from mtdlab.analysis.figures.spots import add_run_spots, add_spots

_LONGEST = 20
"""Letters of a name at the end of a line: of longer names the axes would be narrow."""


def draw_structures(table: pd.DataFrame, ax: Axes, *, value: str, label: str) -> None:
    """A line for each structure over steps, with a band where the value is a mean score.

    `table` has structure (its name), step, `value`, and for "mean" low and high.
    """
    for place, (name, curve) in enumerate(table.groupby("structure", sort=False)):
        colour, marker = style.mark_of(place)
        # Lines may coincide: every second is dashed, its neighbours' markers open and larger.
        dashed = place % 2 == 1
        size = 5 if dashed else 9
        options: dict[str, Any] = {"color": colour, "marker": marker}
        options["linestyle"] = "--" if dashed else "-"
        options["markersize"] = size if len(curve) <= style.MOST_MARKERS else 0
        options["markerfacecolor"] = colour if dashed else "none"
        ax.plot(curve["step"], curve[value], label=str(name), **options)
        if value == "mean":
            band: dict[str, Any] = {"color": colour, "alpha": 0.14, "linewidth": 0}
            ax.fill_between(curve["step"], curve["low"], curve["high"], label=style.BAND, **band)
    ax.set_xlabel("training step")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=10))
    if value == "mean":
        keep_points_in_view(table, table["mean"], ax)
    style.label_score(ax, label, is_score=value == "mean")
    style.add_legend(ax)


def draw_training(
    curves: pd.DataFrame, means: pd.DataFrame, ax: Axes, *, value: str, label: str
) -> None:
    """The mean of each group of trials over the steps with its band, and faint lines of trials.

    Of more than six groups, the same without bands and coloured by method where that varies, else
    a line for each trial, coloured by MTD. `curves` have number, step, `value`, method, mtd (0 for
    none), group, text and trial; `means` is `compute_training_means`. Long names of groups are in a
    legend in place of at the ends of their lines.
    """
    known = curves[curves[value].notna()]
    few = means["group"].nunique() <= MOST_MARKED
    if few:
        _draw_training_means(known, means, ax, value=value)
    else:
        _draw_training_lines(known, means, ax, value=value)
    ends = known.groupby("number").tail(1)
    add_spots(ax, ends["step"], ends[value], ends)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    ax.set_xlabel("training step")
    style.label_score(ax, label, is_score=value == "score")
    if few and means["group"].str.len().max() > _LONGEST:
        style.add_legend(ax)
    elif few:
        last = means.groupby("group", sort=False).tail(1)
        names = last["group"] if len(last) > 1 else [""] * len(last)
        colours = [style.mark_of(place)[0] for place in range(len(last))]
        style.name_ends(ax, list(zip(last["mean"], names, colours, strict=True)))


def _draw_training_means(known: pd.DataFrame, means: pd.DataFrame, ax: Axes, *, value: str) -> None:
    marked = known.groupby("number").size().max() <= style.MOST_MARKERS // 2
    for place, (group, rows) in enumerate(means.groupby("group", sort=False)):
        colour, marker = style.mark_of(place)
        for _, curve in known[known["group"] == group].groupby("number"):
            ax.plot(curve["step"], curve[value], color=colour, linewidth=0.7, alpha=0.3)
        options: dict[str, Any] = {"color": colour, "marker": marker if marked else "", "zorder": 4}
        options["label"] = style.printable(str(group))
        ax.plot(rows["step"], rows["mean"], linewidth=1.6, markersize=4.5, **options)
        band: dict[str, Any] = {"color": colour, "alpha": 0.14, "linewidth": 0}
        ax.fill_between(rows["step"], rows["low"], rows["high"], **band)


def _draw_training_lines(known: pd.DataFrame, means: pd.DataFrame, ax: Axes, *, value: str) -> None:
    if known["method"].nunique() > 1:
        for place, (method, curves) in enumerate(known.groupby("method")):
            turn = place // len(style.BATCHES)
            line = style.line_of(turn - 1) if turn else "-"
            options: dict[str, Any] = {"color": style.mark_of(place)[0], "ls": line}
            for _, curve in curves.groupby("number"):
                ax.plot(curve["step"], curve[value], alpha=0.3, linewidth=0.7, **options)
            for _, mean in means[means["group"].isin(curves["group"])].groupby("group"):
                ax.plot(mean["step"], mean["mean"], linewidth=1.6, zorder=4, **options)
            ax.plot([], [], label=style.printable(str(method)), **options)
        style.add_legend(ax)
        return
    traced = known.loc[known["mtd"] > 0, "mtd"]
    marks = style.LevelMarks(traced) if len(traced) else None
    for _, curve in known.groupby("number"):
        mtd = float(curve["mtd"].iloc[0])
        colour = marks.mark_of(mtd)[0] if marks and mtd > 0 else style.RUN
        ax.plot(curve["step"], curve[value], linewidth=1, alpha=0.8, color=colour)
    if marks and (known["mtd"] <= 0).any():
        ax.plot([], [], color=style.RUN, label="no MTD")
    if marks:
        marks.explain(ax)


def draw_retained(curves: pd.DataFrame, ax: Axes) -> None:
    """What is retained of the keys, `compute_retained_curves`: a line per level of MTD."""
    marks = style.LevelMarks(curves["mtd"])
    for mtd, curve in curves.groupby("mtd"):
        colour, marker = marks.mark_of(float(str(mtd)))
        # no bands: those of many levels would cover each other
        options: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 4}
        ax.plot(curve["lag"], curve["mean"], linewidth=1.4, **options)
    ax.axhline(0.5, color=style.INK, linestyle="--", linewidth=1)
    lags = sorted(curves["lag"].unique())
    ax.set_xscale("log", base=2)
    ax.set_xticks(lags, [f"{lag:g}" for lag in lags])
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("retained, (c − b)/(1 − b)")
    marks.explain(ax)


def draw_half_lives(runs: pd.DataFrame, curve: pd.DataFrame, ax: Axes) -> None:
    """The half-life of each run's keys and the mean against MTD.

    runs  `compute_history_runs`; curve  `summarise_half_lives` by MTD. A run beyond the longest lag
    is a triangle at that lag.
    """
    reached, beyond = _split(runs)
    if len(reached):
        draw_runs(reached, ax, value="half_life")
        # the line has a gap at a level without a mean
        draw_curve(curve, ax)
        keep_points_in_view(curve, reached["half_life"], ax)
    if len(beyond):
        ax.plot(beyond["mtd"], beyond["longest_lag"], "^", color=style.OTHER, label=_BEYOND)
        add_run_spots(ax, beyond, beyond["mtd"], beyond["longest_lag"], value="longest_lag")
    style.label_mtd_axis(ax, curve["mtd"])
    ax.set_ylabel("half-life (steps)")
    style.add_legend(ax)


def draw_score_by_half_life(runs: pd.DataFrame, ax: Axes, *, name: str) -> None:
    """The score of each of `compute_history_runs` against its half-life, coloured by MTD."""
    marks = style.LevelMarks(runs["mtd"])
    reached, beyond = _split(runs)
    scatter_by_mtd(reached, ax, "half_life", "score", marks, value="half_life")
    if len(beyond):
        scatter_by_mtd(beyond, ax, "longest_lag", "score", marks, value="longest_lag", marker="^")
        ax.plot([], [], "^", color=style.INK, label=_BEYOND)
    ax.set_xlabel("half-life (steps)")
    style.label_score(ax, name)
    marks.explain(ax)


def draw_score_by_similarity(runs: pd.DataFrame, ax: Axes, *, name: str) -> None:
    """The score of each run against its column similarity, coloured by MTD."""
    marks = style.LevelMarks(runs["mtd"])
    scatter_by_mtd(runs, ax, "similarity", "score", marks, value="similarity")
    ax.set_xlabel("similarity of keys in use (mean cosine)")
    style.label_score(ax, name)
    marks.explain(ax)


_BEYOND = "longer than the longest lag"


def _split(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs with a finite half-life, and those beyond the longest lag."""
    beyond = np.isinf(runs["half_life"])
    return runs[~beyond], runs[beyond]
