"""Topic: alignment, uniformity and their distance from the ideal (MoCoSE, figure 4)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figures
from analysis.data.runs import format_mtd
from analysis.report.cells import BAND, describe_curve, make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.curves import CONFIGURATION, GEOMETRY, compute_distances, compute_geometry

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Geometry:
    """runs: `compute_distances`, a row per run; curves: `compute_geometry`, means by MTD.

    Attributes:
        described: the runs with their configuration and score.
    """

    runs: pd.DataFrame
    curves: pd.DataFrame
    described: pd.DataFrame

    def curve(self, measure: str) -> pd.DataFrame:
        """The rows of one measure."""
        return self.curves[self.curves["measure"] == measure].reset_index(drop=True)


def compute(context: StudyContext) -> Geometry | None:
    """None where neither measure was recorded."""
    runs = compute_distances(context.curve_trials)
    if not len(runs):
        return None
    known = context.curve_trials[["number", *CONFIGURATION[1:], "score"]]
    return Geometry(runs, compute_geometry(runs), runs.merge(known, on="number"))


def show(info: Geometry) -> tuple[Table, ...]:
    """The means side by side."""
    means = info.curves.pivot(index=["mtd", "n", "seeds"], columns="measure", values="mean")
    rows, remark = thin_rows(means[list(GEOMETRY)].reset_index(), "levels")
    caption = (
        "Mean of each measure by MTD; L1 and L2 are the distances from the ideal point. "
        f"The CSV also has their intervals.{remark}"
    )
    return (make_table(rows, caption=caption, csv="geometry"),)


def describe(_: Geometry) -> tuple[str, ...]:
    """What the measures are."""
    return (
        "Alignment is the mean squared distance between the two sentences of a paraphrase "
        "pair; uniformity is the logarithm of how close all sentences are to each other. Both "
        "are computed on embeddings of unit length; lower is better for both.",
        "Uniformity is that of all pairs of sentences. The notebook of MoCoSE's authors averages "
        "the logarithms of batches of 64, which gives other values for the same vectors: those of "
        "the paper's figure 4 are not comparable with these. The command mtdlab evaluate prints "
        "both.",
    )


def draw_measures(info: Geometry) -> Drawing:
    """Alignment and uniformity against MTD."""
    return Drawing(
        "Alignment and uniformity against maximum traceable distance",
        [
            ("alignment (lower: paraphrases closer)", _curve(info, "alignment", "alignment")),
            ("uniformity (lower: more spread out)", _curve(info, "uniformity", "uniformity")),
        ],
        height=3.9,
        columns=2,
        caption=f"A point per trial, a thin line per seed, the mean over seeds. {BAND}",
        alt=f"{_highest(info, 'alignment', 'Alignment')} "
        f"{_highest(info, 'uniformity', 'Uniformity')}",
    )


def draw_plane(info: Geometry) -> Drawing:
    """Alignment and uniformity of each run as a plane."""
    nearest = info.runs.iloc[int(info.runs["l2"].argmin())]
    return Drawing(
        "Alignment and uniformity of each trial",
        [("", _plane(info))],
        height=4.2,
        caption=(
            "A point per trial, coloured by MTD. The star is the ideal: alignment 0, uniformity −4."
        ),
        alt=(
            f"The trial nearest the ideal has MTD {format_mtd(nearest['mtd'])}, alignment "
            f"{nearest['alignment']:.3f} and uniformity {nearest['uniformity']:.3f}."
        ),
    )


def draw_distance(info: Geometry) -> Drawing:
    """Distance of (alignment, uniformity) from the ideal point against MTD."""
    return Drawing(
        "Distance from the ideal point against maximum traceable distance",
        [
            ("L1: sum of both differences", _curve(info, "l1", "L1 distance")),
            ("L2: straight-line distance", _curve(info, "l2", "L2 distance")),
        ],
        height=3.9,
        columns=2,
        caption=(
            "How far each trial's (uniformity, alignment) lies from the ideal point: alignment 0, "
            "where paraphrases coincide, and uniformity −4, that of vectors spread evenly over "
            f"a sphere of many dimensions. Lower is better. {BAND}"
        ),
        alt=f"{_highest(info, 'l1', 'The L1 distance')} {_highest(info, 'l2', 'The L2 distance')}",
    )


def _highest(info: Geometry, measure: str, label: str) -> str:
    return describe_curve(info.curve(measure), f"{label} is", decimals=3)


def _curve(info: Geometry, measure: str, label: str) -> Draw:
    def panel(ax: "Axes") -> None:
        figures.draw_mtd_curve(
            info.curve(measure), ax, runs=info.described, value=measure, name=label
        )
        figures.add_legend(ax)

    return panel


def _plane(info: Geometry) -> Draw:
    return lambda ax: figures.draw_plane(info.described, ax)


TOPIC = Topic(
    name="geometry",
    title="Alignment and uniformity",
    group="Representation",
    compute=compute,
    csv={"trials_geometry": lambda info: info.runs, "geometry": lambda info: info.curves},
    figures={
        "alignment_uniformity": draw_measures,
        "alignment_uniformity_plane": draw_plane,
        "distance": draw_distance,
    },
    text=describe,
    tables=show,
)
