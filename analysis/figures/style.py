"""How every figure looks: fonts, colours, markers, size, legend, axes and colour scales.

Logarithms for MTD, at least one point for scores, plain numbers.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.gridspec import GridSpec
from matplotlib.patches import Patch
from matplotlib.ticker import NullLocator, ScalarFormatter
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike

from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.data.points import MOST_MARKED
from mtdlab.analysis.data.runs import MTD_DECIMALS, format_mtd

INK = "#22303c"
GRID = "#dfe3e6"
RUN = "#7d8a94"
# Six colours whose distance is above 10 (CIEDE2000) also with deuteranopia and protanopia, each
# with a contrast of 3 to white: a test computes both, and the same for dark pages.
BATCHES = ("#1f6f8b", "#d9730d", "#a56eff", "#27187e", "#a31621", "#2a9d8f")
MARKERS = ("o", "s", "^", "D", "v", "P")
MOST_MARKERS = 40
"""The most points of a line that has a marker at each."""
_LINES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))
ACCENT, OTHER = BATCHES[:2]
PAPER = OTHER, MARKERS[3]
"""Colour and marker of the paper's curves."""
BAND = "95 % CI"
"""The label of a band or a bar in a legend."""

FONT_SIZE = 9.5
LEGEND_SIZE = 9.0
# The height of an axis below the axes, its numbers and its name, in points.
_AXIS_HEIGHT = 32
_MOST_LETTERS, _OTHERS = 48, "ηε…"
# The width of a letter and of a handle with its margins, in points.
_LETTER, _HANDLE = 0.56 * LEGEND_SIZE, 38
# The width of the numbers and the name of a vertical axis, in points.
_LABELS = 66
# What of it a legend may use: half at each side, as it is centred below the axes.
_BESIDE = 36


_LOOK: Any = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "axes.titlecolor"), INK),
    **dict.fromkeys(("text.color", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), LEGEND_SIZE),
    "axes.facecolor": "none",
    "axes.formatter.limits": (-9, 9),
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
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
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "svg.fonttype": "none",
}
_SCORES: ContextVar[ScoreFormat] = ContextVar("scores", default=POINTS)


@contextmanager
def figure_style(name: str, scores: ScoreFormat = POINTS) -> Iterator[None]:
    """The settings under which a figure called `name` is made and written, and its scores."""
    before = _SCORES.set(scores)
    try:
        with matplotlib.rc_context(_LOOK | {"svg.hashsalt": name}):
            yield
    finally:
        _SCORES.reset(before)


def score_format() -> ScoreFormat:
    """How the scores of the figure that is made are written."""
    return _SCORES.get()


class AsRead(ScalarFormatter):
    """The numbers of an axis of scores that were negated: as they were read."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return super().__call__(0 - x, pos)


def show_as_read(axis: Axis) -> None:
    """Number an axis of scores, or of their differences, as they were read."""
    if score_format().is_turned:
        axis.set_major_formatter(AsRead())


def turn_axes(ax: Axes) -> None:
    """Let an axis of scores rise to the top and to the right, also where lower ones are better.

    Call it last: what is drawn counts on limits in rising order.
    """
    for axis in (ax.xaxis, ax.yaxis):
        if isinstance(axis.get_major_formatter(), AsRead):
            axis.set_inverted(True)


def mark_of(place: int) -> tuple[str, str]:
    """Colour and marker of the item at a place; no two of the first 36 share both."""
    turn = place // len(BATCHES)
    return BATCHES[place % len(BATCHES)], MARKERS[(place + turn) % len(MARKERS)]


def line_of(place: int) -> Any:
    """The line style of the item at a place, so that lines differ in more than colour."""
    return _LINES[place % len(_LINES)]


def add_legend(ax: Axes) -> None:
    """The legend of all labelled artists below the axes, where it covers no data.

    Bands share one entry, and there are as many columns as the axes are wide.
    """
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    named = dict(zip(labels, handles, strict=True))
    bands = [label for label in labels if label.startswith(BAND)]
    if len(bands) > 1:
        named[bands[0]] = Patch(facecolor=RUN, alpha=0.35, linewidth=0, label=bands[0])
    # intervals last: they belong to what stands before
    shown = sorted(named.values(), key=lambda handle: str(handle.get_label()).startswith(BAND))
    down = ScaledTranslation(0, -_AXIS_HEIGHT / 72, ax.figure.dpi_scale_trans)
    ax.legend(
        handles=shown,
        ncols=_count_columns([str(handle.get_label()) for handle in shown], ax),
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + down,
    )


def _count_columns(labels: Sequence[str], ax: Axes) -> int:
    """How many columns of a legend fit side by side; a column is as wide as its longest label."""
    for columns in range(len(labels), 1, -1):
        # as matplotlib fills them: the first columns have one more label
        parts = np.array_split([len(label) for label in labels], columns)
        wide = sum(_HANDLE + _LETTER * float(part.max()) for part in parts)
        if wide <= axes_size(ax)[0] + _BESIDE:
            return columns
    return 1


def axes_size(ax: Axes) -> tuple[float, float]:
    """About the width and height in points of the axes in a grid of equal axes with labels."""
    grid, box, points = ax.get_gridspec() or GridSpec(1, 1), ax.figure.bbox, 72 / ax.figure.dpi
    width, height = box.width * points / grid.ncols, box.height * points / grid.nrows
    return width - _LABELS, height - 2 * _AXIS_HEIGHT


def printable(name: str) -> str:
    """The name in characters that every font has, and not longer than a label can be."""
    shown = (letter if " " <= letter <= "~" or letter in _OTHERS else "?" for letter in name)
    return "".join(shown)[:_MOST_LETTERS]


MTD_LABEL = "maximum traceable distance, MTD (steps)"
_LEAST_SPAN = 1.0
"""The smallest range of an axis of scores in points; of others it is twice the margin."""

_TICK_LETTER = 6.0
_GAP = 1.5
_STEPS = (
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
)
_FEWEST_TICKS = 3


def label_mtd_axis(ax: Axes, levels: pd.Series) -> None:
    """Name the axis and make it logarithmic, with ticks at 1, 2 and 5 or between."""
    is_wide = axes_size(ax)[0] > _TICK_LETTER * len(MTD_LABEL)
    ax.set_xlabel(MTD_LABEL if is_wide else "MTD (steps)")
    ax.set_xscale("log")
    # a horizontal line that was drawn before has fixed the limits of a linear axis
    ax.autoscale(axis="x")
    ax.xaxis.set_minor_locator(NullLocator())
    ticks = mtd_ticks(float(levels.min()), float(levels.max())) if len(levels) else []
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])


def mtd_ticks(low: float, high: float) -> list[float]:
    """Round numbers from low to high, at least three; else the two ends."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in _STEPS:
        ticks = [step * 10.0**power for power in powers for step in steps]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) >= _FEWEST_TICKS:
            return inside
    return sorted({round(low, 3), round(high, 3)})


def least_span() -> float:
    """The smallest range of an axis of scores."""
    written = score_format()
    return _LEAST_SPAN if written.unit else 2 * written.margin


def keep_span(ax: Axes) -> None:
    """Widen the vertical axis to `least_span`, so that noise does not look like an effect."""
    low, high = ax.get_ylim()
    if high - low < (span := least_span()):
        middle = (low + high) / 2
        ax.set_ylim(middle - span / 2, middle + span / 2)


def label_score(ax: Axes, name: str, *, is_score: bool = True) -> None:
    """Name a vertical axis of scores, on two lines where it says what they were measured on.

    An axis of something else is named as it is, and not widened.
    """
    if not is_score:
        ax.set_ylabel(name)
        return
    ax.set_ylabel(name.replace(" (", "\n(", 1), parse_math=False)
    keep_span(ax)
    show_as_read(ax.yaxis)


def label_deviation(ax: Axes, name: str) -> None:
    """Name a vertical axis of differences of scores, with their unit."""
    unit = score_format().unit
    ax.set_ylabel(f"{name}{unit and f', {unit}'}")
    show_as_read(ax.yaxis)


def add_top_axis(ax: Axes, places: Sequence[float], texts: Sequence[str], name: str) -> None:
    """A second horizontal axis above the axes; texts that would touch are left out.

    Call it once the horizontal axis has its scale and limits.
    """
    top = ax.secondary_xaxis("top")
    kept = choose_apart(ax, places, texts)
    top.xaxis.set_minor_locator(NullLocator())
    top.set_xticks([places[at] for at in kept], [texts[at] for at in kept])
    top.tick_params(length=2, pad=1)
    top.set_xlabel(name)


def choose_apart(ax: Axes, places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """Which texts at places of the horizontal axis, in rising order, do not touch those before."""
    points = np.column_stack([np.asarray(places), np.full(len(places), ax.get_ylim()[0])])
    middles = (ax.transScale + ax.transLimits).transform(points)[:, 0] * axes_size(ax)[0]
    kept, end = list[int](), -np.inf
    for at, (middle, text) in enumerate(zip(middles, texts, strict=True)):
        half = len(text) * _TICK_LETTER / 2
        if middle - half > end:
            kept.append(at)
            end = middle + half + _GAP
    return kept


COLOURS = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.75, 256)), name="viridis part")
"""The colours of a number such as MTD, from low to high, without those that vanish on a page."""


class LevelMarks:
    """Marks of levels of MTD: up to six have a colour and a marker each, more a scale of colours.

    Attributes:
        few: whether each level has a mark of its own.
    """

    def __init__(self, levels: ArrayLike) -> None:
        """`levels` (n,): all levels that the figure shows, at least one, in any order."""
        self._levels = np.unique(np.asarray(levels, dtype=np.float64).round(MTD_DECIMALS))
        self._norm = LogNorm(self._levels[0], self._levels[-1])
        self.few = len(self._levels) <= MOST_MARKED

    def mark_of(self, mtd: float) -> tuple[Any, str]:
        """Colour and marker of a level; all have the same marker where there are many."""
        if self.few:
            return mark_of(int(np.abs(self._levels - mtd).argmin()))
        return COLOURS(self._norm(mtd)), MARKERS[0]

    def explain(self, ax: Axes) -> None:
        """Name the levels in a legend, or show their scale beside the axes."""
        if self.few:
            for level in self._levels:
                colour, marker = self.mark_of(level)
                ax.plot([], [], marker, color=colour, label=f"MTD {format_mtd(level)}")
        else:
            scale = ScalarMappable(norm=self._norm, cmap=COLOURS)
            bar = ax.figure.colorbar(scale, ax=ax, pad=0.02)
            bar.ax.yaxis.set_minor_locator(NullLocator())
            ticks = mtd_ticks(float(self._levels[0]), float(self._levels[-1]))
            bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
            bar.set_label("MTD (steps)")
        add_legend(ax)


_LABEL_HEIGHT = 1.3 * LEGEND_SIZE
"""The least distance between the names of two lines, middle to middle, in points (1/72 inch)."""


def name_ends(ax: Axes, ends: Sequence[tuple[float, str, Any]]) -> None:
    """Write the names of lines at the right of the axes, at the height of their ends, apart.

    Call it once the vertical axis has its scale and limits; `ends` are the value at the end of each
    line, its name and its colour.
    """
    ends = sorted(ends, key=lambda end: end[0])
    points = np.array([(1, value) for value, *_ in ends]).reshape(-1, 2)
    heights = (ax.transScale + ax.transLimits).transform(points)[:, 1]
    stack = np.arange(len(ends)) * _LABEL_HEIGHT / axes_size(ax)[1]
    apart = np.fmax.accumulate(heights - stack) + stack
    # the topmost at the upper end at most: those below it make room
    apart = np.minimum(apart, 1 - stack[::-1])
    for place, (_, name, colour) in zip(apart, ends, strict=True):
        ax.annotate(
            name,
            (1, place),
            xycoords="axes fraction",
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontsize=LEGEND_SIZE,
        )
