"""One figure of a report: panels below each other, as SVG and as PNG.

What a figure holds is described without matplotlib; `render_figure` imports it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.report.page import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Draw = Callable[["Axes"], None]

_WIDTH = 7.0


@dataclass(frozen=True)
class Drawing:
    """A figure before it is drawn.

    panels   title of each panel and the function that draws it, from the top.
    height   of the whole figure, in inches.
    caption  what is drawn; alt: what the figure shows, for readers who do not see it.
    """

    title: str
    panels: Sequence[tuple[str, Draw]]
    height: float
    caption: str
    alt: str


def render_figure(name: str, drawing: Drawing, *, note: str = "") -> Figure:
    """Draw it. note  stands in the figure itself, below everything."""
    from analysis import figures

    panels = drawing.panels
    with figures.figure_style(name):
        figure, axes = figures.new_figure(len(panels), 1, width=_WIDTH, height=drawing.height)
        for ax, (title, draw) in zip(axes, panels, strict=True):
            draw(ax)
            ax.set_title(title)
        if note:
            figure.supxlabel(note, fontsize=9, color=figures.OTHER, x=0.99, ha="right")
        svg = figures.to_svg(figure, name=name, title=drawing.title, description=drawing.alt)
        # The layout is known now: computing it again for the PNG takes as long as drawing.
        figure.set_layout_engine("none")
        png = figures.to_png(figure)
    return Figure(name, drawing.title, drawing.caption, drawing.alt, svg, png)


def choose_evenly(table: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many rows at even steps, the first and the last among them."""
    if len(table) <= most:
        return table
    return table.iloc[np.linspace(0, len(table) - 1, most).round().astype(int)]
