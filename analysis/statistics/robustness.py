"""Whether the optimal MTD is the same at other learning rates and numbers of steps."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import traced_runs
from mtdlab.analysis.inference.intervals import share_level
from mtdlab.analysis.inference.pairing import (
    compute_paired_curve,
    level_scores,
    summarise_scores,
)
from mtdlab.analysis.inference.verdict import CONDITIONS, Verdict, describe_conditions, judge_levels

_NAMES = {"learning_rate": "learning rate {:g}", "steps": "{:g} steps"}


@dataclass(frozen=True)
class Condition:
    """The runs of one learning rate and number of steps.

    Attributes:
        name: such as "learning rate 0.001, 160 steps".
        stated: `describe_conditions` of its runs.
        runs: its completed runs with an MTD.
        curve: `summarise_scores` by MTD.
        paired: `compute_paired_curve`.
        verdict: at a confidence by which all conditions together have an error rate of 5 %.
        half_life: mean measured half-life of keys at the best level, in steps; NaN if not measured.
    """

    name: str
    stated: str
    runs: pd.DataFrame
    curve: pd.DataFrame
    paired: pd.DataFrame
    verdict: Verdict
    half_life: float


def compute_conditions(
    study: StudyFrames, trials: pd.DataFrame, half_lives: pd.DataFrame
) -> tuple[Condition, ...]:
    """Verdict and curves for each learning rate and number of steps of a study that varies them.

    The conditions share the error rate (Bonferroni): each has 5 % divided by their number.
    Conditions with fewer than two levels of MTD are left out; empty with fewer than two conditions.
    `half_lives` is `compute_half_lives` of these trials. A value that was chosen for a level makes
    no condition.
    """
    runs = traced_runs(trials)
    runs = runs.merge(half_lives, on="number", how="left")
    possible = [name for name in CONDITIONS if name in runs and name not in study.nuisance]
    varied = [name for name in possible if runs[name].nunique() > 1]
    if not varied:
        return ()
    groups = [group for _, group in runs.groupby(varied) if group["mtd"].nunique() > 1]
    if len(groups) < 2:
        return ()
    conditions = []
    for group in groups:
        levels = level_scores(group, study.settings, study.items, beyond_run=study.beyond_run)
        verdict = judge_levels(levels, level=share_level(len(groups)))
        at_best = np.isclose(group["mtd"], verdict.peak_mtd)
        condition = Condition(
            name=", ".join(_NAMES[name].format(float(group[name].iloc[0])) for name in varied),
            stated=describe_conditions(group),
            runs=group,
            curve=summarise_scores(group, by=["mtd"], items=study.items),
            paired=compute_paired_curve(levels),
            verdict=verdict,
            half_life=float(group.loc[at_best, "half_life"].astype("float64").mean()),
        )
        conditions.append(condition)
    return tuple(conditions)
