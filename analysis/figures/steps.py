"""Figures over training steps: collapse, training curves, and what is retained of a key."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.distance import draw_curve, draw_runs, keep_points_in_view, scatter_by_mtd
from analysis.figures.spots import add_run_spots, add_spots
from analysis.figures.style import (
    BAND,
    COLOURS,
    INK,
    OTHER,
    RUN,
    add_legend,
    add_mtd_colours,
    label_mtd_axis,
    label_score,
    look_of,
    mtd_norm,
)

# Not seaborn: intervals are not its own, and its `lineplot` has no open markers of another size
# for lines that coincide.

_MOST_MARKERS = 40


def draw_structures(table: pd.DataFrame, ax: Axes, *, value: str, label: str) -> None:
    """A line for each structure over steps, with a band where the value is a mean score.

    Args:
        table: structure (its name), step, `value`, and for "mean" low and high.
        label: of the value.
    """
    for place, (name, curve) in enumerate(table.groupby("structure", sort=False)):
        colour, marker = look_of(place)
        # Lines may coincide: every second is dashed, its neighbours' markers open and larger.
        dashed = place % 2 == 1
        size = 5 if dashed else 9
        look: dict[str, Any] = {"color": colour, "marker": marker}
        look["linestyle"] = "--" if dashed else "-"
        look["markersize"] = size if len(curve) <= _MOST_MARKERS else 0
        look["markerfacecolor"] = colour if dashed else "none"
        ax.plot(curve["step"], curve[value], label=str(name), **look)
        if value == "mean":
            band: dict[str, Any] = {"color": colour, "alpha": 0.14, "linewidth": 0, "label": BAND}
            ax.fill_between(curve["step"], curve["low"], curve["high"], **band)
    if value == "mean":
        keep_points_in_view(table, table["mean"], ax)
    ax.set_xlabel("training step")
    _tick_steps(ax, table["step"], most=10)
    if value == "mean":
        label_score(ax, label)
    else:
        ax.set_ylabel(label)


def _tick_steps(ax: Axes, steps: pd.Series, *, most: int) -> None:
    """Ticks at evaluated steps: all, or of many so many at even steps."""
    evaluated = sorted(steps.unique())
    every = -(-len(evaluated) // most) if evaluated else 1
    ax.set_xticks(evaluated[::-every][::-1])


def draw_training(curves: pd.DataFrame, ax: Axes, *, value: str, label: str) -> None:
    """A line for each trial over its steps, coloured by MTD where that varies, else by method.

    `curves` has number, step, `value`, mtd, method, text and trial, a row per trial and step.
    """
    known = curves[curves[value].notna()]
    levels = known["mtd"][known["mtd"] > 0]
    norm = mtd_norm(levels.to_numpy()) if levels.nunique() > 1 else None
    methods = sorted(curves["method"].unique())
    few = known.groupby("number").size().max() <= _MOST_MARKERS // 2 if len(known) else False
    for _, curve in known.groupby("number"):
        mtd, method = curve["mtd"].iloc[0], curve["method"].iloc[0]
        colour, marker = look_of(methods.index(method))
        if norm is not None:
            colour = COLOURS(norm(mtd)) if mtd > 0 else RUN
        look: dict[str, Any] = {"color": colour, "marker": marker if few else ""}
        ax.plot(curve["step"], curve[value], linewidth=1, alpha=0.8, markersize=3.5, **look)
    ends = known.groupby("number").tail(1)
    add_spots(ax, ends["step"], ends[value], ends)
    _name_colours(ax, methods, norm, untraced=bool((known["mtd"] <= 0).any()))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    ax.set_xlabel("training step")
    if value == "score":
        _tick_steps(ax, known["step"], most=6)
        label_score(ax, label)
    else:
        ax.set_ylabel(label)


def _name_colours(ax: Axes, methods: list[str], norm: Normalize | None, *, untraced: bool) -> None:
    """The colour scale of MTD or the colours of the methods, where there are several."""
    if norm is not None:
        add_mtd_colours(ax, norm)
    looks = {name: look_of(place) for place, name in enumerate(methods)}
    if norm is not None:
        looks = {name: (INK, marker) for name, (_, marker) in looks.items()}
    if len(methods) < 2:
        looks = {"no MTD": (RUN, "")} if norm is not None and untraced else {}
    handles = [
        Line2D([], [], color=colour, marker=marker, label=name)
        for name, (colour, marker) in looks.items()
    ]
    if handles:
        add_legend(ax, handles=handles)


# Not seaborn: the colours are those of a continuous scale of MTD, and runs beyond the longest lag
# have a marker of their own.


def draw_retained(curves: pd.DataFrame, ax: Axes) -> None:
    """What is retained of the keys, `compute_retained_curves`: a line per level of MTD."""
    norm = mtd_norm(curves["mtd"].to_numpy())
    for _, curve in curves.groupby("mtd"):
        colour = COLOURS(norm(float(curve["mtd"].iloc[0])))
        # no bands: those of many levels would cover each other
        ax.plot(curve["lag"], curve["mean"], color=colour, marker="o", markersize=4, linewidth=1.4)
    add_mtd_colours(ax, norm)
    ax.axhline(0.5, color=INK, linestyle="--", linewidth=1)
    lags = sorted(curves["lag"].unique())
    ax.set_xscale("log", base=2)
    ax.set_xticks(lags, [f"{lag:g}" for lag in lags])
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("retained, (c − b)/(1 − b)")


def draw_half_lives(runs: pd.DataFrame, curve: pd.DataFrame, ax: Axes) -> None:
    """The half-life of each run's keys and the mean against MTD.

    runs  `compute_history_runs`; curve  `summarise_half_lives` by MTD. A run beyond the longest lag
    is a triangle at that lag.
    """
    reached, beyond = _split(runs)
    if len(reached):
        draw_runs(reached, ax, value="half_life")
        # the line has a gap at a level without a mean
        draw_curve(curve, ax, label="mean over seeds")
        keep_points_in_view(curve, reached["half_life"], ax)
    if len(beyond):
        ax.plot(beyond["mtd"], beyond["longest_lag"], "^", color=OTHER, label=_BEYOND)
        add_run_spots(ax, beyond, beyond["mtd"], beyond["longest_lag"], value="longest_lag")
    label_mtd_axis(ax, curve["mtd"])
    ax.set_ylabel("half-life (steps)")
    add_legend(ax)


def draw_score_by_half_life(runs: pd.DataFrame, ax: Axes, *, name: str) -> None:
    """The score of each of `compute_history_runs` against its half-life, coloured by MTD."""
    norm = mtd_norm(runs["mtd"].to_numpy())
    for part, marker, column in zip(_split(runs), "o^", ("half_life", "longest_lag"), strict=True):
        label = _BEYOND if marker == "^" and len(part) else None
        scatter_by_mtd(part, ax, column, "score", norm, value=column, marker=marker, label=label)
    add_mtd_colours(ax, norm)
    if np.isinf(runs["half_life"]).any():
        add_legend(ax)
    ax.set_xlabel("half-life (steps)")
    label_score(ax, name)


_BEYOND = "longer than the longest lag"


def _split(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs with a finite half-life, and those beyond the longest lag."""
    beyond = np.isinf(runs["half_life"])
    return runs[~beyond], runs[beyond]
