"""How every figure looks: fonts, colours, markers, size and legend."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

INK = "#22303c"
GRID = "#dfe3e6"
RUN = "#7d8a94"
# Six colours whose distance is above 10 (CIEDE2000) also with deuteranopia and protanopia, each
# with a contrast of 3 to white: a test computes both, and the same for dark pages.
BATCHES = ("#1f6f8b", "#d9730d", "#a56eff", "#27187e", "#a31621", "#2a9d8f")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
ACCENT, OTHER = BATCHES[:2]
BAND = "95 % CI"
"""The label of a band or a bar in a legend."""

FONT_SIZE = 9.5
LEGEND_SIZE = 9.0
# The height of an axis below the axes, its numbers and its name, in points.
_AXIS_HEIGHT = 32
# Beyond this many points a scatter is drawn as pixels, so that a page stays small.
_MOST_VECTOR_POINTS = 400
_MOST_LETTERS = 40
# The width of a letter and of a handle with its margins, in points.
_LETTER, _HANDLE = 0.56 * LEGEND_SIZE, 38
# The width of the numbers and the name of a vertical axis, in points.
_LABELS = 66
# What of it a legend may use: half at each side, as it is centred below the axes.
_BESIDE = 30


def figure_style(name: str) -> AbstractContextManager[None]:
    """The settings under which a figure called `name` is made and written."""
    return matplotlib.rc_context(
        {
            "axes.edgecolor": INK,
            "axes.facecolor": "none",
            "axes.formatter.limits": (-9, 9),
            "axes.formatter.useoffset": False,
            "axes.grid": True,
            "axes.labelcolor": INK,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": INK,
            "axes.titlelocation": "left",
            "axes.titlesize": FONT_SIZE,
            "axes.titleweight": "bold",
            "axes.axisbelow": True,
            "figure.facecolor": "white",
            "font.family": "sans-serif",
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": FONT_SIZE,
            "grid.color": GRID,
            "grid.linewidth": 0.8,
            "legend.columnspacing": 1.2,
            "legend.fontsize": LEGEND_SIZE,
            "legend.frameon": False,
            "legend.handlelength": 1.8,
            "svg.fonttype": "none",
            "text.color": INK,
            "xtick.color": INK,
            "xtick.labelsize": LEGEND_SIZE,
            "ytick.color": INK,
            "ytick.labelsize": LEGEND_SIZE,
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


def look_of(place: int) -> tuple[str, str]:
    """Colour and marker of the item at a place; no two of the first 36 share both."""
    turn = place // len(BATCHES)
    return BATCHES[place % len(BATCHES)], MARKERS[(place + turn) % len(MARKERS)]


def add_legend(
    ax: Axes,
    *,
    title: str = "",
    handles: Sequence[Artist] | None = None,
    more: Sequence[Artist] | None = None,
) -> None:
    """The legend below the axes, where it covers no data; by default of all labelled artists.

    more  entries after these. Bands share one entry, and there are as many columns as the axes are
          wide.
    """
    shown = [*(_labelled(ax) if handles is None else handles), *(more or [])]
    if not shown:
        return
    down = ScaledTranslation(0, -_AXIS_HEIGHT / 72, figure_of(ax).dpi_scale_trans)
    ax.legend(
        handles=shown,
        title=title,
        title_fontsize=LEGEND_SIZE,
        ncols=_count_columns([str(handle.get_label()) for handle in shown], ax),
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + down,
    )


def _labelled(ax: Axes) -> list[Artist]:
    handles, labels = ax.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    bands = [label for label in labels if label.startswith(BAND)]
    if len(bands) > 1:
        named[bands[0]] = Patch(facecolor=RUN, alpha=0.35, linewidth=0, label=bands[0])
    # intervals last: they belong to what stands before
    return sorted(named.values(), key=lambda handle: str(handle.get_label()).startswith(BAND))


def _count_columns(labels: Sequence[str], ax: Axes) -> int:
    """As many columns as the axes and their labels are wide; a column has its longest label."""
    for columns in range(len(labels), 1, -1):
        # as matplotlib fills them: the first columns have one more label
        parts = np.array_split([len(label) for label in labels], columns)
        wide = sum(_HANDLE + _LETTER * float(part.max()) for part in parts)
        if wide <= axes_width(ax) + _BESIDE:
            return columns
    return 1


def axes_width(ax: Axes) -> float:
    """About the width of the axes in points, in a grid of equal axes with labels at the left."""
    spec = ax.get_subplotspec()
    columns = spec.get_gridspec().ncols if spec is not None else 1
    return float(figure_of(ax).get_size_inches()[0] * 72 / columns - _LABELS)


def figure_of(ax: Axes) -> Figure:
    """The figure that axes belong to; raises ValueError for axes of none."""
    figure = ax.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes belong to no figure")
    return figure


def is_heavy(points: int) -> bool:
    """Whether so many points are better drawn as pixels."""
    return points > _MOST_VECTOR_POINTS


def printable(name: str) -> str:
    """The name in characters that every font has, and not longer than a label can be."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in name)[:_MOST_LETTERS]
