"""Figure of several methods: score against MTD, and lines for methods without one."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.distance import draw_curve
from analysis.figures.scales import label_mtd_axis, label_score
from analysis.figures.spots import add_spots
from analysis.figures.style import LINES, add_legend, look_of, printable

# Not seaborn, for the reason that analysis.figures.distance gives: intervals are not its own.


def draw_methods(table: pd.DataFrame, ax: Axes, *, names: Mapping[str, str], name: str) -> None:
    """A curve or a point for each method with an MTD, a horizontal line for each without.

    table  `compute_methods`, at least one row with an MTD; text and trial too where the means
           state them. names  method -> its label; name  of the vertical axis.
    """
    lines = 0
    for place, (method, rows) in enumerate(table.groupby("method")):
        colour, marker = look_of(place)
        label = printable(names.get(str(method), str(method)))
        curve = rows[np.isfinite(rows["mtd"])]
        if len(curve):
            labels = curve if "text" in curve else None
            draw_curve(curve, ax, label=label, colour=colour, marker=marker, labels=labels)
            ax.vlines(curve["mtd"], curve["low"], curve["high"], color=colour, linewidth=1)
        for _, row in rows[rows["mtd"].isna()].iterrows():
            ax.axhline(
                row["mean"],
                color=colour,
                linestyle=LINES[lines % len(LINES)],
                linewidth=1.6,
                label=f"{label} (no MTD)",
            )
            if np.isfinite(row["low"]):
                ax.axhspan(row["low"], row["high"], color=colour, alpha=0.1, linewidth=0)
            # a marker at the end of the line, so that methods differ in more than colour
            edge = ax.get_yaxis_transform()
            ax.plot(1, row["mean"], marker, color=colour, transform=edge, clip_on=False)
            if "text" in row:
                add_spots(ax, [1.0], [row["mean"]], row.to_frame().T, transform=edge)
            lines += 1
    label_mtd_axis(ax, table["mtd"].dropna())
    label_score(ax, name)
    add_legend(ax)
