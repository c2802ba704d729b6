"""Figures of one experiment: values along a line, rows of text, a grid, an interaction.

A table has a row per value, as `Comparison.table`; `names` are those of its rows, in order. `label`
is the label of the axis of values, `name` that of the axis of scores.
"""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.settings import format_value, name_setting, write_setting
from mtdlab.analysis.figures import style
from mtdlab.analysis.figures.distance import keep_points_in_view, scatter_runs
from mtdlab.analysis.figures.spots import add_spots
from mtdlab.analysis.inference.claims import SMALL, SMALLER

# The colour of the highest cell, light enough for dark figures on every cell.
_CELL = "#74b9dc"
_MOST_NAMES = 12
_LINE = 22
_ASIDE = 0.1
# Points below the best at which the colours end, so that one collapsed cell does not turn
# all the others alike.
_SPAN = 5.0
_WIDE = 300
# The letters of a line of a claim, and the ticks in points on either side of 0.
_WIDE_CLAIM, _NARROW_CLAIM = (46, (2, 10, 50)), (32, (10,))
_VERDICTS = {
    "replicated": style.mark_of(0),
    SMALLER: (style.mark_of(0)[0], "s"),
    "contradicted": style.mark_of(4),
    SMALL: (style.RUN, "s"),
    "undecided": (style.RUN, "o"),
}
_LINEAR = 2.0
_LEGIBLE = 26
_SHIFT = 0.06


def draw_line(
    table: pd.DataFrame,
    ax: Axes,
    *,
    names: Sequence[str],
    runs: pd.DataFrame,
    label: str,
    name: str,
) -> None:
    """The mean at each value with its interval, and every run behind it.

    `table` has place, mean, low, high, seeds in rising order of the values; `runs` have the place
    of their value's row, and score.
    """
    places = table["place"]
    scatter_runs(runs, ax, runs["place"] - _ASIDE, runs["score"], value="score")
    interval: dict[str, Any] = {"color": style.ACCENT, "linewidth": 2, "label": style.BAND}
    ax.vlines(places, table["low"], table["high"], **interval)
    ax.plot(places, table["mean"], "o-", color=style.ACCENT, label="mean over seeds")
    stated = describe_means(table, runs, by=["place"], write=style.score_format())
    add_spots(ax, places, table["mean"], stated)
    keep_points_in_view(table, runs["score"], ax)
    _name_places(ax, places, names, label)
    style.label_score(ax, name)
    style.add_legend(ax)


def _name_places(ax: Axes, places: pd.Series, names: Sequence[str], label: str) -> None:
    """Label ticks at the places; a label that would touch the one before is left out."""
    ax.set_xlim(-0.5, len(names) - 0.5)
    texts, at = [style.printable(name) for name in names], places.tolist()
    kept = style.choose_apart(ax, at, texts)
    ax.set_xticks([at[i] for i in kept], [texts[i] for i in kept], parse_math=False)
    ax.set_xlabel(label)


def draw_rows(
    table: pd.DataFrame,
    ax: Axes,
    *,
    names: Sequence[str],
    label: str,
    name: str,
    drawn: str = "mean over seeds",
    interval: str = style.BAND,
) -> None:
    """The mean and interval of each row of text; `table` has mean, low, high of what is `drawn`.

    `interval` names what the bars are in the legend.
    """
    rows = np.arange(len(table))
    ax.hlines(rows, table["low"], table["high"], color=style.ACCENT, linewidth=2, label=interval)
    ax.plot(table["mean"], rows, "o", color=style.ACCENT, label=drawn)
    add_spots(ax, table["mean"], rows, table)
    _name_rows(ax, names, label, name)
    style.add_legend(ax)


def draw_published(
    table: pd.DataFrame, ax: Axes, *, names: Sequence[str], label: str, name: str
) -> None:
    """Draw the published score at each place; of a table without places as rows of text."""
    if "place" in table:
        ax.plot(table["place"], table["published"], "D-", color=style.OTHER)
        _name_places(ax, table["place"], names, label)
        style.label_score(ax, name)
    else:
        ax.plot(table["published"], np.arange(len(table)), "D", color=style.OTHER)
        _name_rows(ax, names, label, name)


def draw_claims(table: pd.DataFrame, ax: Axes) -> None:
    """The difference of each claim with its interval, and the published one where one is printed.

    `table` has claim and verdict (text), mean, low, high and published, in points. The axis is
    linear up to two points from 0 and logarithmic beyond; an interval may go on behind the edge.
    """
    rows = np.arange(len(table))
    ax.axvline(0, color=style.RUN, linewidth=1)
    for verdict, (colour, marker) in _VERDICTS.items():
        if (at := rows[table["verdict"] == verdict]).size:
            own = table.iloc[at]
            ax.hlines(at, own["low"], own["high"], color=colour, linewidth=2)
            ax.plot(own["mean"], at, marker, color=colour, label=verdict)
    options: dict[str, Any] = {"color": style.PAPER[0], "markerfacecolor": "none"}
    ax.plot(table["published"], rows, style.PAPER[1], **options)
    furthest = 1.3 * table[["mean", "published"]].abs().max().max()
    letters, points = _WIDE_CLAIM if style.axes_size(ax)[0] > _WIDE else _NARROW_CLAIM
    ticks = [sign * tick for tick in points if tick < furthest for sign in (-1, 1)]
    ax.set_xscale("symlog", linthresh=_LINEAR)
    ax.set_xticks([0, *ticks], ["0", *(f"{tick:+g}" for tick in ticks)])
    ax.set_xticks([], minor=True)
    ax.set_xlim(-furthest, furthest)
    texts = ["\n".join(textwrap.wrap(claim, letters)) for claim in table["claim"]]
    ax.set_yticks(rows, texts, parse_math=False)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlabel("difference, points")


def _name_rows(ax: Axes, names: Sequence[str], label: str, name: str) -> None:
    # long names on several lines, so that the axes keep most of the width
    texts = ["\n".join(_wrap(style.printable(text))) or text for text in names]
    ax.set_yticks(range(len(names)), texts, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    low, high = ax.get_xlim()
    if high - low < (span := style.least_span()):
        ax.set_xlim((low + high - span) / 2, (low + high + span) / 2)
    style.show_as_read(ax.xaxis)
    ax.set_xlabel(name, parse_math=False)
    ax.set_ylabel(label)


def _wrap(text: str) -> list[str]:
    """A name on lines; what stands in brackets after a method begins a line of its own."""
    name, bracket, rest = text.partition(" (")
    if not bracket or len(text) <= _LINE:
        return textwrap.wrap(text, _LINE)
    return [*textwrap.wrap(name, _LINE), *textwrap.wrap(f"({rest}", _LINE)]


def draw_grid(
    table: pd.DataFrame,
    ax: Axes,
    *,
    by: Sequence[str],
    value: str,
    labels: Sequence[str],
    name: Callable[[Any], str],
) -> None:
    """A grid of cells, the first setting down and the second across.

    Values are written into the cells where they are wide enough. `table` has the two columns `by`
    and `value`, one row per cell; missing cells stay white. `labels` are those of the two settings,
    `name` gives the text of a value of the first one.
    """
    import seaborn  # half a second, which only grids need

    grid = table.pivot(index=by[0], columns=by[1], values=value)
    cells = grid.to_numpy(dtype=np.float64)
    high, written = np.nanmax(cells), style.score_format()
    texts = np.vectorize(written.as_read)(cells)
    wide = style.axes_size(ax)[0] / grid.shape[1] > _LEGIBLE
    seaborn.heatmap(
        grid,
        ax=ax,
        cmap=seaborn.light_palette(_CELL, as_cmap=True),
        vmin=max(np.nanmin(cells), high - _SPAN),
        vmax=high,
        annot=texts if wide and grid.shape[1] <= _MOST_NAMES else False,
        fmt=f".{written.decimals}f",
        linewidths=1,
        cbar=False,
        xticklabels=[f"{size:g}" for size in grid.columns],
        yticklabels=[*map(name, grid.index)],
    )
    ax.tick_params(axis="y", rotation=0)
    ax.set_xlabel(labels[1])
    ax.set_ylabel(labels[0])
    ax.grid(visible=False)
    across = grid.columns.get_indexer(pd.Index(table[by[1]])) + 0.5
    down = grid.index.get_indexer(pd.Index(table[by[0]])) + 0.5
    add_spots(ax, across, down, table)


def draw_interaction(cells: pd.DataFrame, ax: Axes, *, first: str, second: str) -> None:
    """The deviation of the score over the values of one setting, a line for each of another.

    `cells` have first, second (values), mean, low, high; `first` and `second` name the settings.
    """
    values = list(cells["first"].unique())
    groups = list(cells.groupby("second", sort=False))
    for place, (value, rows) in enumerate(groups):
        colour, marker = style.mark_of(place)
        shift = _SHIFT * (place - (len(groups) - 1) / 2)
        at = np.array([values.index(value) for value in rows["first"]]) + shift
        text = style.printable(write_setting(second, value))
        ax.plot(at, rows["mean"], marker=marker, color=colour, label=text)
        ax.vlines(at, rows["low"], rows["high"], color=colour, linewidth=1.2)
    texts = [style.printable(format_value(first, value)) for value in values]
    ax.set_xticks(range(len(values)), texts, parse_math=False)
    ax.set_xlim(-0.5, len(values) - 0.5)
    ax.set_xlabel(style.printable(name_setting(first)), parse_math=False)
    style.label_deviation(ax, "difference from the\nseed's mean")
    style.add_legend(ax)
