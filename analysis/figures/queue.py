"""Figures of the queue's settings: how it starts, and which positions enter the loss."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.figures.style import ACCENT, OTHER

_DARK = 0.6
_MOST_LETTERS = 40
# Points below the best at which the colours end, so that one collapsed cell does not turn
# all the others alike.
_SPAN = 5.0


def label_share(share: float) -> str:
    """A share of the queue in words."""
    names = {0.0: "none", 0.25: "1/4", 0.5: "1/2", 1.0: "whole"}
    return names.get(share, f"{share:g}")


def draw_initial_queue(table: pd.DataFrame, ax: Axes, *, value: str) -> None:
    """A grid of cells, share of random vectors at the start by queue size.

    table  share, queue_size and `value`, one row per cell; missing cells stay white.
    """
    grid = table.pivot(index="share", columns="queue_size", values=value)
    cells = grid.to_numpy(dtype=np.float64)
    high = np.nanmax(cells)
    low = max(np.nanmin(cells), high - _SPAN)
    ax.imshow(cells, cmap="Blues", aspect="auto", vmin=low, vmax=high)
    ax.set_xticks(range(grid.shape[1]), [f"{size:g}" for size in grid.columns])
    ax.set_yticks(range(grid.shape[0]), [label_share(share) for share in grid.index])
    ax.set_xlabel("queue size")
    ax.set_ylabel("share of the queue that\nstarts as random vectors")
    ax.grid(visible=False)
    for (row, column), cell in np.ndenumerate(cells):
        if np.isfinite(cell):
            dark = high > low and (cell - low) / (high - low) > _DARK
            colour = "white" if dark else "black"
            ax.text(column, row, f"{cell:.2f}", ha="center", va="center", color=colour)


def draw_queue_slices(table: pd.DataFrame, ax: Axes) -> None:
    """The mean and interval of each slice, a row per slice.

    table  queue_slice, mean, low, high.
    """
    rows = np.arange(len(table))
    ax.hlines(rows, table["low"], table["high"], color=ACCENT, linewidth=2)
    ax.plot(table["mean"], rows, "o", color=ACCENT)
    _name_rows(table, ax)


def draw_published_slices(table: pd.DataFrame, ax: Axes) -> None:
    """The published value of each slice, a row per slice.

    table  queue_slice and published, NaN where the paper has none.
    """
    ax.plot(table["published"], np.arange(len(table)), "D", color=OTHER)
    _name_rows(table, ax)


def _printable(name: str) -> str:
    """The name in characters that every font has, and not longer than a label can be."""
    return "".join(letter if " " <= letter <= "~" else "?" for letter in name)[:_MOST_LETTERS]


def _name_rows(table: pd.DataFrame, ax: Axes) -> None:
    names = [_printable(name) for name in table["queue_slice"]]
    ax.set_yticks(range(len(table)), names, parse_math=False)
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlabel("score x 100")
    ax.set_ylabel("positions used, 0 newest")
