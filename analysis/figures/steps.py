"""Figures over training steps: collapse."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analysis.figures.distance import keep_points_in_view
from analysis.figures.style import BATCHES, MARKERS

_MOST_MARKERS = 40


def draw_structures(table: pd.DataFrame, ax: Axes, *, value: str, label: str) -> None:
    """A line for each structure over steps, with a band where the value is a mean score.

    table  structure (its name), step, `value`, and for "mean" low and high; label  of the value.
    """
    structures = table["structure"].nunique()
    for place, (name, curve) in enumerate(table.groupby("structure", sort=False)):
        colour = BATCHES[place % len(BATCHES)]
        # Lines that coincide stay to be seen: the lower ones wider and with larger, open markers.
        below = structures - 1 - place
        ax.plot(
            curve["step"], curve[value], color=colour, label=str(name),
            linewidth=1.5 + below, marker=MARKERS[place % len(MARKERS)],
            markersize=5 + 2.5 * below if len(curve) <= _MOST_MARKERS else 0,
            markerfacecolor="none" if below else colour,
        )
        if value == "mean":
            ax.fill_between(
                curve["step"], curve["low"], curve["high"], color=colour, alpha=0.14, linewidth=0
            )
    if value == "mean":
        keep_points_in_view(table, table["mean"], ax)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("training step")
    ax.set_ylabel(label)
