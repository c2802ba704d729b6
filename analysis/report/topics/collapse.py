"""Topic: collapse of symmetric structures over the training steps (MoCoSE, figures 5 and 6)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis import figures
from analysis.report.cells import PERCENT, count, make_table
from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.training import COLLAPSE_COSINE, compute_collapse, detect_collapse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CRITERIA = (
    "A trial counts as collapsed from the first evaluation from which on, to its end, each "
    "evaluation shows one of these: the score is missing because every cosine is the same; the "
    "score lies under half of the highest until then, if that is above 0 (the untrained encoder's "
    "counts where the study's metric is a correlation too); or the mean cosine of random pairs "
    f"is above {COLLAPSE_COSINE:g}, so that all embeddings coincide and scores are of rounding "
    "errors. A trial that failed because it had collapsed counts, without a step. Trials that were "
    "pruned or failed otherwise are not assessed."
)


@dataclass(frozen=True)
class Collapse:
    """curves: `compute_collapse`; detected: `detect_collapse`; labels: of settings.

    Attributes:
        score: label of scores.
    """

    curves: pd.DataFrame
    detected: pd.DataFrame
    labels: Mapping[str, str]
    score: str


def compute(context: StudyContext) -> Collapse | None:
    """None unless the study sets a symmetric structure beside another."""
    detected = detect_collapse(context.study)
    if not len(detected):
        return None
    curves = compute_collapse(context.study)
    return Collapse(curves, detected, context.labels, context.score_label)


def _name_structure(table: pd.DataFrame) -> pd.Series:
    """η and the predictor of each row, as text."""
    names = [
        f"η {decay:g}, " + (count(int(layers), "prediction layer") if layers else "no predictor")
        for decay, layers in zip(table["ema_decay"], table["prediction_layers"], strict=True)
    ]
    return pd.Series(names, index=table.index, dtype="str")


def describe_detected(detected: pd.DataFrame) -> Iterator[str]:
    """A sentence for each structure of `detect_collapse`."""
    columns = ["n", "collapsed", "failed", "pruned", "first", "last"]
    numbers = detected[columns].to_numpy(dtype=np.float64)
    for name, row in zip(_name_structure(detected), numbers, strict=True):
        n, collapsed, failed, pruned, first, last = row
        seen = f"collapse detected in {collapsed:.0f}" if collapsed else "no collapse detected"
        text = f"{name}: {seen} {'of' if collapsed else 'in'} {count(int(n), 'trial')}"
        if np.isfinite(first):
            text += f", the first at step {first:,.0f}"
        if first < last:
            text += f", the last at step {last:,.0f}"
        others = ((failed, "failed"), (pruned, "pruned"))
        ends = [f"{runs:.0f} {how}" for runs, how in others if runs]
        yield f"{text}; {', '.join(ends)}, not assessed." if ends else f"{text}."


def describe(info: Collapse) -> tuple[str, ...]:
    """A sentence for each structure."""
    return tuple(describe_detected(info.detected))


def draw(info: Collapse) -> Drawing | None:
    """Score and mean cosine over steps by structure."""
    if not len(info.curves):
        return None
    table = info.curves.assign(structure=_name_structure(info.curves))

    def draw_score(ax: "Axes") -> None:
        figures.draw_structures(table, ax, value="mean", label=info.score)
        figures.add_legend(ax)

    def draw_cosine(ax: "Axes") -> None:
        figures.draw_structures(table, ax, value="mean_cosine", label="mean cosine")
        figures.add_legend(ax)

    return Drawing(
        "Score over steps by structure",
        [
            ("score at each evaluation", draw_score),
            ("mean cosine of random pairs", draw_cosine),
        ],
        height=4.0,
        columns=2,
        caption=(
            "As the paper's figures 5 and 6. The mean cosine is 1 if all vectors coincide. Scores "
            "are of the pairs that choose the checkpoint. "
            f"The band is the {PERCENT} t interval over seeds."
        ),
        alt=" ".join(describe(info)),
    )


def show(info: Collapse) -> tuple[Table, ...]:
    """How many runs of each structure collapsed, and when."""
    table = make_table(
        info.detected.rename(columns={"first": "first step", "last": "last step"}),
        caption="Detected collapses. " + _CRITERIA,
        csv="collapse_detected",
        labels=info.labels,
    )
    return (table,)


TOPIC = Topic(
    name="collapse",
    title="Collapse",
    group="Training",
    compute=compute,
    csv={
        "collapse": lambda info: info.curves,
        "collapse_detected": lambda info: info.detected,
    },
    figures={"collapse": draw},
    text=describe,
    tables=show,
)
