"""Figures of several studies: score against MTD, and spectra of their best models."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.distance import draw_curve, label_mtd_axis
from analysis.figures.experiments import printable
from analysis.figures.representation import ROUNDING, spectrum_points
from analysis.figures.style import BATCHES, INK, MARKERS, add_legend

# Not seaborn, for the reason that analysis.figures.distance gives: intervals are not its own.


def _look(place: int) -> tuple[str, str]:
    """Colour and marker of a study; no two of the first 36 share both."""
    turn = place // len(BATCHES)
    return BATCHES[place % len(BATCHES)], MARKERS[(place + turn) % len(MARKERS)]


def draw_studies(curves: pd.DataFrame, ax: Axes, *, untraced: Mapping[str, str]) -> None:
    """A line and a band per study, and a star at MTD 0 for runs without an MTD.

    curves    study, mtd, mean, low, high: `compute_curves` of one metric.
    untraced  study -> the methods of its runs without an MTD.
    """
    for place, (name, study) in enumerate(curves.groupby("study", sort=False)):
        colour, marker = _look(place)
        curve, points = study[study["mtd"] > 0], study[study["mtd"] == 0]
        label = printable(str(name))
        if len(curve):
            draw_curve(curve, ax, label=label, colour=colour, marker=marker)
            label = f"{label}: {untraced.get(str(name), '')}"
        if len(points):
            ax.vlines(points["mtd"], points["low"], points["high"], color=colour)
            ax.plot(points["mtd"], points["mean"], "*", color=colour, markersize=12, label=label)
    label_mtd_axis(ax, curves.loc[curves["mtd"] > 0, "mtd"])
    ax.set_ylabel("score x 100")
    add_legend(ax)


def draw_models(spectra: pd.DataFrame, ax: Axes) -> None:
    """Singular values relative to the largest: a line per model, dashed before training.

    spectra  `compute_best_spectra`.
    """
    after = [row for row in spectra.index if row[1] == "after"]
    for name, moment in spectra.index:
        values = spectra.loc[(name, moment)].dropna().to_numpy(dtype=np.float64)
        at = spectrum_points(len(values))
        shown = np.where(values > ROUNDING, values, np.nan)[at]
        if moment == "after":
            colour = _look(after.index((name, moment)))[0]
            ax.plot(at + 1, shown, color=colour, label=printable(name))
        else:
            ax.plot(at + 1, shown, "--", color=INK, linewidth=1.6, label=printable(name))
    ax.set_yscale("log")
    ax.set_xlabel("index of the singular value, largest first")
    ax.set_ylabel("singular value / largest")
    add_legend(ax)
