"""Figures of the settings: parallel coordinates, interactions, costs, the parts of an MTD."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator

from mtdlab.analysis.data.points import format_component
from mtdlab.analysis.data.settings import format_value, name_setting, write_setting
from mtdlab.analysis.figures import style
from mtdlab.analysis.figures.spots import add_spots
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.trace import PARTS

_SHIFT = 0.06


def varied_components(cells: pd.DataFrame) -> list[str]:
    """Which of ema_decay, queue_size and batch_size differ between configurations."""
    return [name for name in PARTS if name in cells and cells[name].nunique() > 1]


def draw_component_axis(cells: pd.DataFrame, ax: Axes) -> None:
    """Draw the only component that varies as a second axis above, once the limits are known.

    `cells` has mtd and the components, a row per configuration; nothing is drawn for several.
    """
    varied = varied_components(cells)
    if len(varied) != 1 or cells["mtd"].nunique() < len(cells):
        return
    fixed = [
        f"{symbol} = {format_component(float(cells[name].iloc[0]))}"
        for name, symbol in PARTS.items()
        if name in cells and name not in varied and np.isfinite(cells[name].iloc[0])
    ]
    texts = [format_component(float(value)) for value in cells[varied[0]]]
    name = f"{PARTS[varied[0]]} ({', '.join(fixed)})" if fixed else PARTS[varied[0]]
    style.add_top_axis(ax, cells["mtd"].tolist(), texts, name)


def draw_configurations(cells: pd.DataFrame, ax: Axes) -> None:
    """The mean of each configuration: colour by the first component, marker by the second.

    `cells` have mtd, the components and mean, a row per configuration, of which two vary.
    """
    first, second = varied_components(cells)
    values = sorted(cells[first].unique())
    colours = dict(zip(values, style.COLOURS(np.linspace(0, 1, len(values))), strict=True))
    markers = dict(zip(sorted(cells[second].unique()), style.MARKERS, strict=False))
    for row in cells.to_dict("records"):
        marker, colour = markers[row[second]], colours[row[first]]
        ax.plot(row["mtd"], row["mean"], marker, color=colour, markersize=6.5, zorder=5)
    add_spots(ax, cells["mtd"], cells["mean"], cells)

    for value, colour in colours.items():
        name = f"{PARTS[first]} {format_component(value)}"
        ax.plot([], [], color=colour, linewidth=5, label=name)
    for value, marker in markers.items():
        ax.plot([], [], marker, color=style.INK, label=f"{PARTS[second]} {format_component(value)}")


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


_MOST_VALUES = 8
_WIDE = 10.0
_BAND = 0.17
_LETTERS = 14


def draw_parallel(table: pd.DataFrame, ax: Axes, *, names: Mapping[str, str], name: str) -> None:
    """A line for each configuration, coloured by its mean score, which stands at the right.

    The values of a setting stand in a gap of the lines, which they would cover otherwise. `table`
    has a column per setting and mean; `names` are the texts above the columns, in their order.
    """
    scores = table["mean"].to_numpy(dtype=np.float64)
    low, high = float(scores.min()), float(scores.max())
    margin = max(style.least_span() - (high - low), 0.0) / 2
    norm = Normalize(low - margin, high + margin)
    order, right = np.argsort(scores), np.asarray(norm(scores), dtype=np.float64)
    placed = [_place(table[setting]) for setting in names]
    heights = [column for column, _ in placed]
    for at, (left, here) in enumerate(zip(heights, [*heights[1:], right], strict=True)):
        end = at + 1 - (_BAND if at + 1 < len(heights) else 0)
        starts, ends = (np.full(len(table), place) for place in (at + _BAND, end))
        lines = np.stack([np.column_stack([starts, left]), np.column_stack([ends, here])], 1)
        colours = style.COLOURS(norm(scores[order]))
        ax.add_collection(LineCollection(list(lines[order]), colors=colours, linewidths=1.2))
    centred: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    for at, (_, ticks) in enumerate(placed):
        for text, height in ticks.items():
            ax.text(at, height, text, fontsize=style.LEGEND_SIZE, **centred)
    add_spots(ax, np.full(len(table), float(len(placed))), right, table)
    _finish(ax, norm, list(names.values()), name)


def _place(values: pd.Series) -> tuple[Floats, dict[str, float]]:
    """The heights of the values, 0 to 1, and those at which texts stand: even for few values."""
    numeric = values.dtype.kind in "iuf"
    values = values if numeric else values.astype("str")
    distinct = sorted(values.unique())
    if not numeric or len(distinct) <= _MOST_VALUES:
        places = {value: at / max(len(distinct) - 1, 1) for at, value in enumerate(distinct)}
        shown = distinct[:: -(-len(distinct) // _MOST_VALUES)]
        ticks = {_name(value): places[value] for value in shown}
        return values.map(places).to_numpy(dtype=np.float64), ticks
    low, high = float(distinct[0]), float(distinct[-1])
    scale = np.log if low > 0 and high > _WIDE * low else np.asarray
    first, last = float(scale(low)), float(scale(high))
    scaled = np.asarray(scale(values.to_numpy(dtype=np.float64)))
    middle = (first + last) / 2
    between = float(np.exp(middle)) if scale is np.log else middle
    ticks = {_name(low): 0.0, _name(float(f"{between:.2g}")): 0.5, _name(high): 1.0}
    return (scaled - first) / (last - first), ticks


def _name(value: object) -> str:
    text = style.printable(format_value("", value))
    return text if len(text) <= _LETTERS else text[: _LETTERS - 1] + "…"


def _finish(ax: Axes, norm: Normalize, names: list[str], name: str) -> None:
    last = len(names)
    ax.set_xlim(-0.4, last)
    ax.set_ylim(-0.08, 1.08)
    ax.set_xticks(range(last), [text.replace(" ", "\n") for text in names], parse_math=False)
    ax.tick_params(axis="x", length=0)
    ax.grid(visible=False)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.spines["right"].set_visible(True)
    ax.yaxis.tick_right()
    ax.yaxis.set_label_position("right")
    low, high = float(norm.vmin or 0), float(norm.vmax or 0)
    ticks = np.asarray(MaxNLocator(nbins=5).tick_values(low, high))
    ticks = ticks[(ticks >= low) & (ticks <= high)]
    ax.set_yticks(
        np.asarray(norm(ticks)), [f"{style.score_format().as_read(tick):g}" for tick in ticks]
    )
    ax.set_ylabel(name.replace(" (", "\n(", 1), color=style.INK, parse_math=False)
