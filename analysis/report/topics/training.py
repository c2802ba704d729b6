"""Topic: training curves of the trials."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figures
from analysis.data.points import describe_runs
from analysis.data.runs import has_mtd
from analysis.report.cells import clean, count
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.topics.base import Topic
from analysis.statistics.methods import with_methods
from analysis.statistics.training import (
    MOST_POINTS,
    MOST_TRIALS,
    choose_curves,
    compute_training,
    count_best_at_end,
)

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Training:
    """curves: `compute_training` with mtd (0 where there is none), method, text and trial.

    Attributes:
        chosen: whether trials were left out.
        label: of scores.
        program: whether a program of the user reported the scores.
        at_end: `count_best_at_end` over all trials, not only those that are drawn.
    """

    curves: pd.DataFrame
    chosen: bool
    label: str
    program: bool
    at_end: tuple[int, int]


def compute(context: StudyContext) -> Training | None:
    """None where no curve of a trial was read."""
    study = context.study
    curves = compute_training(study)
    if not len(curves):
        return None
    trials = with_methods(context.trials, study.settings)
    methods = trials["method"] if "method" in trials else pd.Series("", index=trials.index)
    named = [clean(study.methods.get(str(name), str(name))) for name in methods]
    known = describe_runs(trials).assign(
        number=trials["number"],
        mtd=trials["mtd"].astype("float64").where(has_mtd(trials), 0.0),
        method=named,
    )
    ended = int(trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"]).sum())
    chosen = ended > len(choose_curves(trials))
    return Training(
        curves.merge(known, on="number"),
        chosen,
        context.score_label if study.program else context.selection_label,
        bool(study.program),
        count_best_at_end(trials),
    )


def tabulate(info: Training) -> pd.DataFrame:
    """The points that are drawn."""
    return info.curves[["number", "step", "loss", "score"]]


def describe(info: Training) -> tuple[str, ...]:
    """At which step the scores were highest."""
    ends, trials = info.at_end
    if trials:
        return (f"Of {trials:,} trials, {ends:,} had their highest score at the last evaluation.",)
    scored = info.curves[info.curves["score"].notna()]
    if not len(scored):
        return ("No trial was evaluated during training.",)
    best = scored.loc[scored.groupby("number")["score"].idxmax()]
    last = scored.groupby("number")["step"].max()
    ends = int((best.set_index("number")["step"] == last).sum())
    return (
        f"Of {count(len(best), 'trial')} drawn, {ends:,} had their highest score at the last "
        "evaluation.",
    )


def draw(info: Training) -> Drawing:
    """Scores and loss over the steps."""
    some = (
        f" Drawn: {MOST_TRIALS} trials, evenly chosen in the order of MTD." if info.chosen else ""
    )
    scores = ("score at each evaluation", _panel(info, "score", info.label))
    loss = ("training loss", _panel(info, "loss", "loss"))
    of_trainer = (
        f"Scores: {info.label}, which choose the checkpoint; a point of the loss is the mean over "
        f"a part of the steps, at most {MOST_POINTS} per trial."
    )
    return Drawing(
        "Training curves",
        [scores] if info.program else [scores, loss],
        height=3.9,
        columns=1 if info.program else 2,
        caption="A line per trial. "
        + ("Scores are those that the program reported." if info.program else of_trainer)
        + some,
        alt=describe(info)[0],
    )


def _panel(info: Training, value: str, label: str) -> Draw:
    return lambda ax: figures.draw_training(info.curves, ax, value=value, label=label)


TOPIC = Topic(
    name="training",
    title="Training curves",
    group="Training",
    compute=compute,
    csv={"training_curves": tabulate},
    figures={"training_curves": draw},
    text=describe,
)
