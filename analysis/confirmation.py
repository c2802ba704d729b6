"""Confirmation of a study's best level: compared with its runner-up on new seeds."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.intervals import Estimate
from analysis.items import ItemScores
from analysis.pairing import (
    compute_paired_curve,
    estimate_difference,
    select_configuration,
)
from analysis.runs import traced_runs, varied_settings
from analysis.verdict import Verdict


@dataclass(frozen=True)
class Candidate:
    """A configuration: its MTD in steps, and the number of its first complete trial."""

    mtd: float
    number: int


@dataclass(frozen=True)
class Difference:
    """The best configuration less the runner-up, paired by seed, in points (x 100).

    seeds     those that have both configurations; estimate: interval over them, NaN for one seed.
    """

    seeds: int
    estimate: Estimate


def choose_candidates(
    trials: pd.DataFrame, settings: Collection[str], verdict: Verdict
) -> tuple[Candidate, Candidate]:
    """The best configuration and the runner-up.

    trials    those that the verdict was computed from; settings: which columns are settings.

    The best level has the highest estimate. The runner-up is the best level outside the optimal
    range, because levels within it are statistically indistinguishable from the best; where no
    level is outside, it is the second-best level. Of several configurations at a level, the one
    with the highest mean is taken. Raises ValueError with fewer than two levels.
    """
    curve = compute_paired_curve(trials, settings)
    if len(curve) < 2:
        raise ValueError("fewer than two levels of MTD have scores of the same seeds")
    others = curve[curve["mtd"] != verdict.peak_mtd]
    outside = others[~others["mtd"].isin(verdict.optimal_range)]
    ranked = (outside if len(outside) else others).sort_values("mean", ascending=False)
    runs = traced_runs(trials)
    best = _configuration(runs, settings, verdict.peak_mtd)
    return best, _configuration(runs, settings, float(ranked["mtd"].iloc[0]))


def _configuration(runs: pd.DataFrame, settings: Collection[str], level: float) -> Candidate:
    """The configuration with the highest mean at the level of MTD that is nearest to `level`."""
    distance = (np.log(runs["mtd"]) - np.log(level)).abs()
    there = runs[runs["mtd"] == runs.loc[distance.idxmin(), "mtd"]]
    varied = varied_settings(there, settings)
    if varied:
        mean = there.groupby(varied, dropna=False)["score"].transform("mean")
        there = there[mean == mean.max()]
    first = there.sort_values("number").iloc[0]
    return Candidate(float(first["mtd"]), int(first["number"]))


def compare_candidates(
    trials: pd.DataFrame,
    settings: Collection[str],
    best: int,
    runner_up: int,
    items: ItemScores | None = None,
) -> Difference:
    """The paired difference of two configurations, each given by the number of one of its trials.

    items  `StudyFrames.items`, whose sampling the interval then covers too.

    Raises KeyError for a number without a completed trial.
    """
    runs = traced_runs(trials).set_index("number", drop=False)
    varied = varied_settings(runs, settings)
    first, second = (
        select_configuration(runs, varied, runs.loc[[number]].iloc[0])
        for number in (best, runner_up)
    )
    found, seeds = estimate_difference(first, second, (items, items))
    return Difference(seeds, found)
