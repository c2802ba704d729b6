"""Figure of hyperparameter importances."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.style import ACCENT, RUN

# Not seaborn: its `barplot` aggregates, and these are single values.


def draw_importances(table: pd.DataFrame, ax: Axes) -> None:
    """A bar for each setting, the largest on top; the seed's is grey.

    table  `compute_importances` with the column label: how a setting is written.
    """
    rows = np.arange(len(table))
    colours = [RUN if name == "seed" else ACCENT for name in table["setting"]]
    bars = ax.barh(rows, table["importance"], color=colours, height=0.6)
    ax.bar_label(bars, [f"{share:.2f}" for share in table["importance"]], padding=3)
    ax.set_yticks(rows, table["label"].tolist(), parse_math=False)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlim(0, max(1.15 * float(table["importance"].max()), 0.1))
    ax.set_xlabel("importance (share)")
    ax.grid(visible=False, axis="y")
