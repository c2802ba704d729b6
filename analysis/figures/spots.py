"""Places of a figure that state their value and lead to a trial; they are drawn in SVG alone."""

from html import escape
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Transform
from numpy.typing import ArrayLike

from mtdlab.analysis.data.points import describe_runs
from mtdlab.analysis.figures.style import score_format

_MOST = 400
_RADIUS = 6
_POINTS_PER_INCH = 72


class Spots(Artist):
    """Places on axes, each with a line of text and an address; matplotlib itself draws nothing."""

    def __init__(self, places: ArrayLike, transform: Transform, labels: pd.DataFrame) -> None:
        super().__init__()
        self.places = np.asarray(places, dtype=np.float64).reshape(-1, 2)
        self.labels = labels
        self.set_transform(transform)
        self.set_in_layout(False)

    def draw(self, renderer: Any) -> None:
        """Draw nothing: `spots_markup` writes the spots."""


def add_spots(
    ax: Axes, x: ArrayLike, y: ArrayLike, table: pd.DataFrame, *, transform: Transform | None = None
) -> None:
    """Make places (n,) state their value, unless they are too many (`is_heavy`).

    `table` has a row per place. Nothing is stated where it lacks text, and trial, a number, or
    href, an address; seed where it is of one. The places are by default in the units of the axes.
    """
    if "text" in table and not is_heavy(len(table)):
        places = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
        ax.add_artist(Spots(places, transform or ax.transData, table))


def add_run_spots(
    ax: Axes, runs: pd.DataFrame, x: ArrayLike, y: ArrayLike, *, value: str = "score"
) -> None:
    """Make the points of runs state `describe_runs`, unless they are too many."""
    if not is_heavy(len(runs)):
        add_spots(ax, x, y, runs.join(describe_runs(runs, value=value, write=score_format())))


def is_heavy(points: int) -> bool:
    """Whether so many points are drawn as pixels and state no values: a page stays small."""
    return points > _MOST


def spots_markup(figure: Figure) -> str:
    """All places of a figure as SVG links with a circle each, in points from its top left.

    The figure's layout must have been computed. Places outside their axes are left out.
    """
    height = figure.get_size_inches()[1] * _POINTS_PER_INCH
    scale = _POINTS_PER_INCH / figure.dpi
    links = []
    for ax in figure.axes:
        for artist in ax.get_children():
            if isinstance(artist, Spots):
                at = artist.get_transform().transform(artist.places)
                box = ax.get_window_extent()
                low, high = np.array(box.min) - 1, np.array(box.max) + 1
                shown = np.asarray(((at >= low) & (at <= high)).all(axis=1))
                labels = artist.labels[shown].to_dict("records")
                for (x, y), label in zip((at * scale)[shown], labels, strict=True):
                    href = label["href"] if "href" in label else f"#trial-{label['trial']}"
                    links.append(_link(href, label["text"], x, height - y, label.get("seed")))
    return f'<g class="points">{"".join(links)}</g>' if links else ""


def _link(href: str, text: str, x: float, y: float, seed: Any) -> str:
    # the page marks all points of the seed of one
    of = "" if seed is None else f' data-seed="{int(seed)}"'
    return (
        f'<a href="{escape(href)}"{of}><title>{escape(text)}</title>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{_RADIUS}"/></a>'
    )
