"""Whether the optimal MTD is the same at other learning rates and numbers of steps."""

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import BEYOND_RUN, BeyondRun
from mtdlab.analysis.data.items import ItemScores
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
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    items: ItemScores | None = None,
    half_lives: pd.DataFrame | None = None,
    beyond_run: BeyondRun = BEYOND_RUN,
    excluded: Collection[str] = (),
) -> tuple[Condition, ...]:
    """Verdict and curves for each learning rate and number of steps of a study that varies them.

    The conditions share the error rate (Bonferroni): each has 5 % divided by their number.
    Conditions with fewer than two levels of MTD are left out; empty with fewer than two conditions.
    `half_lives` is `compute_half_lives` of these trials; settings that are `excluded` make no
    condition.
    """
    runs = traced_runs(trials)
    if half_lives is not None:
        runs = runs.merge(half_lives, on="number", how="left")
    possible = [name for name in CONDITIONS if name in runs and name not in excluded]
    varied = [name for name in possible if runs[name].nunique() > 1]
    if not varied:
        return ()
    groups = [group for _, group in runs.groupby(varied) if group["mtd"].nunique() > 1]
    if len(groups) < 2:
        return ()
    conditions = []
    for group in groups:
        levels = level_scores(group, settings, items, beyond_run=beyond_run)
        verdict, half_life = judge_levels(levels, level=share_level(len(groups))), math.nan
        if "half_life" in group:
            at_best = np.isclose(group["mtd"], verdict.peak_mtd)
            half_life = float(group.loc[at_best, "half_life"].astype("float64").mean())
        condition = Condition(
            name=", ".join(_NAMES[name].format(float(group[name].iloc[0])) for name in varied),
            stated=describe_conditions(group),
            runs=group,
            curve=summarise_scores(group, by=["mtd"], items=items),
            paired=compute_paired_curve(levels),
            verdict=verdict,
            half_life=half_life,
        )
        conditions.append(condition)
    return tuple(conditions)
