"""Figure of several methods: score against MTD, and lines for methods without one."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.distance import draw_curve, label_mtd_axis
from analysis.figures.experiments import printable
from analysis.figures.style import BATCHES, MARKERS, add_legend

# Not seaborn, for the reason that analysis.figures.distance gives: intervals are not its own.

_LINES = ("--", ":", "-.", (0, (6, 2, 1, 2, 1, 2)))


def draw_methods(table: pd.DataFrame, ax: Axes, *, names: Mapping[str, str]) -> None:
    """A curve or a point for each method with an MTD, a horizontal line for each without.

    table  `compute_methods`, at least one row with an MTD; names  method -> its label.
    """
    lines = 0
    for place, (method, rows) in enumerate(table.groupby("method")):
        colour = BATCHES[place % len(BATCHES)]
        label = printable(names.get(str(method), str(method)))
        curve = rows[np.isfinite(rows["mtd"])]
        if len(curve):
            marker = MARKERS[place % len(MARKERS)]
            draw_curve(curve, ax, label=label, colour=colour, marker=marker)
            ax.vlines(curve["mtd"], curve["low"], curve["high"], color=colour, linewidth=1)
        for _, row in rows[rows["mtd"].isna()].iterrows():
            ax.axhline(
                row["mean"],
                color=colour,
                linestyle=_LINES[lines % len(_LINES)],
                linewidth=1.6,
                label=f"{label} (no MTD)",
            )
            if np.isfinite(row["low"]):
                ax.axhspan(row["low"], row["high"], color=colour, alpha=0.1, linewidth=0)
            lines += 1
    label_mtd_axis(ax, table["mtd"].dropna())
    ax.set_ylabel("score x 100")
    add_legend(ax)
