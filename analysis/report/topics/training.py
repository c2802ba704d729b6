"""Topic: training curves of the trials."""

from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.points import describe_runs
from analysis.data.runs import has_mtd
from analysis.data.tasks import LAST
from analysis.report.cells import clean, count
from analysis.report.context import list_selection
from analysis.report.topics.base import Draw, Drawing, StudyContext, Topic
from analysis.statistics.methods import with_methods
from analysis.statistics.training import (
    MOST_POINTS,
    MOST_TRIALS,
    choose_curves,
    compute_training,
    count_best_at_end,
)


@dataclass(frozen=True)
class Training:
    """curves: `compute_training` with mtd (0 where there is none), method, text and trial.

    Attributes:
        chosen: whether trials were left out.
    """

    context: StudyContext
    curves: pd.DataFrame
    chosen: bool


def compute(context: StudyContext) -> Training | None:
    """None where no curve of a trial was read."""
    study = context.study
    curves = compute_training(study)
    if not len(curves):
        return None
    trials = with_methods(context.trials, study.settings)
    methods = trials["method"] if "method" in trials else pd.Series("", index=trials.index)
    known = describe_runs(trials).assign(
        number=trials["number"],
        mtd=trials["mtd"].astype("float64").where(has_mtd(trials), 0.0),
        method=[clean(context.name_method(name)) for name in methods],
    )
    ended = int(trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"]).sum())
    return Training(context, curves.merge(known, on="number"), ended > len(choose_curves(trials)))


def describe(info: Training) -> tuple[str, ...]:
    """At which step the scores of all trials were highest; of old studies, of those drawn."""
    ends, trials = count_best_at_end(info.context.trials)
    of = f"{trials:,} trials"
    if not trials:
        scored = info.curves[info.curves["score"].notna()]
        if not len(scored):
            return ("No trial was evaluated during training.",)
        best = scored.loc[scored.groupby("number")["score"].idxmax()]
        last = scored.groupby("number")["step"].max()
        ends = int((best.set_index("number")["step"] == last).sum())
        of = f"{count(len(best), 'trial')} drawn"
    return (f"Of {of}, {ends:,} had their highest score at the last evaluation.",)


def draw(info: Training) -> Drawing:
    context, study = info.context, info.context.study
    panels = [("score at each evaluation", _panel(info, "score", context.score_label))]
    caption = "A line per trial. Scores are those that the program reported."
    if not study.program:
        label = context.selection_label
        panels = [
            ("score at each evaluation", _panel(info, "score", label)),
            ("training loss", _panel(info, "loss", "loss")),
        ]
        caption = (
            f"A line per trial. Scores: {label}{_choice(context)}; a point of the loss "
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
    """What the scores during training choose."""
    used = list_selection(context.trials)
    if used == [LAST]:
        return "; the checkpoint is that of the last step"
    unless = ", unless it is that of the last step" if LAST in used else ""
    return f", which choose the checkpoint{unless}"


def _panel(info: Training, value: str, label: str) -> Draw:
    return lambda ax: figures.draw_training(info.curves, ax, value=value, label=label)


TOPIC = Topic(
    name="training",
    title="Training curves",
    group="Training",
    compute=compute,
    csv={"training_curves": lambda info: info.curves[["number", "step", "loss", "score"]]},
    figures={"training_curves": draw},
    text=describe,
)
