"""A figure that a notebook shows by itself, whether or not pyplot was imported."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.files import to_png
from analysis.figures.style import figure_style

_WIDTH = 7.0


class ShownFigure(Figure):
    """A figure with a view as PNG: IPython knows one of its own only for figures of pyplot."""

    def _repr_png_(self) -> bytes:
        return to_png(self)


def draw_panels(
    name: str, panels: Sequence[tuple[str, Callable[[Axes], None]]], height: float
) -> Figure:
    """Panels with their titles below each other, 7 inches wide and `height` inches high."""
    with figure_style(name):
        figure = ShownFigure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.subplots(len(panels), 1, squeeze=False).ravel()
        for ax, (title, draw) in zip(axes, panels, strict=True):
            draw(ax)
            ax.set_title(title)
    return figure
