"""Figures of several studies: score against MTD, and spectra of their best models."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.distance import draw_curve, draw_level
from analysis.figures.representation import ROUNDING, spectrum_points
from analysis.figures.style import (
    INK,
    LINES,
    add_legend,
    label_mtd_axis,
    label_score,
    look_of,
    make_log_y,
    printable,
)

# Not seaborn, for the reason that analysis.figures.distance gives: intervals are not its own.

_MARKED = 12


def draw_studies(
    curves: pd.DataFrame,
    ax: Axes,
    *,
    studies: Sequence[str],
    untraced: Mapping[str, str],
    name: str,
) -> None:
    """A line and a band per study, and a horizontal line for runs without an MTD.

    Args:
        curves: study, mtd, mean, low, high: `compute_curves` of one metric; text and href too where
            the means state them.
        studies: the names of all studies of the page: a study has its colour in every figure, and
            its methods differ in marker and line.
        untraced: study -> the methods of its runs without an MTD.
        name: of the vertical axis.
    """
    parts: dict[str, int] = {}
    for text, study in curves.groupby("study", sort=False):
        # the curve of one of a study's methods is called STUDY: METHOD
        owner = str(text) if text in studies else str(text).rpartition(": ")[0]
        place, part = studies.index(owner), parts.setdefault(owner, 0)
        parts[owner] += 1
        colour, _ = look_of(place)
        _, marker = look_of(place + part)
        label = printable(str(text))
        curve, points = study[study["mtd"] > 0], study[study["mtd"] == 0]
        if len(curve):
            draw_curve(curve, ax, label=label, colour=colour, marker=marker)
            label = f"{label}: {untraced.get(str(text), '')}"
        for _, row in points.iterrows():
            line, labels = LINES[part % len(LINES)], row.to_frame().T if "text" in row else None
            look, mean = (colour, marker), float(row["mean"])
            draw_level(mean, ax, f"{label} (no MTD)", look, line=line, labels=labels)
    distances = curves.loc[curves["mtd"] > 0, "mtd"]
    if len(distances):
        label_mtd_axis(ax, distances)
    label_score(ax, name)
    add_legend(ax)


def draw_models(spectra: pd.DataFrame, ax: Axes, *, studies: Sequence[str]) -> None:
    """Singular values relative to the largest: a line per model, dashed before training.

    Args:
        spectra: `compute_best_spectra`.
        studies: the names of all studies of the page, as for `draw_studies`.
    """
    for name, moment in spectra.index:
        values = spectra.loc[(name, moment)].dropna().to_numpy(dtype=np.float64)
        at = spectrum_points(len(values))
        shown = np.where(values > ROUNDING, values, np.nan)[at]
        if moment == "after":
            colour, marker = look_of(studies.index(name))
            every = max(len(at) // _MARKED, 1)
            look: dict[str, Any] = {"color": colour, "marker": marker, "markevery": every}
        else:
            look = {"linestyle": "--", "color": INK, "linewidth": 1.6}
        ax.plot(at + 1, shown, label=printable(name), **look)
    make_log_y(ax)
    ax.set_xlabel("index of the singular value, largest first")
    ax.set_ylabel("singular value / largest")
    add_legend(ax)
