"""A look at the verdict of a study that adds seeds until it is decided."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.sequential import Boundaries, Spending, compute_boundaries
from analysis.verdict import Verdict, compute_verdict

SPENDING: Spending = "linear"
"""Of the error rate over the looks. Simulated in tests/evidence/sequential.py."""
LEADING_LEVEL = 0.5
"""Confidence of the optimal range whose levels get the next seeds first. No error rate depends on
it."""
Decision = Literal["continue", "decided", "flat", "max_seeds", "no scores"]


@dataclass(frozen=True)
class Judged:
    """What a look says.

    p_value   of the test behind the verdict: of the trend if the score rises or falls, else of the
              peak; None where there was nothing to test.
    decision  continue, or why the study ends.
    optimal   the levels that cannot be told from the best with a confidence of 50 %, in steps.
    """

    verdict: str
    p_value: float | None
    decision: Decision
    optimal: tuple[float, ...]


def boundaries_at(seeds: Sequence[int], alpha: float) -> Boundaries:
    """The boundaries of looks after these numbers of seeds, in rising order."""
    return compute_boundaries(np.array(seeds) / seeds[-1], alpha, spending=SPENDING)


def judge_look(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    alpha: float,
    margin: float,
    is_last: bool,
) -> Judged:
    """Whether a study ends at this look.

    trials, settings  as `compute_verdict` takes them.
    alpha             the nominal significance level of this look.

    It ends with a peak; with a rising or falling score if the level at that end has the highest
    estimate or a peak inside the range is excluded, since a peak off the middle shows as a trend
    before it shows as a peak; and for futility, if the score is flat within the margin.
    Futility is not binding: the boundaries do not count on it, so that a study that is continued
    nevertheless keeps its error rate.
    """
    verdict = compute_verdict(trials, settings, level=1 - alpha, margin=margin)
    p_value = verdict.p_trend if _is_trend(verdict) else verdict.p_value
    return Judged(
        verdict.verdict,
        None if math.isnan(p_value) else p_value,
        _decide(verdict, is_last=is_last),
        compute_verdict(trials, settings, level=LEADING_LEVEL, margin=margin).optimal_range,
    )


def leading_levels(levels: Sequence[float], optimal: Sequence[float]) -> tuple[float, ...]:
    """The levels that get the next seeds first.

    levels   in rising order, in steps; optimal: those that cannot be told from the best, or values
             near them, at least one.

    From the lowest to the highest optimal level, their neighbours, and the two ends: they decide
    both slopes of the test of a peak. Where the runs say little, these are all levels. A level
    that is left out at one look is not dropped: up to the last look all levels get all seeds.
    """
    place = np.log(levels)
    at = [int(np.abs(place - np.log(level)).argmin()) for level in optimal]
    last = len(levels) - 1
    chosen = {0, last, *range(max(min(at) - 1, 0), min(max(at) + 1, last) + 1)}
    return tuple(levels[index] for index in sorted(chosen))


def _decide(verdict: Verdict, *, is_last: bool) -> Decision:
    if verdict.seeds < 2 or verdict.levels < 2:
        return "no scores"
    if verdict.verdict == "flat":
        return "flat"
    if verdict.verdict == "peaked" or (_is_trend(verdict) and (is_last or _has_no_peak(verdict))):
        return "decided"
    return "max_seeds" if is_last else "continue"


def _is_trend(verdict: Verdict) -> bool:
    return verdict.verdict in ("rising", "falling")


def _has_no_peak(verdict: Verdict) -> bool:
    """Whether nothing speaks for a peak inside the range of a score that rises or falls."""
    end = verdict.last if verdict.verdict == "rising" else verdict.first
    return verdict.peak_excluded or verdict.peak_mtd == end


def judged_trials(study: StudyFrames, trials: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """The trials of a study that its verdict is about, and the significance level.

    Of a study that adds seeds, the trials of its last look and the nominal level of that look:
    what has run since then counts at the next look. All trials and alpha for other studies.
    """
    if len(study.looks):
        last = study.looks.iloc[-1]
        return trials[trials["number"].isin(last["trials"])], float(last["alpha"])
    looks = list(study.plans[-1].values["looks"]) if study.plans else []
    if len(looks) < 2:
        return trials, study.alpha
    return trials, float(boundaries_at(looks, study.alpha).nominal[0])
