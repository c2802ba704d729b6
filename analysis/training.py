"""How trials were trained: loss and dev scores over the steps, thinned for a figure."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.runs import completed_runs, has_mtd

MOST_TRIALS = 40
"""Trials whose curves are shown; of more, so many evenly chosen ones."""
MOST_POINTS = 50
"""Points of a trial's loss: each the mean over its part of the steps."""

_COLUMNS = ["number", "step", "loss", "score"]


def choose_curves(trials: pd.DataFrame) -> Collection[int]:
    """The numbers of the trials whose curves are shown: evenly chosen in the order of their MTD.

    Trials that have ended count, completed or not.
    """
    ended = trials[trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"])]
    distance = ended["mtd"].astype("float64").where(has_mtd(ended), 0.0)
    ordered = ended.assign(distance=distance).sort_values(["distance", "seed"], kind="stable")
    if len(ordered) > MOST_TRIALS:
        places = np.linspace(0, len(ordered) - 1, MOST_TRIALS).round().astype(int)
        ordered = ordered.iloc[places]
    return [int(number) for number in ordered["number"]]


def count_best_at_end(trials: pd.DataFrame) -> tuple[int, int]:
    """How many completed trials were best at their last evaluation, and of how many this is known.

    The last evaluation is that of the last step; (0, 0) where best step or steps are not recorded.
    """
    if not {"best_step", "steps"} <= set(trials):
        return 0, 0
    runs = completed_runs(trials)
    known = runs[runs["best_step"].notna() & runs["steps"].notna()]
    return int((known["best_step"] == known["steps"]).sum()), len(known)


def compute_training(study: StudyFrames) -> pd.DataFrame:
    """The curves of at most 40 trials: number, step, loss, score.

    step   the last of the steps that a row stands for; loss  their mean, at most 50 rows a trial;
    score  of the pairs that choose the checkpoint, NaN where the steps have no evaluation.

    No rows where no curve was recorded.
    """
    chosen = choose_curves(study.trials)
    curves = study.curves[study.curves["number"].isin(list(chosen))]
    if not len(curves):
        return pd.DataFrame(columns=_COLUMNS, dtype="float64")
    steps = curves.groupby("number")["step"].transform("max")
    part = np.ceil(curves["step"] * steps.clip(upper=MOST_POINTS) / steps)
    groups = curves.assign(part=part).groupby(["number", "part"])
    table = groups.agg(step=("step", "max"), loss=("loss", "mean")).reset_index()
    scored = curves.loc[curves["score"].notna(), ["number", "step", "score"]]
    merged = table.merge(scored, on=["number", "step"], how="outer")
    return merged.sort_values(["number", "step"], ignore_index=True)[_COLUMNS]
