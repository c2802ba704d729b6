"""Topic: collapse of symmetric structures over the training steps (MoCoSE, figures 5 and 6)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import figures
from analysis.report.cells import BAND, count, make_table
from analysis.report.topics.base import Axes, Draw, Drawing, StudyContext, Table, Topic
from analysis.statistics.training import COLLAPSE_COSINE, compute_collapse, detect_collapse

_CRITERIA = (
    "A trial counts as collapsed from the first evaluation from which on, to its end, each "
    "evaluation shows one of these: the score is missing because every cosine is the same; the "
    "score lies under half of the highest until then, if that is above 0 (that before training "
    "counts where the study's metric is a correlation too); or the mean cosine of random pairs "
    f"is above {COLLAPSE_COSINE:g}, so that all embeddings coincide and scores are of rounding "
    "errors. A trial that failed because it had collapsed counts, without a step. Trials that were "
    "pruned or failed otherwise are not assessed."
)


@dataclass(frozen=True)
class Collapse:
    """The results: `curves` is `compute_collapse`, `detected` is `detect_collapse`."""

    context: StudyContext
    curves: pd.DataFrame
    detected: pd.DataFrame


def compute(context: StudyContext) -> Collapse | None:
    """The collapses; None unless the study compares a symmetric structure with another."""
    detected = detect_collapse(context.study)
    return Collapse(context, compute_collapse(context.study), detected) if len(detected) else None


def _name_structure(table: pd.DataFrame) -> pd.Series:
    """η of each row as text, and its predictor where that varies."""
    names = [f"η {decay:g}" for decay in table["ema_decay"]]
    if table["prediction_layers"].nunique() > 1:
        predictors = [
            count(int(layers), "prediction layer") if layers else "no predictor"
            for layers in table["prediction_layers"]
        ]
        names = [", ".join(parts) for parts in zip(names, predictors, strict=True)]
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
    """A sentence for each structure; one for all where no trial collapsed, failed or was pruned."""
    detected = info.detected
    if detected[["collapsed", "failed", "pruned"]].to_numpy().any():
        return tuple(describe_detected(detected))
    trials = count(int(detected["n"].sum()), "trial")
    return (f"No collapse was detected in {trials}: {'; '.join(_name_structure(detected))}.",)


def draw(info: Collapse) -> Drawing | None:
    if not len(info.curves):
        return None
    table = info.curves.assign(structure=_name_structure(info.curves))

    def panel(value: str, label: str) -> Draw:
        def draw_one(ax: Axes) -> None:
            figures.draw_structures(table, ax, value=value, label=label)
            figures.add_legend(ax)

        return draw_one

    return Drawing(
        "Score over steps by structure",
        [
            ("score at each evaluation", panel("mean", info.context.score_label)),
            ("mean cosine of random pairs", panel("mean_cosine", "mean cosine")),
        ],
        height=4.0,
        columns=2,
        caption=(
            "As the paper's figures 5 and 6. The mean cosine is 1 if all vectors coincide. Scores "
            f"are of the pairs that choose the checkpoint. {BAND}"
        ),
        alt=" ".join(describe(info)),
    )


def show(info: Collapse) -> tuple[Table, ...]:
    shown = info.detected.rename(columns={"first": "first step", "last": "last step"})
    if shown["prediction_layers"].nunique() == 1:
        shown = shown.drop(columns="prediction_layers")
    caption, labels = f"Detected collapses. {_CRITERIA}", info.context.labels
    return (make_table(shown, caption=caption, csv="collapse_detected", labels=labels),)


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
    folded=lambda info: not info.detected["collapsed"].any(),
)
