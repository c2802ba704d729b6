"""Topic: how similar random negatives can be, where a study mixed negatives (MixCSE)."""

import pandas as pd

from analysis import figures
from analysis.data.runs import completed_runs
from analysis.measures.spherical_cap import (
    DIMENSIONS,
    compute_spherical_cap,
    describe_spherical_cap,
)
from analysis.report.cells import make_table
from analysis.report.topics.base import Drawing, StudyContext, Table, Topic

MIXING = "mixing_weight"
_DECIMALS = 3
_MODEL = (
    "A model of the study's methods, not a result of its trials: sentence vectors drawn uniformly "
    "from a spherical cap of angle ω, which is wide before training and narrow for a group of "
    "similar sentences. In many dimensions the cosines of random pairs hardly vary, so a random "
    "negative is almost never a hard one."
)


def compute(context: StudyContext) -> pd.DataFrame | None:
    """The table of `compute_spherical_cap`, with the encoder's dimension; None without mixing."""
    runs = completed_runs(context.trials)
    if MIXING not in runs or not runs[MIXING].notna().any():
        return None
    width = context.width or 0
    return compute_spherical_cap(sorted({*DIMENSIONS, max(width, min(DIMENSIONS))}))


def draw(frame: pd.DataFrame) -> Drawing:
    return Drawing(
        "Cosine of random pairs on a spherical cap",
        [("", lambda ax: figures.draw_spherical_cap(frame, ax))],
        height=4.2,
        caption=(
            "Lines and bands: mean and standard deviation in closed form; crosses with bars: the "
            "same of simulated pairs; dashed: a mixed negative."
        ),
        alt=describe_spherical_cap(frame),
    )


def show(frame: pd.DataFrame) -> tuple[Table, ...]:
    pairs = int(frame["pairs"].iloc[0])
    caption = (
        "Cosine of random pairs by angle (degrees) and dimension, in closed form and of "
        f"{pairs:,} simulated pairs each; and of a mixed negative."
    )
    labels = {
        "std": "standard deviation",
        "simulated_mean": "simulated mean",
        "simulated_std": "simulated standard deviation",
        "mixed": "mixed negative",
    }
    shown = frame.drop(columns="pairs").round(_DECIMALS)
    return (make_table(shown, caption=caption, csv="spherical_cap", labels=labels),)


TOPIC = Topic(
    name="spherical-cap",
    title="Random and mixed negatives",
    group="Representation",
    compute=compute,
    csv={"spherical_cap": lambda frame: frame},
    figures={"spherical_cap": draw},
    text=lambda frame: (_MODEL, describe_spherical_cap(frame)),
    tables=show,
)
