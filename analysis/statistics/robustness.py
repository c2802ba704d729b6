"""Whether the optimal MTD is the same at other learning rates, numbers of steps, batch sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import CONDITIONS, traced_runs
from mtdlab.analysis.inference.intervals import share_level
from mtdlab.analysis.inference.pairing import compute_paired_curve, level_scores, summarise_scores
from mtdlab.analysis.inference.verdict import Verdict, judge_levels

_NAMES = {"learning_rate": "learning rate {:g}", "steps": "{:g} steps"}


@dataclass(frozen=True)
class Condition:
    """The runs of one condition.

    Attributes:
        name: such as "learning rate 0.001, 160 steps".
        runs: its completed runs with an MTD.
        curve: `summarise_scores` by MTD.
        paired: `compute_paired_curve`.
        verdict: at a confidence by which all conditions together have one error rate.
    """

    name: str
    runs: pd.DataFrame
    curve: pd.DataFrame
    paired: pd.DataFrame
    verdict: Verdict

    @property
    def half_life(self) -> float:
        """Mean measured half-life of keys at the best level, in steps; NaN if not measured."""
        at_best = np.isclose(self.runs["mtd"], self.verdict.peak_mtd)
        return float(self.runs.loc[at_best, "half_life"].astype("float64").mean())


def judge_conditions(
    study: StudyFrames, groups: Sequence[tuple[str, pd.DataFrame]], level: float = LEVEL
) -> tuple[Condition, ...]:
    """Verdict and curves of each condition: its name, and its completed runs with an MTD.

    The conditions share the error rate 1 - `level` (Bonferroni): it is divided by their number.
    """
    conditions = []
    for name, runs in groups:
        levels = level_scores(runs, study.settings, study.items, beyond_run=study.beyond_run)
        verdict = judge_levels(levels, level=share_level(len(groups), level), margin=study.margin)
        curve = summarise_scores(runs, by=["mtd"], items=study.items)
        conditions.append(Condition(name, runs, curve, compute_paired_curve(levels), verdict))
    return tuple(conditions)


def compute_conditions(
    study: StudyFrames, trials: pd.DataFrame, half_lives: pd.DataFrame, level: float = LEVEL
) -> tuple[Condition, ...]:
    """`judge_conditions` of each learning rate and number of steps of a study that varies them.

    Conditions with fewer than two levels of MTD are left out; empty with fewer than two conditions.
    `half_lives` is `compute_half_lives` of these trials. A value that was chosen for a level makes
    no condition.
    """
    runs = traced_runs(trials).merge(half_lives, on="number", how="left")
    possible = [name for name in CONDITIONS if name in runs and name not in study.nuisance]
    varied = [name for name in possible if runs[name].nunique() > 1]
    groups = [
        (", ".join(_NAMES[name].format(float(group[name].iloc[0])) for name in varied), group)
        for _, group in (runs.groupby(varied) if varied else ())
        if group["mtd"].nunique() > 1
    ]
    return judge_conditions(study, groups, level) if len(groups) > 1 else ()
