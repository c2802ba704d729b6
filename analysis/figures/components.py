"""What makes up an MTD, on the points of a figure: an axis above it, or colours and markers."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from analysis.figures.scales import COLOURS, add_top_axis
from analysis.figures.spots import add_spots
from analysis.figures.style import INK, MARKERS
from analysis.points import SYMBOLS, format_component


def varied_components(cells: pd.DataFrame) -> list[str]:
    """Which of ema_decay, queue_size and batch_size differ between configurations."""
    return [name for name in SYMBOLS if name in cells and cells[name].nunique() > 1]


def draw_component_axis(cells: pd.DataFrame, ax: Axes) -> None:
    """The one component that varies as a second axis above; call it once limits are known.

    cells  mtd and the components, a row per configuration; nothing is drawn for several.
    """
    varied = varied_components(cells)
    if len(varied) != 1 or cells["mtd"].nunique() < len(cells):
        return
    fixed = [
        f"{symbol} = {format_component(float(cells[name].iloc[0]))}"
        for name, symbol in SYMBOLS.items()
        if name in cells and name not in varied and np.isfinite(cells[name].iloc[0])
    ]
    texts = [format_component(float(value)) for value in cells[varied[0]]]
    name = f"{SYMBOLS[varied[0]]} ({', '.join(fixed)})" if fixed else SYMBOLS[varied[0]]
    add_top_axis(ax, cells["mtd"].tolist(), texts, name)


def draw_configurations(cells: pd.DataFrame, ax: Axes, *, labels: pd.DataFrame) -> list[Artist]:
    """The mean of each configuration: colour by the first component, marker by the second.

    cells   mtd, the components and mean, a row per configuration, of which two vary.
    labels  what the means state, a row each, as `add_spots` takes it.

    Returns the entries of a legend.
    """
    first, second = varied_components(cells)
    values = sorted(cells[first].unique())
    colours = dict(zip(values, COLOURS(np.linspace(0, 1, len(values))), strict=True))
    markers = dict(zip(sorted(cells[second].unique()), MARKERS, strict=False))
    for row in cells.to_dict("records"):
        marker, colour = markers[row[second]], colours[row[first]]
        ax.plot(row["mtd"], row["mean"], marker, color=colour, markersize=6.5, zorder=5)
    add_spots(ax, cells["mtd"], cells["mean"], labels)
    by_colour = [
        Line2D(
            [], [], color=colour, linewidth=5, label=f"{SYMBOLS[first]} {format_component(value)}"
        )
        for value, colour in colours.items()
    ]
    by_marker = [
        Line2D(
            [],
            [],
            color=INK,
            marker=marker,
            linestyle="",
            label=f"{SYMBOLS[second]} {format_component(value)}",
        )
        for value, marker in markers.items()
    ]
    return [*by_colour, *by_marker]
