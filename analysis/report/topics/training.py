"""Topic: training curves of the trials."""

from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.points import MOST_LOOKS, describe_runs
from analysis.data.runs import format_mtd, mtd_or_0
from analysis.data.tasks import LAST
from analysis.report.cells import PERCENT, clean, count
from analysis.report.context import list_selection
from analysis.report.topics.base import Draw, Drawing, StudyContext, Topic
from analysis.statistics.methods import with_methods
from analysis.statistics.training import (
    MOST_POINTS,
    MOST_TRIALS,
    choose_curves,
    compute_training,
    compute_training_means,
    count_best_at_end,
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
