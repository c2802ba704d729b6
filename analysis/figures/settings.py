"""Figures of the settings: interactions, the parts of an MTD."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mtdlab.analysis.data.points import format_component
from mtdlab.analysis.data.settings import format_value, name_setting, write_setting
from mtdlab.analysis.figures import style
from mtdlab.analysis.figures.spots import add_spots
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
