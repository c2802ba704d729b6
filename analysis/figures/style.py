"""How every figure looks, and how it becomes a file: the same bytes for the same data."""

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from html import escape

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

INK = "#22303c"
GRID = "#dfe3e6"
ACCENT = "#1f6f8b"
RUN = "#7d8a94"
OTHER = "#b4552d"
BATCHES = ("#1f6f8b", "#b4552d", "#4f7d3a", "#7a4f9a", "#8a6d1f", "#40515e")
MARKERS = ("o", "s", "^", "D", "v", "P")
COLOURS = "viridis"

_DPI = 200
# The height of an axis below the axes, its numbers and its name, in points.
_AXIS_HEIGHT = 34
# Beyond this many points a scatter is drawn as pixels, so that a page stays small.
_MOST_VECTOR_POINTS = 1500


def figure_style(name: str) -> AbstractContextManager[None]:
    """The settings under which a figure called `name` is made and written."""
    return matplotlib.rc_context(
        {
            "axes.edgecolor": INK,
            "axes.grid": True,
            "axes.labelcolor": INK,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": 10.5,
            "axes.axisbelow": True,
            "figure.facecolor": "white",
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": 10.5,
            "grid.color": GRID,
            "grid.linewidth": 0.8,
            "legend.fontsize": 9.5,
            "legend.frameon": False,
            "svg.fonttype": "none",
            "text.color": INK,
            "xtick.color": INK,
            "ytick.color": INK,
            "svg.hashsalt": name,
        }
    )


def new_figure(
    rows: int, columns: int, *, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    """A figure of rows x columns axes, in inches, and its axes from the top left."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.ravel())


def add_legend(
    ax: Axes, *, columns: int = 2, title: str = "", handles: Sequence[Artist] | None = None
) -> None:
    """The legend below the axes, where it covers no data; by default of all labelled artists."""
    down = ScaledTranslation(0, -_AXIS_HEIGHT / 72, _figure_of(ax).dpi_scale_trans)
    ax.legend(
        handles=handles,
        title=title,
        ncols=columns,
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + down,
    )


def _figure_of(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes belong to no figure")
    return figure


def is_heavy(points: int) -> bool:
    """Whether so many points are better drawn as pixels."""
    return points > _MOST_VECTOR_POINTS


def mtd_norm(levels: ArrayLike) -> Normalize:
    """From MTD to the colour scale; a single level lies in the middle."""
    low, high = float(np.min(levels)), float(np.max(levels))
    return Normalize(low - 0.5, high + 0.5) if low == high else Normalize(low, high)


def add_mtd_colours(ax: Axes, norm: Normalize) -> None:
    """The colour scale of MTD beside the axes."""
    bar = _figure_of(ax).colorbar(ScalarMappable(norm=norm, cmap=COLOURS), ax=ax, pad=0.02)
    bar.set_label("MTD (steps)")


def to_png(figure: Figure) -> bytes:
    """The figure at 200 dots per inch, without a date or a program's name."""
    buffer = io.BytesIO()
    figure.set_dpi(_DPI)
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    return buffer.getvalue()


def to_svg(figure: Figure, *, name: str, title: str, description: str) -> str:
    """The figure as an `<svg>` element with real text, for a page that holds several.

    name         prefixes every id, so that two figures of one page do not share any.
    title        what it is, description: what it shows; both are escaped.
    """
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    # Figure.savefig would draw twice, the first time for the layout alone.
    figure.set_dpi(_DPI)
    FigureCanvasSVG(figure).print_svg(buffer, metadata=nothing)
    markup = buffer.getvalue()
    markup = markup[markup.index("<svg") :]
    markup = re.sub(r"<(metadata|style)\b.*?</\1>", "", markup, flags=re.DOTALL)
    markup = re.sub(r'\bid="', f'id="{name}-', markup)
    markup = re.sub(r'xlink:href="#', f'href="#{name}-', markup)
    markup = markup.replace("xlink:href=", "href=").replace("url(#", f"url(#{name}-")
    width, height = figure.get_size_inches() * 72
    opening = (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-labelledby="{name}-title {name}-text">'
        f'<title id="{name}-title">{escape(title)}</title>'
        f'<desc id="{name}-text">{escape(description)}</desc>'
    )
    return re.sub(r"<svg\b[^>]*>", lambda _: opening, markup, count=1)
