"""Makes one picture of a report: panels below each other, as SVG and as PNG."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes

from analysis import figures
from analysis.experiments import EXPERIMENTS
from analysis.report.page import Picture

Draw = Callable[[Axes], None]

PICTURE_NAMES = (
    "mtd_curve",
    "mtd_by_batch",
    "alignment_uniformity",
    "alignment_uniformity_plane",
    "distance",
    "spectra",
    "collapse",
    *(experiment.name for experiment in EXPERIMENTS),
)
_WIDTH = 7.0


def make_picture(
    name: str,
    title: str,
    panels: Sequence[tuple[str, Draw]],
    *,
    height: float,
    caption: str,
    alt: str,
    note: str = "",
) -> Picture:
    """One figure of panels below each other, each with its title and what draws it.

    note  stands in the figure itself, below everything, for whoever meets it alone.
    """
    with figures.figure_style(name):
        figure, axes = figures.new_figure(len(panels), 1, width=_WIDTH, height=height)
        for ax, (heading, draw) in zip(axes, panels, strict=True):
            draw(ax)
            ax.set_title(heading)
        if note:
            figure.supxlabel(note, fontsize=9, color=figures.OTHER, x=0.99, ha="right")
        svg = figures.to_svg(figure, name=name, title=title, description=alt)
        # The layout is found: to find it again for the second file takes as long as to draw.
        figure.set_layout_engine("none")
        return Picture(name, title, caption, alt, svg, figures.to_png(figure))
