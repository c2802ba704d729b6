"""The verdict on a study: the shape of its score over MTD, and which levels may be the best."""

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

# Settings among the fixed columns of `StudyFrames.trials`.
_FIXED_SETTINGS = frozenset(
    {"ema_decay", "queue_size", "batch_size", "initial_queue_size", "queue_slice"}
)
_NO_SETTINGS = frozenset(TRIAL_COLUMNS) - _FIXED_SETTINGS
_UNKNOWN = Estimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True)
class Verdict:
    """What a study shows about its score against MTD.

    verdict        the shape; "inconclusive" where no shape is significant.
    sentence       the same as text, with its numbers.
    p_value        of the test of a peak; p_trend: two-sided, of the slope over all levels.
    peak_mtd       the level with the highest estimate, whatever the verdict, in steps.
    peak_interval  lowest and highest level of the optimal range; None unless peaked.
    optimal_range  levels that are statistically indistinguishable from the best: a confidence set
                   that contains the best level with probability `level`.
    peak_excluded  whether a peak of at least the margin above both ends is excluded.
    seeds, levels  how many are compared; levels_run: how many levels have a score.
    first, last    lowest and highest level compared, in steps.
    rise, fall     best level less the first, and less the last, in points; the intervals are
                   simultaneous, hence valid although the best level was chosen on the same runs.
    level, margin  confidence of tests and intervals; differences below the margin (points) are
                   treated as no difference.
    seeds_for_power  of an inconclusive study: seeds for a verdict with 80 % power if the true means
                   and variances are as estimated; None if more than 1,000 or if not estimable.

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

    @property
    def best_is_inside(self) -> bool:
        """Whether the level with the highest estimate is neither the first nor the last."""
        return self.peak_mtd not in (self.first, self.last)


def compute_verdict(
    trials: pd.DataFrame,
    settings: Collection[str] | None = None,
    *,
    level: float = 0.95,
    margin: float = MARGIN,
) -> Verdict:
    """Test the shape of the score against MTD and which levels may be the best.

    trials    a row per run: seed, mtd, score (x 100) and the settings, as `StudyFrames.trials`.
              If there is a column state, only runs with state COMPLETE are used.
    settings  which columns are settings; by default all columns that are not among the fixed
              columns of `StudyFrames.trials`.
    level     confidence, at least 0.5: the error rate of a peak or a trend is at most about
              1 - level.
    margin    points (score x 100) below which a difference is treated as no difference.

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
        found = _run_tests(found, scores, distance)
    elif scores.size:
        found = replace(found, peak_mtd=float(distance[scores.mean(axis=0).argmax()]))
    conditions = describe_conditions(trials)
    where = f" This holds {conditions}." if found.levels > 1 and conditions else ""
    return replace(found, sentence=write_sentence(found) + where)


def _run_tests(found: Verdict, scores: Floats, distance: Floats) -> Verdict:
    """The verdict with the results of all tests on the scores, (S, L), at the levels, (L,)."""
    alpha = 1 - found.level
    tests = shape_tests(scores, distance)
    result = tests.classify(scores, alpha, found.margin)
    rise, fall = tests.compare_with_ends(scores, result.best, alpha)
    optimal = tuple(float(each) for each in distance[result.optimal])
    needed = None
    if result.shape == "inconclusive":
        fit = tests.blocks.fit(scores)
        needed = count_seeds(fit.effects, fit.variances, distance, alpha=alpha, margin=found.margin)
    return replace(
        found,
        verdict=result.shape,
        p_value=result.p_peak,
        p_trend=result.p_trend,
        peak_mtd=float(distance[result.best]),
        peak_interval=(optimal[0], optimal[-1]) if result.shape == "peaked" else None,
        optimal_range=optimal,
        peak_excluded=result.peak_excluded,
        rise=rise,
        fall=fall,
        seeds_for_power=needed,
    )


def write_sentence(verdict: Verdict) -> str:
    """The verdict as text, with its numbers; at most four sentences."""
    if verdict.seeds < 2 or verdict.levels < 2:
        return _nothing_compared(verdict)
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    if verdict.verdict == "peaked":
        return (
            f"The score peaks at MTD {format_mtd(verdict.peak_mtd)}, inside the tested range: "
            f"{_points(verdict.rise, verdict.level)} above the lowest MTD, {first}, and "
            f"{_points(verdict.fall, verdict.level)} above the highest, {last}. Its rise up to an "
            "inner level and its fall from that level are both statistically significant "
            f"({format_p(verdict.p_value)}). {_optimal(verdict)}"
        )
    if verdict.verdict in ("rising", "falling"):
        return _trend(verdict)
    if verdict.verdict == "flat":
        return (
            f"The score is flat from MTD {first} to {last}: every level is equivalent to the mean "
            f"over levels within ±{verdict.margin:g} points ({verdict.seeds} seeds, two one-sided "
            f"tests at α = {1 - verdict.level:.2g})."
        )
    return _inconclusive(verdict)


def _nothing_compared(verdict: Verdict) -> str:
    if not verdict.levels_run:
        return "No completed run with an MTD has a score yet."
    if verdict.levels_run == 1:
        return "All scored runs have the same MTD, so there are no levels to compare."
    if verdict.seeds == 1:
        return (
            "With one seed, an effect of MTD cannot be distinguished from random variation; the "
            f"highest score is at MTD {format_mtd(verdict.peak_mtd)}."
        )
    return "No two seeds were run at the same two levels of MTD, so levels cannot be compared."


def _trend(verdict: Verdict) -> str:
    """The sentences for a score that rises or falls over the whole range."""
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    rising = verdict.verdict == "rising"
    near, far, gain = (last, first, verdict.rise) if rising else (first, last, verdict.fall)
    excluded = "is excluded" if verdict.peak_excluded else "is not excluded"
    best = f"{_points(gain, verdict.level)} above MTD {far}"
    if verdict.best_is_inside:
        loss = _points(verdict.fall if rising else verdict.rise, verdict.level)
        best = f"inside the range: {best}, {loss} above MTD {near}"
    return (
        f"The score {'rises' if rising else 'falls'} with MTD from {first} to {last} "
        f"({format_p(verdict.p_trend)} for the slope on log MTD). The best level, MTD "
        f"{format_mtd(verdict.peak_mtd)}, is {best}. "
        f"{_optimal(verdict)} A peak of at least {verdict.margin:g} points inside the range "
        f"{excluded}; MTDs {'above' if rising else 'below'} {near} were not tested."
    )


def _inconclusive(verdict: Verdict) -> str:
    if verdict.seeds_for_power is None:
        outlook = f"a verdict would need more than {MOST_SEEDS:,} seeds"
    elif verdict.seeds_for_power > verdict.seeds:
        outlook = f"about {verdict.seeds_for_power} seeds give a verdict with 80 % power"
    else:
        outlook = "a few more seeds are likely to give a verdict"
    return (
        f"With {verdict.seeds} seeds the shape of the curve is inconclusive "
        f"({format_p(verdict.p_value)} for a peak, {format_p(verdict.p_trend)} for a trend). The "
        f"highest mean is at MTD {format_mtd(verdict.peak_mtd)}. {_optimal(verdict)} If the true "
        f"means and variances are as estimated, {outlook}."
    )


def _optimal(verdict: Verdict) -> str:
    """Which levels are statistically indistinguishable from the best."""
    levels, confidence = verdict.optimal_range, f"({100 * verdict.level:.3g} % confidence)"
    if len(levels) == verdict.levels:
        return f"All levels are statistically indistinguishable from the best {confidence}."
    if len(levels) == 1:
        return f"Every other level is significantly worse than MTD {format_mtd(levels[0])}."
    return (
        f"{len(levels)} of {verdict.levels} levels, from MTD {format_mtd(levels[0])} to "
        f"{format_mtd(levels[-1])}, are statistically indistinguishable from the best level "
        f"{confidence}."
    )


def _points(value: Estimate, level: float) -> str:
    interval = f"simultaneous {100 * level:.3g} % CI {value.low:.2f} to {value.high:.2f}"
    return f"{value.mean:.2f} points ({interval})"


def format_p(value: float) -> str:
    """A p value with its sign, as in "p = 0.012" or "p < 0.001"; "no test" for NaN."""
    if math.isnan(value):
        return "no test"
    return f"p = {value:.2g}" if value >= 0.001 else "p < 0.001"
