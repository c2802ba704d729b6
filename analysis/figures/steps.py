"""Figures over training steps: collapse, and the training curves of trials."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis.figures.distance import keep_points_in_view
from analysis.figures.scales import COLOURS, add_mtd_colours, label_score, mtd_norm
from analysis.figures.spots import add_spots
from analysis.figures.style import BAND, INK, RUN, add_legend, look_of

# Not seaborn: intervals are not its own, and its `lineplot` has no open markers of another size
# for lines that coincide.

_MOST_MARKERS = 40


def draw_structures(table: pd.DataFrame, ax: Axes, *, value: str, label: str) -> None:
    """A line for each structure over steps, with a band where the value is a mean score.

    table  structure (its name), step, `value`, and for "mean" low and high; label  of the value.
    """
    for place, (name, curve) in enumerate(table.groupby("structure", sort=False)):
        colour, marker = look_of(place)
        # Lines may coincide: every second is dashed, its neighbours' markers open and larger.
        dashed = place % 2 == 1
        size = 5 if dashed else 9
        ax.plot(
            curve["step"],
            curve[value],
            "--" if dashed else "-",
            color=colour,
            label=str(name),
            marker=marker,
            markersize=size if len(curve) <= _MOST_MARKERS else 0,
            markerfacecolor=colour if dashed else "none",
        )
        if value == "mean":
            ax.fill_between(
                curve["step"],
                curve["low"],
                curve["high"],
                color=colour,
                alpha=0.14,
                linewidth=0,
                label=BAND,
            )
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

    curves  number, step, `value`, mtd, method, text and trial, a row per trial and step.
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
        ax.plot(
            curve["step"],
            curve[value],
            color=colour,
            linewidth=1,
            alpha=0.8,
            marker=marker if few else "",
            markersize=3.5,
        )
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
    names: dict[str, tuple[object, str]] = {}
    if len(methods) > 1:
        names = {
            name: (INK if norm is not None else look_of(place)[0], look_of(place)[1])
            for place, name in enumerate(methods)
        }
    elif norm is not None and untraced:
        names = {"no MTD": (RUN, "")}
    handles = [
        Line2D([], [], color=colour, marker=marker, label=name)  # type: ignore[arg-type]
        for name, (colour, marker) in names.items()
    ]
    if handles:
        add_legend(ax, handles=handles)
