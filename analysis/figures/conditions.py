"""Figure of one curve over MTD for each condition, such as a learning rate."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.distance import draw_curve, keep_points_in_view
from analysis.figures.scales import label_mtd_axis, label_score
from analysis.figures.style import add_legend, look_of

# Not seaborn, for the reason that analysis.figures.distance gives: intervals are not its own.


def draw_conditions(
    curves: Mapping[str, pd.DataFrame], ax: Axes, *, name: str, distance: str = ""
) -> None:
    """A line and a band for each condition.

    curves    label -> mtd, mean, low, high; text and trial too where the means state them.
    name      of the vertical axis; distance: of the horizontal one, if MTD is not in steps.
    """
    for place, (label, curve) in enumerate(curves.items()):
        colour, marker = look_of(place)
        labels = curve if "text" in curve else None
        draw_curve(curve, ax, label=label, colour=colour, marker=marker, labels=labels)
    every = pd.concat(list(curves.values()))
    keep_points_in_view(every, every["mean"], ax)
    label_mtd_axis(ax, every["mtd"])
    if distance:
        ax.set_xlabel(distance)
    label_score(ax, name)
    add_legend(ax)
