"""The verdict on a study: does the score peak at an inner level of MTD?"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.inference import (
    Estimate,
    Floats,
    Shape,
    count_seeds_needed,
    estimate,
    judge_shape,
    resample_peaks,
)
from analysis.intervals import check_level
from analysis.pairing import pair_by_seed
from analysis.runs import format_mtd, traced_runs

_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Peak:
    """The level of MTD with the best mean score, in steps.

    low and high hold the middle `level` of the best levels of resampled seeds, share is the
    part of the resamples whose best level is `mtd`, method says how they were made. NaN
    where there is nothing to resample.
    """

    mtd: float
    low: float = math.nan
    high: float = math.nan
    share: float = math.nan
    method: str = "none"


@dataclass(frozen=True)
class Verdict:
    """What a study shows about its score against MTD.

    shape             the answer; "undecided" where the seeds do not settle it.
    sentence          the same as text, with its numbers.
    seeds, levels     how many are compared, without a hole.
    levels_run        how many levels have a score at all.
    first, last       lowest and highest level compared, in steps.
    rise, fall        peak less the first level, and peak less the last, seed by seed.
    level, margin     confidence of the intervals; a difference of fewer points than the
                      margin counts as none.
    seeds_needed      seeds at which a paired difference would be known to within the margin,
                      from the scatter seen; None without scatter to judge from, or if more
                      than 1000.
    """

    shape: Shape
    sentence: str
    seeds: int
    levels: int
    levels_run: int
    first: float
    last: float
    peak: Peak
    rise: Estimate
    fall: Estimate
    level: float
    margin: float
    seeds_needed: int | None

    @property
    def verdict(self) -> str:
        """The shape in the words of the output of `mtdlab report --json`."""
        return {"peaked inside": "peaked", "undecided": "inconclusive"}.get(self.shape, self.shape)

    @property
    def p_value(self) -> None:
        """None: this rule compares intervals and has no p value."""

    @property
    def peak_mtd(self) -> float:
        """The level with the best mean; NaN without one."""
        return self.peak.mtd

    @property
    def peak_interval(self) -> tuple[float, float] | None:
        """The interval of the peak, None without one."""
        return (self.peak.low, self.peak.high) if math.isfinite(self.peak.low) else None

    @property
    def optimal_range(self) -> tuple[float, ...]:
        """Empty: this rule does not compare levels with the best."""
        return ()

    @property
    def peak_excluded(self) -> None:
        """None: this rule excludes no peak."""

    @property
    def seeds_for_power(self) -> int | None:
        """`seeds_needed`."""
        return self.seeds_needed


def _points(value: Estimate, level: float) -> str:
    interval = f"{100 * level:g} % CI {value.low:.2f} to {value.high:.2f}"
    return f"{value.mean:.2f} points ({interval})"


def _where(peak: Peak, level: float) -> str:
    interval = f"{100 * level:g} % CI {format_mtd(peak.low)} to {format_mtd(peak.high)}"
    return f"MTD {format_mtd(peak.mtd)} ({interval} from {peak.method})"


def _outlook(verdict: Verdict) -> str:
    """The number of seeds needed to estimate a difference between two levels to the margin."""
    goal = f"estimate a difference between two levels to within {verdict.margin:g} points"
    if verdict.seeds_needed is None:
        return f"more than 1000 seeds would be needed to {goal}"
    if verdict.seeds_needed > verdict.seeds:
        return f"about {verdict.seeds_needed} seeds would be needed to {goal}"
    return f"the seeds suffice to {goal}, so the levels differ too little or too irregularly"


def _undecided(verdict: Verdict) -> str:
    """Why there is no verdict, and what would be needed for one."""
    peak = verdict.peak
    if not verdict.levels_run:
        return "No completed run with an MTD has a score yet."
    if verdict.levels_run == 1:
        return "All scored runs share one MTD, so there is nothing to compare."
    if verdict.seeds == 1:
        return (
            "With one seed, an effect of MTD cannot be separated from chance; the best score "
            f"is at MTD {format_mtd(peak.mtd)}."
        )
    if verdict.levels < 2:
        return "No two seeds were run at the same two levels of MTD."
    return (
        f"With {verdict.seeds} seeds the shape is undecided: the best mean is at "
        f"{_where(peak, verdict.level)}, and {_outlook(verdict)}."
    )


def _trend(verdict: Verdict) -> str:
    """The sentence for a score that rises or falls over the whole range."""
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    rising = verdict.shape == "rising"
    near, far, gain = (last, first, verdict.rise) if rising else (first, last, verdict.fall)
    best = f"The best level, MTD {format_mtd(verdict.peak.mtd)},"
    if verdict.peak.mtd not in (verdict.first, verdict.last):
        best += f" is less than {verdict.margin:g} points above MTD {near} and"
    return (
        f"The score {'rises' if rising else 'falls'} with MTD from {first} to {last}. {best} "
        f"is above MTD {far} by {_points(gain, verdict.level)}; a peak "
        f"{'beyond' if rising else 'below'} {near} is not excluded."
    )


def _sentence(verdict: Verdict) -> str:
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    if verdict.shape == "peaked inside":
        return (
            f"The score peaks inside the range, at {_where(verdict.peak, verdict.level)}: "
            f"above the lowest MTD, {first}, by {_points(verdict.rise, verdict.level)} and "
            f"above the highest, {last}, by {_points(verdict.fall, verdict.level)}."
        )
    if verdict.shape in ("rising", "falling"):
        return _trend(verdict)
    if verdict.shape == "flat":
        return (
            f"The score is flat from MTD {first} to {last}: every level lies within "
            f"{verdict.margin:g} points of the per-seed mean "
            f"({verdict.seeds} seeds, {100 * verdict.level:g} % CI)."
        )
    return _undecided(verdict)


def _find_peak(scores: Floats, distance: Floats, level: float, seed: int) -> Peak:
    best = int(scores.mean(axis=0).argmax())
    if min(scores.shape) < 2:
        return Peak(float(distance[best]))
    peaks, method = resample_peaks(scores, seed)
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = distance[np.quantile(peaks, tails, method="inverted_cdf").astype(int)]
    share = float((peaks == best).mean())
    return Peak(float(distance[best]), float(low), float(high), share, method)


def compute_verdict(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    level: float = 0.95,
    margin: float = 0.5,
    seed: int = 0,
) -> Verdict:
    """Judge the shape of the score against MTD, and where it is best.

    trials    `StudyFrames.trials`.
    settings  which of its columns are settings.
    level     confidence of every interval; a slope is clear of 0 where its interval is.
    margin    points (score x 100) below which a difference counts as none.
    seed      of the bootstrap's random numbers, used from 6 seeds on.

    With one seed, one level or no score the shape is "undecided" and the intervals are NaN.
    Raises ValueError for a level outside (0, 1) or a margin that is not above 0.
    """
    check_level(level)
    if not margin > 0:
        raise ValueError(f"margin is {margin:g}; it must be above 0 points")
    block = pair_by_seed(trials, settings)
    scores = block.to_numpy(dtype=np.float64)
    distance = block.columns.to_numpy(dtype=np.float64)
    compared = scores.size > 0
    peak = _find_peak(scores, distance, level, seed) if compared else Peak(math.nan)
    best = scores[:, distance == peak.mtd].ravel()
    verdict = Verdict(
        shape=judge_shape(scores, distance, level, margin),
        sentence="",
        seeds=len(scores),
        levels=len(distance),
        levels_run=int(traced_runs(trials)["mtd"].nunique()),
        first=float(distance[0]) if compared else math.nan,
        last=float(distance[-1]) if compared else math.nan,
        peak=peak,
        rise=estimate(best - scores[:, 0], level) if compared else _UNKNOWN,
        fall=estimate(best - scores[:, -1], level) if compared else _UNKNOWN,
        level=level,
        margin=margin,
        seeds_needed=count_seeds_needed(scores, level, margin),
    )
    return replace(verdict, sentence=_sentence(verdict))
