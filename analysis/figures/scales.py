"""Axes and colour scales: logarithms for MTD, at least one point for scores, plain numbers."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, ListedColormap, LogNorm, Normalize
from matplotlib.ticker import FuncFormatter, NullLocator
from numpy.typing import ArrayLike

from analysis.figures.style import axes_width, figure_of

MTD_LABEL = "maximum traceable distance, MTD (steps)"
LEAST_SPAN = 1.0
"""Points of score that an axis shows at least: ± 0.5."""

_LETTER = 6.0
_GAP = 8.0
_STEPS = (
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9),
)
_FEWEST_TICKS = 3
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def label_mtd_axis(ax: Axes, levels: pd.Series) -> None:
    """Name the axis and make it logarithmic, with ticks at 1, 2 and 5 or between."""
    ax.set_xlabel(MTD_LABEL if axes_width(ax) > _LETTER * len(MTD_LABEL) else "MTD (steps)")
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


def superscript(power: float) -> str:
    """A power of ten as text, such as 10⁻² for -2."""
    return f"10{f'{power:.0f}'.translate(_SUPERSCRIPTS)}"


def make_log_y(ax: Axes) -> None:
    """A logarithmic vertical axis with powers of ten as plain text."""
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: superscript(math.log10(value)) if value > 0 else "")
    )
    ax.yaxis.set_minor_locator(NullLocator())


def keep_span(ax: Axes, *, least: float = LEAST_SPAN) -> None:
    """Widen the vertical axis to so many points, so that noise does not look like an effect."""
    low, high = ax.get_ylim()
    if high - low < least:
        middle = (low + high) / 2
        ax.set_ylim(middle - least / 2, middle + least / 2)


def label_score(ax: Axes, name: str) -> None:
    """Name a vertical axis of scores, on two lines where it says what they were measured on."""
    ax.set_ylabel(name.replace(" (", "\n(", 1), parse_math=False)
    keep_span(ax)


def add_top_axis(ax: Axes, places: Sequence[float], texts: Sequence[str], name: str) -> None:
    """A second horizontal axis above the axes; texts that would touch are left out.

    Call it once the horizontal axis has its scale and limits.
    """
    top = ax.secondary_xaxis("top")
    reaches = _reaches(ax, places, texts)
    kept: list[int] = []
    for at, (left, _) in enumerate(reaches):
        if not kept or left > reaches[kept[-1]][1] + _GAP:
            kept.append(at)
    top.xaxis.set_minor_locator(NullLocator())
    top.set_xticks([places[at] for at in kept], [texts[at] for at in kept])
    top.tick_params(length=2, pad=1)
    top.set_xlabel(name)


def _reaches(ax: Axes, places: Sequence[float], texts: Sequence[str]) -> list[tuple[float, float]]:
    """From where to where each text reaches, in points from the left of the axes."""
    points = np.column_stack(
        [np.asarray(places, dtype=float), np.full(len(places), ax.get_ylim()[0])]
    )
    fractions = ax.transLimits.transform(ax.transScale.transform(points))[:, 0]
    middles = fractions * axes_width(ax)
    halves = [len(text) * _LETTER / 2 for text in texts]
    return [(middle - half, middle + half) for middle, half in zip(middles, halves, strict=True)]


def _visible(name: str, low: float, high: float) -> Colormap:
    """A part of a colour map: its ends would vanish on light or on dark pages."""
    return ListedColormap(colormaps[name](np.linspace(low, high, 256)), name=f"{name} part")


COLOURS = _visible("viridis", 0.0, 0.75)
"""The colours of a number such as MTD, from low to high."""


def mtd_norm(levels: ArrayLike) -> Normalize:
    """From MTD to the logarithmic colour scale; a single level lies in the middle."""
    low, high = float(np.min(levels)), float(np.max(levels))
    return LogNorm(low / 2, high * 2) if low == high else LogNorm(low, high)


def add_mtd_colours(ax: Axes, norm: Normalize) -> None:
    """The colour scale of MTD beside the axes."""
    bar = figure_of(ax).colorbar(ScalarMappable(norm=norm, cmap=COLOURS), ax=ax, pad=0.02)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    ticks = mtd_ticks(float(norm.vmin or 1), float(norm.vmax or 1))
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.set_label("MTD (steps)")
