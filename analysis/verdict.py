"""The verdict on a study: the shape of its score over MTD, with what can be said of the best."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.blocks import Floats
from analysis.conditions import describe_conditions
from analysis.defaults import MARGIN
from analysis.frames import TRIAL_COLUMNS
from analysis.inference import Shape, shape_tests
from analysis.intervals import Estimate, check_level
from analysis.pairing import merge_levels, score_table
from analysis.power import MOST_SEEDS, count_seeds
from analysis.runs import format_mtd, traced_runs

# Columns of a frame that are settings although they are among the fixed ones.
_FIXED_SETTINGS = frozenset(
    {"ema_decay", "queue_size", "batch_size", "initial_queue_size", "queue_slice"}
)
_NO_SETTINGS = frozenset(TRIAL_COLUMNS) - _FIXED_SETTINGS
_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Verdict:
    """What a study shows about its score against MTD.

    verdict        the answer; "inconclusive" where the runs do not settle it.
    sentence       the same as text, with its numbers.
    p_value        of the test of a peak; p_trend: two-sided, of the slope over all levels.
    peak_mtd       the level with the highest estimate, whatever the verdict, in steps.
    peak_interval  where a peak lies: the span of the optimal range; None without a peak.
    optimal_range  the levels that cannot be told from the best: at least one of them is the best
                   with the confidence of `level`.
    peak_excluded  whether no inner level can lie the margin above both ends.
    seeds, levels  how many are compared; levels_run: how many levels have a score at all.
    first, last    lowest and highest level compared, in steps.
    rise, fall     best level less the first, and less the last, valid for a level that was chosen
                   on the same runs.
    level, margin  confidence of tests and intervals; a difference of fewer points than the margin
                   counts as none.
    seeds_for_power  of an inconclusive study: seeds that would give a verdict with 80 %
                   probability if the curve and the scatter were as estimated; None if more than
                   1,000, or nothing to judge from.

    Numbers are NaN where there is nothing to compare.
    """

    verdict: Shape
    sentence: str = ""
    p_value: float = math.nan
    p_trend: float = math.nan
    peak_mtd: float = math.nan
    peak_interval: tuple[float, float] | None = None
    optimal_range: tuple[float, ...] = ()
    peak_excluded: bool = False
    seeds: int = 0
    levels: int = 0
    levels_run: int = 0
    first: float = math.nan
    last: float = math.nan
    rise: Estimate = _UNKNOWN
    fall: Estimate = _UNKNOWN
    level: float = 0.95
    margin: float = MARGIN
    seeds_for_power: int | None = None


def compute_verdict(
    trials: pd.DataFrame,
    settings: Collection[str] | None = None,
    *,
    level: float = 0.95,
    margin: float = MARGIN,
) -> Verdict:
    """Judge the shape of the score against MTD, and where it is best.

    trials    a row per run: seed, mtd, score (x 100) and the settings; state, if there is one,
              is COMPLETE for runs that count (`StudyFrames.trials`).
    settings  which columns are settings; by default all that no other column of
              `StudyFrames.trials` is.
    level     confidence, at least 0.5: a peak or a trend is false with a probability of about
              1 - level at most.
    margin    points (score x 100) below which a difference counts as none.

    With one seed, one level or no score the verdict is "inconclusive". Raises ValueError for a
    level outside [0.5, 1) or a margin that is not above 0, KeyError for a missing column.
    """
    if not check_level(level) >= 0.5:
        raise ValueError(f"level is {level:g}; a verdict needs at least 0.5")
    if not margin > 0:
        raise ValueError(f"margin is {margin:g}; it must be above 0 points")
    if settings is None:
        settings = [str(name) for name in trials if name not in _NO_SETTINGS]
    if "state" not in trials:
        trials = trials.assign(state="COMPLETE")
    table = score_table(trials, settings)
    scores, distance = table.to_numpy(), table.columns.to_numpy(dtype=np.float64)
    found = Verdict(
        "inconclusive",
        seeds=len(scores) if scores.size else 0,
        levels=len(distance),
        levels_run=int(merge_levels(traced_runs(trials)["mtd"]).nunique()),
        level=level,
        margin=margin,
    )
    if scores.size:
        found = replace(found, first=float(distance[0]), last=float(distance[-1]))
    if min(scores.shape) >= 2:
        found = _judge(found, scores, distance)
    elif scores.size:
        found = replace(found, peak_mtd=float(distance[scores.mean(axis=0).argmax()]))
    conditions = describe_conditions(trials)
    where = f" This holds {conditions}." if found.levels > 1 and conditions else ""
    return replace(found, sentence=write_sentence(found) + where)


def _judge(found: Verdict, scores: Floats, distance: Floats) -> Verdict:
    """The verdict with everything that is tested on a table of scores."""
    alpha = 1 - found.level
    tests = shape_tests(scores, distance)
    judged = tests.judge(scores, alpha, found.margin)
    rise, fall = tests.compare_with_ends(scores, judged.best, alpha)
    optimal = tuple(float(each) for each in distance[judged.optimal])
    needed = None
    if judged.shape == "inconclusive":
        fit = tests.blocks.fit(scores)
        needed = count_seeds(fit.effects, fit.variances, distance, alpha=alpha, margin=found.margin)
    return replace(
        found,
        verdict=judged.shape,
        p_value=judged.p_peak,
        p_trend=judged.p_trend,
        peak_mtd=float(distance[judged.best]),
        peak_interval=(optimal[0], optimal[-1]) if judged.shape == "peaked" else None,
        optimal_range=optimal,
        peak_excluded=judged.peak_excluded,
        rise=rise,
        fall=fall,
        seeds_for_power=needed,
    )


def write_sentence(verdict: Verdict) -> str:
    """The verdict as one or two sentences, with its numbers."""
    if verdict.seeds < 2 or verdict.levels < 2:
        return _nothing_compared(verdict)
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    if verdict.verdict == "peaked":
        return (
            f"The score peaks inside the range: at MTD {format_mtd(verdict.peak_mtd)} it is above "
            f"the lowest MTD, {first}, by {_points(verdict.rise, verdict.level)} and above the "
            f"highest, {last}, by {_points(verdict.fall, verdict.level)}. A slope up to an inner "
            f"level and one down from it are both clear of 0 ({format_p(verdict.p_value)}). "
            f"{_optimal(verdict)}"
        )
    if verdict.verdict in ("rising", "falling"):
        return _trend(verdict)
    if verdict.verdict == "flat":
        return (
            f"The score is flat from MTD {first} to {last}: every level lies within "
            f"{verdict.margin:g} points of the mean over levels ({verdict.seeds} seeds, "
            f"equivalence tests at {100 * (1 - verdict.level):g} %)."
        )
    return _inconclusive(verdict)


def _nothing_compared(verdict: Verdict) -> str:
    if not verdict.levels_run:
        return "No completed run with an MTD has a score yet."
    if verdict.levels_run == 1:
        return "All scored runs share one MTD, so there is nothing to compare."
    if verdict.seeds == 1:
        return (
            "With one seed, an effect of MTD cannot be separated from chance; the best score "
            f"is at MTD {format_mtd(verdict.peak_mtd)}."
        )
    return "No two seeds were run at the same two levels of MTD."


def _trend(verdict: Verdict) -> str:
    """The sentences for a score that rises or falls over the whole range."""
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    rising = verdict.verdict == "rising"
    near, far, gain = (last, first, verdict.rise) if rising else (first, last, verdict.fall)
    excluded = "is excluded" if verdict.peak_excluded else "is not excluded"
    return (
        f"The score {'rises' if rising else 'falls'} with MTD from {first} to {last} "
        f"({format_p(verdict.p_trend)} for the slope on log MTD): the best level, MTD "
        f"{format_mtd(verdict.peak_mtd)}, is above MTD {far} by {_points(gain, verdict.level)}. "
        f"{_optimal(verdict)} A peak of {verdict.margin:g} points inside the range {excluded}; "
        f"one {'beyond' if rising else 'below'} {near} cannot be seen here."
    )


def _inconclusive(verdict: Verdict) -> str:
    if verdict.seeds_for_power is None:
        outlook = f"more than {MOST_SEEDS:,} seeds would be needed"
    elif verdict.seeds_for_power > verdict.seeds:
        outlook = f"about {verdict.seeds_for_power} seeds would give a verdict (80 % power)"
    else:
        outlook = "more seeds are likely to give a verdict"
    return (
        f"With {verdict.seeds} seeds the shape is not settled ({format_p(verdict.p_value)} for a "
        f"peak, {format_p(verdict.p_trend)} for a trend): the best mean is at MTD "
        f"{format_mtd(verdict.peak_mtd)}. If the curve is as estimated, {outlook}. "
        f"{_optimal(verdict)}"
    )


def _optimal(verdict: Verdict) -> str:
    """Which levels cannot be told from the best."""
    levels = verdict.optimal_range
    if len(levels) == verdict.levels:
        return "No level can be told from the best."
    if len(levels) == 1:
        return f"Every other level is worse than MTD {format_mtd(levels[0])}."
    return (
        f"{len(levels)} of {verdict.levels} levels cannot be told from the best, from MTD "
        f"{format_mtd(levels[0])} to {format_mtd(levels[-1])} ({100 * verdict.level:g} % "
        "confidence)."
    )


def _points(value: Estimate, level: float) -> str:
    interval = f"{100 * level:g} % CI {value.low:.2f} to {value.high:.2f}"
    return f"{value.mean:.2f} points ({interval})"


def format_p(value: float) -> str:
    """A p value as it is printed; "no test" for NaN."""
    if math.isnan(value):
        return "no test"
    return f"p {value:.2g}" if value >= 0.001 else "p < 0.001"
