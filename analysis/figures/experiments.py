"""Figures of one experiment: values along a line, rows of text, a grid, boxes of runs.

A table has a row per value, as `compute_experiment` gives it; names are its rows' own, in order.
"""

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from analysis.figures.distance import keep_points_in_view
from analysis.figures.style import ACCENT, BATCHES, INK, OTHER, RUN, add_legend, is_heavy

# Grids are seaborn's. Means and intervals are not: its estimators resample, and these are t
# intervals over seeds. Boxes are not either: seaborn 0.13.2 passes matplotlib's `bxp` the
# argument `vert`, deprecated in matplotlib 3.11 and absent from 3.13.

# The colour of the highest cell, light enough for dark figures on every cell.
_CELL = "#74b9dc"
_MOST_LETTERS = 40
_MOST_NAMES = 12
_MOST_PATCHES = 6
_LINE = 22
_ASIDE = 0.1
# Points below the best at which the colours end, so that one collapsed cell does not turn
# all the others alike.
_SPAN = 5.0
_GROUP = 0.8


def printable(name: str) -> str:
    """The name in characters that every font has, and not longer than a label can be."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in name)[:_MOST_LETTERS]


def draw_line(
    table: pd.DataFrame, ax: Axes, *, names: Sequence[str], runs: pd.DataFrame, label: str
) -> None:
    """The mean at each value with its interval, evenly spaced, and every run behind it.

    table  mean, low, high, a row per value in rising order.
    runs   place (of its value's row) and score, a row per run; label: of the horizontal axis.
    """
    places = np.arange(len(table))
    ax.scatter(
        runs["place"] - _ASIDE,
        runs["score"],
        s=14,
        color=RUN,
        alpha=0.55,
        linewidths=0,
        label="one run",
        rasterized=is_heavy(len(runs)),
    )
    ax.vlines(places, table["low"], table["high"], color=ACCENT, linewidth=2)
    ax.plot(places, table["mean"], "o-", color=ACCENT, label="mean over seeds")
    keep_points_in_view(table, runs["score"], ax)
    _name_places(ax, names, label)
    ax.set_ylabel("score x 100")
    add_legend(ax)


def draw_published_line(table: pd.DataFrame, ax: Axes, *, names: Sequence[str], label: str) -> None:
    """The published value at each value, evenly spaced. table  published, a row per value."""
    ax.plot(np.arange(len(table)), table["published"], "D-", color=OTHER)
    _name_places(ax, names, label)
    ax.set_ylabel("Spearman x 100")


def _name_places(ax: Axes, names: Sequence[str], label: str) -> None:
    shown = range(0, len(names), -(-len(names) // _MOST_NAMES))
    ax.set_xticks(shown, [printable(names[place]) for place in shown], parse_math=False)
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_xlabel(label)


def draw_rows(table: pd.DataFrame, ax: Axes, *, names: Sequence[str], label: str) -> None:
    """The mean and interval of each row of text. table  mean, low, high."""
    rows = np.arange(len(table))
    ax.hlines(rows, table["low"], table["high"], color=ACCENT, linewidth=2)
    ax.plot(table["mean"], rows, "o", color=ACCENT)
    _name_rows(ax, names, label)


def draw_published_rows(table: pd.DataFrame, ax: Axes, *, names: Sequence[str], label: str) -> None:
    """The published value of each row of text. table  published."""
    ax.plot(table["published"], np.arange(len(table)), "D", color=OTHER)
    _name_rows(ax, names, label)


def _wrapped(name: str) -> str:
    """The name on two lines where it is long, so that the axes keep most of the width."""
    return "\n".join(textwrap.wrap(printable(name), _LINE)) or name


def _name_rows(ax: Axes, names: Sequence[str], label: str) -> None:
    ax.set_yticks(range(len(names)), [_wrapped(name) for name in names], parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel("score x 100")
    ax.set_ylabel(label)


def draw_grid(
    table: pd.DataFrame,
    ax: Axes,
    *,
    by: Sequence[str],
    value: str,
    labels: Sequence[str],
    names: Sequence[str],
) -> None:
    """A grid of cells, the first setting down and the second across.

    table   the two columns `by` and `value`, one row per cell; missing cells stay white.
    labels  of the two settings; names  of the first setting's values, in rising order.

    Values are written into the cells where at most 12 stand side by side.
    """
    grid = table.pivot(index=by[0], columns=by[1], values=value)
    cells = grid.to_numpy(dtype=np.float64)
    high = np.nanmax(cells)
    seaborn.heatmap(
        grid,
        ax=ax,
        cmap=seaborn.light_palette(_CELL, as_cmap=True),
        vmin=max(np.nanmin(cells), high - _SPAN),
        vmax=high,
        annot=grid.shape[1] <= _MOST_NAMES,
        fmt=".2f",
        linewidths=1,
        cbar=False,
        xticklabels=[f"{size:g}" for size in grid.columns],
        yticklabels=list(names),
    )
    ax.tick_params(axis="y", rotation=0)
    ax.set_xlabel(labels[1])
    ax.set_ylabel(labels[0])
    ax.grid(visible=False)


def draw_boxes(
    runs: pd.DataFrame,
    ax: Axes,
    *,
    by: Sequence[str],
    labels: Sequence[str],
    names: Sequence[str],
) -> None:
    """A box over seeds for each cell: groups by the second setting, colours by the first.

    runs    the two columns `by`, seed and score, a row per run; a seed's runs are averaged.
    labels  of the two settings; names  of the first setting's values, in rising order.
    """
    seeds = runs.groupby([*by, "seed"])["score"].mean().reset_index()
    inner, outer = sorted(seeds[by[0]].unique()), sorted(seeds[by[1]].unique())
    width = _GROUP / len(inner)
    for (first, second), cell in seeds.groupby(list(by)):
        turn = inner.index(first)
        place = outer.index(second) + (turn - (len(inner) - 1) / 2) * width
        colour = BATCHES[turn % len(BATCHES)]
        boxes = ax.boxplot(
            cell["score"],
            positions=[place],
            widths=0.8 * width,
            patch_artist=True,
            manage_ticks=False,
            showfliers=False,
            medianprops={"color": colour, "linewidth": 2},
            whiskerprops={"color": INK},
            capprops={"color": INK},
        )
        for box in boxes["boxes"]:
            box.set(facecolor=colour, alpha=0.3)
        ax.plot(np.full(len(cell), place), cell["score"], ".", color=colour, markersize=4)
    ax.set_xticks(range(len(outer)), [f"{value:g}" for value in outer])
    ax.set_xlim(-0.5, len(outer) - 0.5)
    ax.set_xlabel(labels[1])
    ax.set_ylabel("score x 100")
    patches = [
        Patch(facecolor=BATCHES[turn % len(BATCHES)], alpha=0.5, label=name)
        for turn, name in enumerate(names)
    ]
    add_legend(ax, columns=min(len(patches), _MOST_PATCHES), title=labels[0], handles=patches)
