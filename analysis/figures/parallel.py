"""Figure of parallel coordinates: every configuration as a line through its settings."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from analysis.figures.scales import COLOURS, LEAST_SPAN
from analysis.figures.spots import add_spots
from analysis.figures.style import INK, LEGEND_SIZE
from analysis.points import format_component

# Not seaborn: it has no parallel coordinates.

_MOST_VALUES = 8
_WIDE = 10.0
_BAND = 0.17
_LETTERS = 14


@dataclass(frozen=True)
class _Column:
    """Heights of the values, 0 to 1, and the heights at which texts stand."""

    heights: NDArray[np.float64]
    ticks: dict[str, float]


def draw_parallel(
    table: pd.DataFrame, ax: Axes, *, names: Mapping[str, str], name: str, labels: pd.DataFrame
) -> None:
    """A line for each configuration, coloured by its mean score, which stands at the right.

    table   a column per setting and mean, a row per configuration.
    names   setting -> the text above its column, in the order of the columns.
    name    of the score; labels  what the lines state, a row each, as `add_spots` takes it.

    The values of a setting stand in a gap of the lines, which they would cover otherwise.
    """
    scores = table["mean"].to_numpy(dtype=np.float64)
    norm = _score_norm(scores)
    columns = [_place(table[setting]) for setting in names]
    right = np.asarray(norm(scores), dtype=np.float64)
    heights = [column.heights for column in columns]
    segments = []
    for at, (left, here) in enumerate(zip(heights, [*heights[1:], right], strict=True)):
        end = at + 1 - (_BAND if at + 1 < len(heights) else 0)
        ends = np.full(len(table), end)
        starts = np.full(len(table), at + _BAND)
        segments.append(
            np.stack([np.column_stack([starts, left]), np.column_stack([ends, here])], 1)
        )
    order = np.argsort(scores)
    for part in segments:
        lines = LineCollection(
            list(part[order]), colors=COLOURS(norm(scores[order])), linewidths=1.2
        )
        ax.add_collection(lines)
    for at, column in enumerate(columns):
        for text, height in column.ticks.items():
            ax.text(
                at, height, text, ha="center", va="center", fontsize=LEGEND_SIZE, parse_math=False
            )
    add_spots(ax, np.full(len(table), float(len(columns))), right, labels)
    _finish(ax, norm, list(names.values()), name)


def _score_norm(scores: NDArray[np.float64]) -> Normalize:
    low, high = float(scores.min()), float(scores.max())
    middle = (low + high) / 2
    half = max(high - low, LEAST_SPAN) / 2
    return Normalize(middle - half, middle + half)


def _place(values: pd.Series) -> _Column:
    """Few values evenly spaced; many numbers on a linear or logarithmic scale."""
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    distinct = sorted(values.unique()) if numeric else sorted({str(value) for value in values})
    if not numeric or len(distinct) <= _MOST_VALUES:
        places = {value: at / max(len(distinct) - 1, 1) for at, value in enumerate(distinct)}
        heights = values.map(places) if numeric else values.astype("str").map(places)
        shown = distinct[:: -(-len(distinct) // _MOST_VALUES)]
        ticks = {_name(value): places[value] for value in shown}
        return _Column(heights.to_numpy(dtype=np.float64), ticks)
    low, high = float(distinct[0]), float(distinct[-1])
    scale = np.log if low > 0 and high > _WIDE * low else np.asarray
    first, last = float(scale(low)), float(scale(high))
    scaled = np.asarray(scale(values.to_numpy(dtype=np.float64)))
    middle = (first + last) / 2
    between = float(np.exp(middle)) if scale is np.log else middle
    ticks = {_name(low): 0.0, _name(float(f"{between:.2g}")): 0.5, _name(high): 1.0}
    return _Column((scaled - first) / (last - first), ticks)


def _name(value: object) -> str:
    text = (
        format_component(float(value)) if isinstance(value, (int, float, np.number)) else str(value)
    )
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    return plain if len(plain) <= _LETTERS else plain[: _LETTERS - 1] + "…"


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
    ax.set_yticks(np.asarray(norm(ticks)), [f"{tick:g}" for tick in ticks])
    ax.set_ylabel(name.replace(" (", "\n(", 1), color=INK, parse_math=False)
