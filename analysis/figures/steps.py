"""Figures over training steps: collapse."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from analysis.figures.distance import keep_points_in_view
from analysis.figures.style import BATCHES, MARKERS

# Not seaborn: intervals are not its own, and its `lineplot` has no open markers of another size
# for lines that coincide.

_MOST_MARKERS = 40


def draw_structures(table: pd.DataFrame, ax: Axes, *, value: str, label: str) -> None:
    """A line for each structure over steps, with a band where the value is a mean score.

    table  structure (its name), step, `value`, and for "mean" low and high; label  of the value.
    """
    for place, (name, curve) in enumerate(table.groupby("structure", sort=False)):
        colour = BATCHES[place % len(BATCHES)]
        # Lines may coincide: every second is dashed, its neighbours' markers open and larger.
        dashed = place % 2 == 1
        size = 5 if dashed else 9
        ax.plot(
            curve["step"],
            curve[value],
            "--" if dashed else "-",
            color=colour,
            label=str(name),
            marker=MARKERS[place % len(MARKERS)],
            markersize=size if len(curve) <= _MOST_MARKERS else 0,
            markerfacecolor=colour if dashed else "none",
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
