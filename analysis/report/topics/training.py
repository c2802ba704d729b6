"""Topics: training curves; collapse of symmetric structures over the steps (figures 5 and 6)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import MOST_LOOKS, describe_runs
from mtdlab.analysis.data.runs import format_mtd, mtd_or_0
from mtdlab.analysis.data.tasks import LAST
from mtdlab.analysis.inference.best import with_methods
from mtdlab.analysis.report.cells import BAND, PERCENT, clean, count, make_table
from mtdlab.analysis.report.context import list_selection
from mtdlab.analysis.report.topics.base import Axes, Draw, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.statistics.training import (
    COLLAPSE_COSINE,
    MOST_POINTS,
    MOST_TRIALS,
    choose_curves,
    compute_collapse,
    compute_training,
    compute_training_means,
    count_best_at_end,
    detect_collapse,
)


@dataclass(frozen=True)
class Training:
    """The curves (`compute_training`) with seed, mtd (0 for none), text, trial and group.

    Attributes:
        curves: a row per point, in the order of their groups, which are methods and levels of MTD.
        chosen: whether trials were left out.
    """

    context: StudyContext
    curves: pd.DataFrame
    chosen: bool


def compute(context: StudyContext) -> Training | None:
    """The curves; None where no curve of a trial was read."""
    study = context.study
    curves = compute_training(study)
    if not len(curves):
        return None
    trials = with_methods(context.trials, study.settings)
    methods = trials["method"] if "method" in trials else pd.Series("", index=trials.index)
    known = describe_runs(trials).assign(
        number=trials["number"],
        seed=trials["seed"],
        mtd=mtd_or_0(trials),
        method=[clean(context.name_method(name)) for name in methods],
    )
    known = known[known["number"].isin(curves["number"])]
    names_method, names_mtd = known["method"].nunique() > 1, known["mtd"].nunique() > 1
    known["group"] = [
        " ".join(
            [
                *([method] if names_method else []),
                *([f"MTD {format_mtd(mtd)}"] if names_mtd and mtd > 0 else []),
            ]
        )
        or ("no MTD" if names_mtd else "all trials")
        for method, mtd in zip(known["method"], known["mtd"], strict=True)
    ]
    ended = int(trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"]).sum())
    merged = curves.merge(known, on="number").sort_values(
        ["method", "mtd", "number", "step"], ignore_index=True
    )
    return Training(context, merged, ended > len(choose_curves(trials)))


def describe(info: Training) -> tuple[str, ...]:
    """A sentence on how many trials scored highest at their last evaluation."""
    ends, trials = count_best_at_end(info.context.trials)
    of = count(trials, "trial")
    if not trials:
        scored = info.curves[info.curves["score"].notna()]
        if not len(scored):
            return ("No trial was evaluated during training.",)
        best = scored.loc[scored.groupby("number")["score"].idxmax()]
        last = scored.groupby("number")["step"].max()
        ends = int((best.set_index("number")["step"] == last).sum())
        of = f"{count(len(best), 'trial')} drawn"
    return (f"{ends:,} of {of} scored highest at their last evaluation.",)


def draw(info: Training) -> Drawing:
    context, study = info.context, info.context.study
    panels = [("score at each evaluation", _panel(info, "score", context.score_label))]
    lines = (
        f"The mean over seeds of the trials that reached the last step, with its {PERCENT} "
        "interval for these evaluation items, and a faint line per trial"
        if info.curves["group"].nunique() <= MOST_LOOKS
        else "A line per trial"
    )
    caption = f"{lines}. Scores are those that the program reported."
    if not study.program:
        label = context.selection_label
        panels = [
            ("score at each evaluation", _panel(info, "score", label)),
            ("training loss", _panel(info, "loss", "loss")),
        ]
        caption = (
            f"{lines}. Scores: {label}{_choice(context)}; a point of the loss "
            f"is the mean over a part of the steps, at most {MOST_POINTS} per trial."
        )
    if info.chosen:
        caption += f" Drawn: {MOST_TRIALS} trials, evenly chosen in the order of MTD."
    return Drawing(
        "Training curves",
        panels,
        height=3.9,
        columns=len(panels),
        caption=caption,
        alt=describe(info)[0],
    )


def _choice(context: StudyContext) -> str:
    """The words on what the scores during training choose."""
    used = list_selection(context.trials)
    if used == [LAST]:
        return "; the checkpoint is that of the last step"
    unless = ", unless it is that of the last step" if LAST in used else ""
    return f", which choose the checkpoint{unless}"


def _panel(info: Training, value: str, label: str) -> Draw:
    means = compute_training_means(info.curves, value=value)
    return lambda ax: figures.draw_training(info.curves, means, ax, value=value, label=label)


TOPIC = Topic(
    name="training",
    title="Training curves",
    group="Training",
    compute=compute,
    csv={
        "training_curves": lambda info: info.curves[
            ["number", "step", "loss", "score"]
        ].sort_values(["number", "step"], ignore_index=True)
    },
    figures={"training_curves": draw},
    text=describe,
)


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


def _find_collapse(context: StudyContext) -> Collapse | None:
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


def _describe_collapses(info: Collapse) -> tuple[str, ...]:
    """A sentence for each structure; one for all where no trial collapsed, failed or was pruned."""
    detected = info.detected
    if detected[["collapsed", "failed", "pruned"]].to_numpy().any():
        return tuple(describe_detected(detected))
    trials = count(int(detected["n"].sum()), "trial")
    return (f"No collapse was detected in {trials}: {'; '.join(_name_structure(detected))}.",)


def _draw_collapse(info: Collapse) -> Drawing | None:
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
        alt=" ".join(_describe_collapses(info)),
    )


def _show_collapses(info: Collapse) -> tuple[Table, ...]:
    shown = info.detected.rename(columns={"first": "first step", "last": "last step"})
    if shown["prediction_layers"].nunique() == 1:
        shown = shown.drop(columns="prediction_layers")
    caption, labels = f"Detected collapses. {_CRITERIA}", info.context.labels
    return (make_table(shown, caption=caption, csv="collapse_detected", labels=labels),)


COLLAPSE = Topic(
    name="collapse",
    title="Collapse",
    group="Training",
    compute=_find_collapse,
    csv={
        "collapse": lambda info: info.curves,
        "collapse_detected": lambda info: info.detected,
    },
    figures={"collapse": _draw_collapse},
    text=_describe_collapses,
    tables=_show_collapses,
    folded=lambda info: not info.detected["collapsed"].any(),
)
