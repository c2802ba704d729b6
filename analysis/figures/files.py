"""Figures as files, parts of a page and views in a notebook; a figure always has the same bytes."""

import io
import re
from html import escape

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from mtdlab.analysis.data.metric import write_minus
from mtdlab.analysis.figures.spots import spots_markup

_INDENT = re.compile(r"\n +")
_UPRIGHT = re.compile(r' transform="rotate\(-0 [^)]*\)"')
_PLACE = re.compile(r' (?:d|x|y|transform)="[^"<>]*"')
_LONG = re.compile(r"\d+\.\d{3,}")
_DPI = 200
_COMPRESSION = 2


def to_png(figure: Figure) -> bytes:
    """The figure at 200 dots per inch, without a date or a program's name."""
    buffer = io.BytesIO()
    figure.set_dpi(_DPI)
    # two thirds of the time of the default, 6, for files that are a tenth larger
    faster = {"compress_level": _COMPRESSION}
    FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None}, pil_kwargs=faster)
    return buffer.getvalue()


def to_svg(figure: Figure) -> str:
    """The figure as an SVG file with real text, without a date or a program's name."""
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    # Figure.savefig would draw twice, the first time for the layout alone.
    figure.set_dpi(_DPI)
    FigureCanvasSVG(figure).print_svg(buffer, metadata=nothing)
    # the type declaration names an address, which some readers would load
    return re.sub(r"<!DOCTYPE.*?>\s*", "", buffer.getvalue(), flags=re.DOTALL)


def to_page(
    figure: Figure, svg: str, *, name: str, title: str, description: str, layout: str = "wide"
) -> str:
    """The figure as an `<svg>` element for a page that holds several, its points being links.

    The white ground is left out: the page has its own, dark or light. Text and lines are hidden
    from screen readers, which read the title, the description and the points.

    Args:
        svg: what `to_svg` gave for this figure.
        name: the prefix of every id, so that two figures of one page do not share any.
        title: what it is, description: what it shows; both are escaped.
        layout: wide or narrow: its class, by which the page shows one of the two.
    """
    prefix = name if layout == "wide" else f"{name}-{layout}"
    markup = svg[svg.index("<svg") :]
    markup = re.sub(r"<(metadata|style)\b.*?</\1>", "", markup, flags=re.DOTALL)
    markup = re.sub(r'<g id="patch_1">.*?</g>', "", markup, count=1, flags=re.DOTALL)
    markup = re.sub(r'<g id="[^"]*">', "<g>", markup)
    markup = re.sub(r'\bid="', f'id="{prefix}-', markup)
    markup = re.sub(r'xlink:href="#', f'href="#{prefix}-', markup)
    markup = markup.replace("xlink:href=", "href=").replace("url(#", f"url(#{prefix}-")
    markup = _UPRIGHT.sub("", markup)
    markup = _INDENT.sub("\n", markup)
    # less than a screen shows; with the indents it is a sixth of a page
    markup = _PLACE.sub(lambda place: _LONG.sub(_shorten, place[0]), markup)
    width, height = figure.get_size_inches() * 72
    opening = (
        f'<svg class="{layout}" viewBox="0 0 {width:g} {height:g}" role="group" '
        f'aria-labelledby="{prefix}-title {prefix}-text">'
        f'<title id="{prefix}-title">{escape(title)}</title>'
        f'<desc id="{prefix}-text">{escape(description)}</desc><g aria-hidden="true">'
    )
    markup = re.sub(r"<svg\b[^>]*>", lambda _: opening, markup, count=1)
    markup = re.sub(r"</svg>\s*$", lambda _: f"</g>{spots_markup(figure)}</svg>", markup)
    # between tags alone: attributes have coordinates
    return re.sub(r">[^<>]+<", lambda text: write_minus(text[0]), markup)


def _shorten(number: re.Match[str]) -> str:
    """A coordinate to a hundredth of a point."""
    return f"{round(float(number[0]), 2):g}"


class ShownFigure(Figure):
    """A figure with a view as PNG: IPython knows one of its own only for figures of pyplot."""

    def _repr_png_(self) -> bytes:
        return to_png(self)


def new_figure(
    rows: int, columns: int, *, width: float, height: float
) -> tuple[Figure, list[Axes]]:
    """A figure of rows x columns axes, in inches, and its axes from the top left."""
    figure = ShownFigure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    return figure, list(axes.ravel())
