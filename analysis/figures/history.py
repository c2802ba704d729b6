"""Figures of the measured history: what is retained of a key, and its half-life."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.distance import draw_curve, draw_runs, keep_points_in_view
from analysis.figures.scales import COLOURS, add_mtd_colours, label_mtd_axis, label_score, mtd_norm
from analysis.figures.spots import add_run_spots
from analysis.figures.style import INK, OTHER, add_legend, is_heavy

# Not seaborn: the colours are those of a continuous scale of MTD, and runs beyond the longest lag
# have a marker of their own.


def draw_retained(curves: pd.DataFrame, ax: Axes) -> None:
    """What is retained of the keys against the lag, a line per level of MTD.

    curves  `compute_retained_curves`.
    """
    norm = mtd_norm(curves["mtd"].to_numpy())
    for mtd in curves["mtd"].unique():
        curve = curves[curves["mtd"] == mtd]
        colour = COLOURS(norm(mtd))
        # no bands: those of many levels would cover each other
        ax.plot(curve["lag"], curve["mean"], color=colour, marker="o", markersize=4, linewidth=1.4)
    add_mtd_colours(ax, norm)
    ax.axhline(0.5, color=INK, linestyle="--", linewidth=1)
    lags = sorted(curves["lag"].unique())
    ax.set_xscale("log", base=2)
    ax.set_xticks(lags, [f"{lag:g}" for lag in lags])
    ax.set_xlabel("lag (steps)")
    ax.set_ylabel("retained, (c − b)/(1 − b)")


def draw_half_lives(runs: pd.DataFrame, curve: pd.DataFrame, ax: Axes) -> None:
    """The half-life of each run's keys and the mean against MTD.

    runs  `compute_history_runs`; curve  `summarise_half_lives` by MTD. A run beyond the longest lag
    is a triangle at that lag.
    """
    reached, beyond = _split(runs)
    if len(reached):
        draw_runs(reached, ax, value="half_life")
        # the line has a gap at a level without a mean
        draw_curve(curve, ax, label="mean over seeds")
        keep_points_in_view(curve, reached["half_life"], ax)
    if len(beyond):
        ax.plot(beyond["mtd"], beyond["longest_lag"], "^", color=OTHER, label=_BEYOND)
        add_run_spots(ax, beyond, beyond["mtd"], beyond["longest_lag"], value="longest_lag")
    label_mtd_axis(ax, curve["mtd"])
    ax.set_ylabel("half-life (steps)")
    add_legend(ax)


def draw_score_by_half_life(runs: pd.DataFrame, ax: Axes, *, name: str) -> None:
    """The score of each run against its half-life, coloured by MTD.

    runs  `compute_history_runs`; name  of the vertical axis.
    """
    norm = mtd_norm(runs["mtd"].to_numpy())
    for part, marker, column in zip(_split(runs), "o^", ("half_life", "longest_lag"), strict=True):
        ax.scatter(
            part[column],
            part["score"],
            c=part["mtd"],
            norm=norm,
            cmap=COLOURS,
            s=28,
            marker=marker,
            linewidths=0.4,
            edgecolors="white",
            rasterized=is_heavy(len(part)),
            label=_BEYOND if marker == "^" and len(part) else None,
        )
        add_run_spots(ax, part, part[column], part["score"], value=column)
    add_mtd_colours(ax, norm)
    if np.isinf(runs["half_life"]).any():
        add_legend(ax)
    ax.set_xlabel("half-life (steps)")
    label_score(ax, name)


_BEYOND = "longer than the longest lag"


def _split(runs: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs with a finite half-life, and those beyond the longest lag."""
    beyond = np.isinf(runs["half_life"])
    return runs[~beyond], runs[beyond]
