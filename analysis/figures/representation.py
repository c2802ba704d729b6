"""Figures of the embeddings themselves: alignment, uniformity and spectra."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator
from numpy.typing import NDArray

from mtdlab.analysis.data.runs import format_mtd, name_levels
from mtdlab.analysis.figures import style
from mtdlab.analysis.statistics.curves import IDEAL_ALIGNMENT, IDEAL_UNIFORMITY

_ROUNDING = 1e-5  # of float32 vectors' singular values, relative to the largest
_INDEX = "index of the singular value, largest first"
# A line of a few hundred pixels shows no more points than this.
_MOST_POINTS = 256
_MARKED = 12


def draw_paths(paths: pd.DataFrame, ax: Axes, *, names: Mapping[str, str]) -> None:
    """Alignment against uniformity over training: a line for each method, which ends in its mark.

    `paths` is `compute_paths`, at least one row; `names` are the methods' labels.
    """
    for place, (method, rows) in enumerate(paths.groupby("method")):
        colour, marker = style.mark_of(place)
        name = style.printable(names.get(str(method), str(method)))
        ax.plot(rows["uniformity"], rows["alignment"], color=colour, linewidth=1)
        last = rows.tail(1)
        ax.plot(last["uniformity"], last["alignment"], marker, color=colour, label=name)
    ax.set_xlabel(f"uniformity (lower: more spread out; ideal −{-IDEAL_UNIFORMITY:g})")
    ax.set_ylabel(f"alignment (lower: pairs closer; ideal {IDEAL_ALIGNMENT:g})")
    style.add_legend(ax)


def spectrum_points(size: int) -> NDArray[np.intp]:
    """The places of a spectrum of so many values that a line shows."""
    places = np.linspace(0, size - 1, min(size, _MOST_POINTS)).round()
    return np.unique(places.astype(np.intp))


def draw_spectrum_ratios(after: pd.DataFrame, ax: Axes) -> None:
    """The spectra after training, each divided by their geometric mean over levels of MTD.

    The spectra themselves nearly coincide on the logarithmic axis of `draw_spectra`.
    """
    index = spectrum_points(after.shape[1])
    values = after.where(after > _ROUNDING).to_numpy(dtype=np.float64)
    ratios = values / np.exp(np.log(values).mean(axis=0))
    levels = after.index.get_level_values("mtd").to_numpy(dtype=np.float64)
    marks = style.LevelMarks(levels)
    for mtd, row in zip(levels, ratios, strict=True):
        ax.plot(index + 1, row[index], color=marks.mark_of(mtd)[0], linewidth=1.2)
    ax.set_xlabel(_INDEX)
    ax.set_ylabel("ratio to the mean")
    if not marks.few:
        marks.explain(ax)
        return
    # the very last values are those of rounding errors
    last = np.nanmedian(ratios[:, index[-1] * 3 // 4 : index[-1]], axis=1)
    names = [f"MTD {format_mtd(mtd)}" for mtd in levels]
    colours = [marks.mark_of(mtd)[0] for mtd in levels]
    style.name_ends(ax, list(zip(last, names, colours, strict=True)))


def draw_spectra(before: pd.DataFrame, after: pd.DataFrame, ax: Axes) -> None:
    """Singular values relative to the largest, before training and after, by MTD.

    Both are rows of `compute_spectra`, column i the i-th largest value. Values that are 0 but
    for rounding are left out: they would stretch the axis tenfold.
    """
    index = spectrum_points(before.shape[1])
    before, after = (rows.where(rows > _ROUNDING).iloc[:, index] for rows in (before, after))
    levels = after.index.get_level_values("mtd")
    for place, row in enumerate(after.to_numpy(dtype=np.float64)):
        # one name for lines that nearly coincide: `draw_spectrum_ratios` tells them apart
        label = None if place else f"after training, {name_levels(levels)}"
        ax.plot(index + 1, row, color=style.ACCENT, linewidth=1, alpha=0.8, label=label)
    for place, row in enumerate(before.to_numpy(dtype=np.float64)):
        label = None if place else "before training"
        ax.plot(index + 1, row, "--", color=style.INK, linewidth=1.6, label=label)
    _finish_spectra(ax)


def _finish_spectra(ax: Axes) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel(_INDEX)
    ax.set_ylabel("singular value / largest")
    style.add_legend(ax)


def draw_models(spectra: pd.DataFrame, ax: Axes, *, studies: Sequence[str]) -> None:
    """Singular values relative to the largest, `compute_best_spectra`: dashed before training.

    `studies` are the names of all studies of the page: a study has its colour in every figure.
    """
    for name, moment in spectra.index:
        values = spectra.loc[(name, moment)].dropna().to_numpy(dtype=np.float64)
        at = spectrum_points(len(values))
        shown = np.where(values > _ROUNDING, values, np.nan)[at]
        if moment == "after":
            colour, marker = style.mark_of(studies.index(name))
            every = max(len(at) // _MARKED, 1)
            options: dict[str, Any] = {"color": colour, "marker": marker, "markevery": every}
        else:
            options = {"linestyle": "--", "color": style.INK, "linewidth": 1.6}
        ax.plot(at + 1, shown, label=style.printable(name), **options)
    _finish_spectra(ax)


def draw_spherical_cap(frame: pd.DataFrame, ax: Axes) -> None:
    """Mean and standard deviation by dimension, a line and a band for each angle.

    The table is `compute_spherical_cap`. Crosses are the simulation, dashes mixed negatives.
    """
    for at, (angle, rows) in enumerate(frame.groupby("angle")):
        colour, marker = style.mark_of(at)
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
    ticks = frame["dimension"].unique().tolist()
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.plot([], [], color=style.INK, linestyle="", marker="x", label="simulation")
    ax.plot([], [], color=style.INK, linestyle="--", linewidth=1, label="mixed negative")
    style.add_legend(ax)
