"""Topic: alignment, uniformity and their distance from the ideal (MoCoSE, figure 4)."""

from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.points import MOST_LOOKS
from analysis.data.runs import format_mtd
from analysis.report.cells import BAND, describe_curve, make_table
from analysis.report.topics.base import Axes, Draw, Drawing, StudyContext, Table, Topic
from analysis.statistics.curves import CONFIGURATION, GEOMETRY, compute_distances, compute_geometry

_TEXT = (
    "Alignment is the mean squared distance between the two sentences of a paraphrase pair; "
    "uniformity is the logarithm of how close all sentences are to each other. Both are computed "
    "on embeddings of unit length, uniformity over all pairs of sentences; lower is better for "
    "both. The paper's figure 4 averages uniformity over batches of 64, which gives other values: "
    "mtdlab evaluate prints both.",
)


@dataclass(frozen=True)
class Geometry:
    """The results `compute_distances` and `compute_geometry`, and the runs with their settings."""

    runs: pd.DataFrame
    curves: pd.DataFrame
    described: pd.DataFrame


def compute(context: StudyContext) -> Geometry | None:
    """The measures; None where neither was recorded."""
    runs = compute_distances(context.curve_trials)
    if not len(runs):
        return None
    known = context.curve_trials[["number", *CONFIGURATION[1:], "score"]]
    return Geometry(runs, compute_geometry(runs), runs.merge(known, on="number"))


def show(info: Geometry) -> tuple[Table, ...]:
    means = info.curves.pivot(index=["mtd", "n", "seeds"], columns="measure", values="mean")
    few = _few(info)
    table = means[list(GEOMETRY)[:2] if few else list(GEOMETRY)].reset_index()
    distances = "" if few else "; L1 and L2 are the distances from the ideal point"
    caption = f"Mean of each measure by MTD{distances}. The CSV has all measures with intervals."
    return (make_table(table, caption=caption, csv="geometry", many="levels"),)


def draw_measures(info: Geometry) -> Drawing:
    return _draw_curves(
        info,
        "Alignment and uniformity against maximum traceable distance",
        "A point per trial, a thin line per seed, the mean over seeds.",
        ("alignment", "alignment (lower is better)", "alignment", "Alignment"),
        ("uniformity", "uniformity (lower is better)", "uniformity", "Uniformity"),
    )


def draw_distance(info: Geometry) -> Drawing | None:
    """The distances from the ideal; None for a few levels, whose means the table states."""
    if _few(info):
        return None
    return _draw_curves(
        info,
        "Distance from the ideal point against maximum traceable distance",
        "How far each trial's (uniformity, alignment) lies from the ideal point: alignment 0, "
        "where paraphrases coincide, and uniformity −4, that of vectors spread evenly over "
        "a sphere of many dimensions. Lower is better.",
        ("l1", "L1: sum of both differences", "L1 distance", "The L1 distance"),
        ("l2", "L2: straight-line distance", "L2 distance", "The L2 distance"),
    )


def _draw_curves(
    info: Geometry, title: str, caption: str, *panels: tuple[str, str, str, str]
) -> Drawing:
    """The curves of each panel: a measure, the panel's title, the axis label, the name in text."""
    curves = {
        measure: info.curves[info.curves["measure"] == measure].reset_index(drop=True)
        for measure, *_ in panels
    }

    def draw(measure: str, label: str) -> Draw:
        def panel(ax: Axes) -> None:
            curve, runs = curves[measure], info.described
            figures.draw_mtd_curve(curve, ax, runs=runs, value=measure, name=label)
            figures.add_legend(ax)

        return panel

    return Drawing(
        title,
        [(head, draw(measure, label)) for measure, head, label, _ in panels],
        height=3.9,
        columns=2,
        caption=f"{caption} {BAND}",
        alt=" ".join(
            describe_curve(curves[key], f"{name} is", decimals=3) for key, *_, name in panels
        ),
    )


def _few(info: Geometry) -> bool:
    """Whether there are so few levels that the curves show what distances and a plane would."""
    return bool(info.curves["mtd"].nunique() <= MOST_LOOKS)


def draw_plane(info: Geometry) -> Drawing | None:
    if _few(info):
        return None
    nearest = info.runs.iloc[int(info.runs["l2"].argmin())]
    return Drawing(
        "Alignment and uniformity of each trial",
        [("", lambda ax: figures.draw_plane(info.described, ax))],
        height=4.2,
        caption="A point per trial. The ideal point, alignment 0 and uniformity −4, lies outside.",
        alt=(
            f"The trial nearest the ideal has MTD {format_mtd(nearest['mtd'])}, alignment "
            f"{nearest['alignment']:.3f} and uniformity {nearest['uniformity']:.3f}."
        ),
    )


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
    text=lambda _: _TEXT,
    tables=show,
)
