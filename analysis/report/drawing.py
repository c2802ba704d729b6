"""One figure of a report, as SVG for the page in two widths, and as files.

What a figure holds is described without matplotlib; `render_figure` imports it.
"""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from analysis import figures
from analysis.report.page import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as MatplotlibFigure
else:
    Axes = Any  # annotations of panels name it, and matplotlib is not imported for them

Draw = Callable[[Axes], None]

_WIDE, _NARROW = 8.0, 4.2
LEAD_WIDTH = 7.0
"""The width of the main figure in inches; on a wide page it stands beside the answer."""
_MOST_NARROW = 3.5
# The width of a letter of a title, and of what stands at the left of it, in points.
_LETTER, _ASIDE = 6.4, 60


@dataclass(frozen=True)
class Drawing:
    """A figure before it is drawn.

    Attributes:
        panels: title of each panel and the function that draws it, row by row from the top left. It
            is called for each width and must draw the same.
        height, width: those of the whole figure where the page is wide, in inches.
        caption: what is drawn.
        alt: what the figure shows, for readers who do not see it.
        columns: how many columns of panels a wide page has; a narrow one has one.
        rigid: whether a panel needs its height on a narrow page too, as one with rows of text does.
    """

    title: str
    panels: Sequence[tuple[str, Draw]]
    height: float
    caption: str
    alt: str
    columns: int = 1
    rigid: bool = False
    width: float = _WIDE

    @property
    def rows(self) -> int:
        """How many rows of panels a wide page has."""
        return -(-len(self.panels) // self.columns)


def render_figure(name: str, drawing: Drawing, *, note: str = "") -> Figure:
    """Draw a figure; `note` stands in the figure itself, below its panels."""
    with figures.figure_style(name):
        wide = _compose(drawing, note, narrow=False)
        vector = figures.to_svg(wide)
        described = {"name": name, "title": drawing.title, "description": drawing.alt}
        page = figures.to_page(wide, vector, **described)
        # The layout is known now: computing it again for the PNG takes as long as drawing.
        wide.set_layout_engine("none")
        png = figures.to_png(wide)
        narrow = _compose(drawing, note, narrow=True)
        page += figures.to_page(narrow, figures.to_svg(narrow), **described, layout="narrow")
    files = {"png": png, "svg": vector.encode()}
    return Figure(name, drawing.title, drawing.caption, page, files)


def _compose(drawing: Drawing, note: str, *, narrow: bool) -> "MatplotlibFigure":
    """The figure with all its panels, on a wide or on a narrow page."""
    panels, rows, columns = drawing.panels, drawing.rows, drawing.columns
    width, height = drawing.width, drawing.height
    if narrow:
        panel = height / rows if drawing.rigid else min(height / rows, _MOST_NARROW)
        rows, columns, width, height = len(panels), 1, _NARROW, len(panels) * panel
    figure, axes = figures.new_figure(rows, columns, width=width, height=height)
    letters = int((72 * width / columns - _ASIDE) / _LETTER)
    for ax, (title, draw) in zip(axes, panels, strict=False):
        draw(ax)
        # a given height spares matplotlib the search, in each draw, for what stands above the axes
        ax.set_title("\n".join(textwrap.wrap(title, letters)), y=None if ax.child_axes else 1.0)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    if note:
        figure.supxlabel(note, fontsize=9, color=figures.OTHER, x=0.99, ha="right")
    return figure
