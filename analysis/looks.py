"""Interim looks at the verdict of a study that adds seeds until the verdict is decided."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.items import ItemScores
from analysis.sequential import Boundaries, Spending, compute_boundaries
from analysis.verdict import Verdict, compute_verdict

SPENDING: Spending = "linear"
"""Alpha spending function. Error rates are simulated in tests/evidence/sequential.py."""
LEADING_LEVEL = 0.5
"""Confidence of the optimal range whose levels get the next seeds first; error rates do not depend
on it."""
Decision = Literal["continue", "decided", "flat", "max_seeds", "no scores"]


@dataclass(frozen=True)
class LookResult:
    """The result of a look.

    p_value   of the trend if the verdict is rising or falling, else of the peak; None if not
              tested.
    decision  continue, or why the study ends.
    optimal   the levels statistically indistinguishable from the best at 50 % confidence, in steps.
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
    items: ItemScores | None = None,
    alpha: float,
    margin: float,
    is_last: bool,
) -> LookResult:
    """Whether a study ends at this look.

    trials, settings, items  as for `compute_verdict`.
    alpha             the nominal significance level of this look.

    A peak ends the study. A trend ends it if the level at that end has the highest estimate or a
    peak inside the range is excluded, because for a peak off the middle of the range the trend
    often becomes significant first. A flat score ends it for futility. Futility is non-binding:
    the error rate also holds if the study is continued nevertheless.
    """
    verdict = compute_verdict(trials, settings, items=items, level=1 - alpha, margin=margin)
    p_value = verdict.p_trend if _is_trend(verdict) else verdict.p_value
    return LookResult(
        verdict.verdict,
        None if math.isnan(p_value) else p_value,
        _decide(verdict, is_last=is_last),
        compute_verdict(trials, settings, level=LEADING_LEVEL, margin=margin).optimal_range,
    )


def leading_levels(levels: Sequence[float], optimal: Sequence[float]) -> tuple[float, ...]:
    """The levels that get the next seeds first.

    levels   in rising order, in steps; optimal: those statistically indistinguishable from the
             best, or values near them, at least one.

    All levels from the lowest to the highest optimal one, their neighbours, and the two ends, on
    which both slopes of the test of a peak depend. With few runs these are all levels. A level that
    is left out at one look is only postponed: by the last look all levels have all seeds.
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
    """Whether a trend has its best level at the end of the range or excludes a peak inside it."""
    end = verdict.last if verdict.verdict == "rising" else verdict.first
    return verdict.peak_excluded or verdict.peak_mtd == end


def judged_trials(study: StudyFrames, trials: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """The trials that a study's verdict is computed from, and the significance level.

    For a study that adds seeds, the trials and the nominal level of its last look, since later runs
    belong to the next look. For other studies, all trials and alpha.
    """
    if len(study.looks):
        last = study.looks.iloc[-1]
        return trials[trials["number"].isin(last["trials"])], float(last["alpha"])
    looks = list(study.plans[-1].values["looks"]) if study.plans else []
    if len(looks) < 2:
        return trials, study.alpha
    return trials, float(boundaries_at(looks, study.alpha).nominal[0])


def describe_recorded(trials: int) -> str:
    """When a verdict's specification was recorded. trials  how many had started by then."""
    if not trials:
        return "before trial 1"
    return f"after {trials:,} trial{'s' if trials > 1 else ''} had started"
