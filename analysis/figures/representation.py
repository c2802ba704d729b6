"""Figures of the embeddings themselves: alignment, uniformity and spectra."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

from analysis.figures.distance import scatter_by_mtd
from analysis.figures.style import (
    COLOURS,
    INK,
    OTHER,
    add_legend,
    add_mtd_colours,
    look_of,
    make_log_y,
    mtd_norm,
)
from analysis.statistics.curves import IDEAL_ALIGNMENT, IDEAL_UNIFORMITY

# Not seaborn: its functions have no colour scale (`scatterplot` puts sampled values in a legend),
# and a line per level takes a table in long form with a row per singular value.

ROUNDING = 1e-5  # of float32 vectors' singular values, relative to the largest
# A line of a few hundred pixels shows no more points than this.
_INDEX = "index of the singular value, largest first"
_MOST_POINTS = 256


def draw_plane(distances: pd.DataFrame, ax: Axes) -> None:
    """Alignment and uniformity of each run, coloured by MTD, with the ideal point.

    `distances` is `compute_distances`; no rows draw the ideal point alone.
    """
    if len(distances):
        norm = mtd_norm(distances["mtd"].to_numpy())
        scatter_by_mtd(distances, ax, "uniformity", "alignment", norm, value="alignment")
        add_mtd_colours(ax, norm)
    ideal = ([IDEAL_UNIFORMITY], [IDEAL_ALIGNMENT])
    ax.plot(*ideal, marker="*", color=OTHER, markersize=12, linestyle="", label="ideal point")
    add_legend(ax)
    ax.set_xlabel("uniformity (lower: more spread out)")
    ax.set_ylabel("alignment (lower: pairs closer)")


def spectrum_points(size: int) -> NDArray[np.intp]:
    """The places of a spectrum of so many values that a line shows."""
    places = np.linspace(0, size - 1, min(size, _MOST_POINTS)).round()
    return np.unique(places.astype(np.intp))


def draw_spectrum_ratios(after: pd.DataFrame, ax: Axes) -> None:
    """The spectra after training, each divided by their geometric mean over levels of MTD.

    The spectra themselves nearly coincide on the logarithmic axis of `draw_spectra`.
    """
    index = spectrum_points(after.shape[1])
    values = after.where(after > ROUNDING).to_numpy(dtype=np.float64)
    ratios = values / np.exp(np.log(values).mean(axis=0))
    norm = mtd_norm(after.index.get_level_values("mtd").to_numpy(dtype=np.float64))
    for mtd, row in zip(after.index.get_level_values("mtd"), ratios, strict=True):
        ax.plot(index + 1, row[index], color=COLOURS(norm(float(mtd))), linewidth=1.2)
    add_mtd_colours(ax, norm)
    ax.set_xlabel(_INDEX)
    ax.set_ylabel("ratio to the mean")


def draw_spectra(before: pd.DataFrame, after: pd.DataFrame, ax: Axes) -> None:
    """Singular values relative to the largest, before training and after, by MTD.

    Both are rows of `compute_spectra`, column i the i-th largest value. Values that are 0 but
    for rounding are left out: they would stretch the axis tenfold.
    """
    index = spectrum_points(before.shape[1])
    before, after = (each.where(each > ROUNDING).iloc[:, index] for each in (before, after))
    if len(after):
        levels = after.index.get_level_values("mtd").to_numpy(dtype=np.float64)
        norm = mtd_norm(levels)
        for mtd, row in zip(levels, after.to_numpy(dtype=np.float64), strict=True):
            ax.plot(index + 1, row, color=COLOURS(norm(mtd)), linewidth=1.2)
        if len(after) == 1:
            add_mtd_colours(ax, norm)
    for row in before.to_numpy(dtype=np.float64):
        ax.plot(index + 1, row, "--", color=INK, linewidth=1.6, label="before training")
    make_log_y(ax)
    ax.set_xlabel(_INDEX)
    ax.set_ylabel("singular value / largest")
    if len(before):
        add_legend(ax)


def draw_spherical_cap(frame: pd.DataFrame, ax: Axes) -> None:
    """Mean and standard deviation by dimension, a line and a band for each angle.

    Of `compute_spherical_cap`. Crosses: the simulation; dashes: mixed negatives.
    """
    for at, (angle, rows) in enumerate(frame.groupby("angle")):
        colour, marker = look_of(at)
        dimension, mean, std = rows["dimension"], rows["mean"], rows["std"]
        simulated, spread = rows["simulated_mean"], rows["simulated_std"]
        label = f"ω = {angle:g}°"
        ax.plot(dimension, mean, color=colour, marker=marker, fillstyle="none", label=label)
        ax.fill_between(dimension, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
        ax.errorbar(dimension, simulated, yerr=spread, fmt="x", color=colour, elinewidth=0.8)
        ax.plot(dimension, rows["mixed"], color=colour, linestyle="--", linewidth=1)
    ax.set_xscale("log", base=2)
    ax.set_xlabel("dimension d")
    ax.set_ylabel("cosine of a random pair")
    if len(frame):
        ticks = frame["dimension"].unique().tolist()
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.plot([], [], color=INK, linestyle="", marker="x", label="simulation")
        ax.plot([], [], color=INK, linestyle="--", linewidth=1, label="mixed negative")
        add_legend(ax)
