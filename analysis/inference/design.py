"""The design of a study: the seeds that it needs, by simulation, and what it confounds with MTD.

Letters: L levels of MTD, C configurations.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from analysis.data.defaults import BEYOND_RUN, BeyondRun
from analysis.data.items import ItemScores
from analysis.inference.blocks import Blocks, Fit
from analysis.inference.pairing import MOST_LEVELS, LevelScores, level_scores, merge_levels
from analysis.inference.shapes import LEAST_FLAT, ShapeTests, design_tests, shape_tests
from analysis.inference.verdict import Verdict
from analysis.measures import Floats
from analysis.measures.trace import trace_limit

ASSUMED_DEVIATION = 1.5
"""Residual standard deviation in points where none was measured. The built-in studies have 0.9 to
2.0 at most levels."""
OTHER_LEVELS = (5, 9)
POWER, MOST_SEEDS = 0.8, 512
FIRST_SEEDS = 8
"""Where the search of a number of seeds begins."""
_DRAWS = 1_000
_LARGE = 12


@dataclass(frozen=True)
class Need:
    """Seeds for 80 % power at a number of levels; None where more than 512 are needed.

    Attributes:
        peak: for a verdict "peaked"; None also with fewer than 3 levels.
        slope: for "rising"; computed for the levels of the design only.
    """

    levels: int
    peak: int | None
    slope: int | None = None


def peak_effects(distance: Floats, height: float) -> Floats:
    """A parabola in log MTD, (L,): the maximum in the middle, `height` points above both ends."""
    place = np.log(distance)
    middle, half = (place[0] + place[-1]) / 2, (place[-1] - place[0]) / 2
    return np.asarray(-height * ((place - middle) / half) ** 2, dtype=np.float64)


def slope_effects(distance: Floats, height: float) -> Floats:
    """A line in log MTD, (L,), `height` points higher at the last level than at the first."""
    place = np.log(distance)
    return np.asarray(height * (place - place[0]) / (place[-1] - place[0]), dtype=np.float64)


def compute_needs(
    levels: ArrayLike, *, effect: float, deviation: float, alpha: float
) -> list[Need]:
    """Seeds for 80 % power to find a peak or a slope of `effect` points, by simulation.

    Args:
        levels: MTD of each level of the design, at least two different ones, in steps; more than 30
            are merged with their neighbours.
        deviation: residual standard deviation of a run, the same at every level.

    Returns:
        One `Need` for the levels of the design, then one each for 5 and 9 levels over the same
        range, evenly spaced in log MTD.
    """
    # more than 30 levels are merged, as for the verdict
    own = np.unique(merge_levels(pd.Series(np.asarray(levels, dtype=np.float64))))
    designs = [own]
    designs += [np.geomspace(own[0], own[-1], n) for n in OTHER_LEVELS if n != len(own)]
    height = effect / deviation
    peak = _seeds_for_peak(own, height, alpha, FIRST_SEEDS)
    # one answer is a good beginning for the search of the next
    begin = peak or FIRST_SEEDS
    slope = _seeds_for(ShapeTests.test_trend, own, slope_effects(own, height), alpha, begin)
    needs = [Need(len(own), peak, slope)]
    for each in designs[1:]:
        needs.append(Need(len(each), _seeds_for_peak(each, height, alpha, begin)))
    return needs


def _seeds_for_peak(distance: Floats, height: float, alpha: float, first: int) -> int | None:
    if len(distance) < 3:
        return None
    effects = peak_effects(distance, height)
    return _seeds_for(ShapeTests.test_peak, distance, effects, alpha, first)


def _seeds_for(
    test: Callable[[ShapeTests, Fit], tuple[Floats, NDArray[Any]]],
    distance: Floats,
    effects: Floats,
    alpha: float,
    first: int,
) -> int | None:
    """Seeds with which the test is significant, by simulation with residual deviations of 1."""

    def is_enough(seeds: int) -> bool:
        tests = design_tests(np.ones((seeds, len(effects)), dtype=bool), distance)
        p_values = test(tests, tests.fit(_tables(effects, np.ones(len(effects)), seeds)))[0]
        return float((p_values <= alpha).mean()) >= POWER

    return minimum_seeds(is_enough, MOST_SEEDS, first)


def seeds_for_verdict(levels: LevelScores, verdict: Verdict) -> int | None:
    """Seeds for a verdict other than "inconclusive" with 80 % power, if all is as estimated.

    The estimate, of the levels that gave the verdict, favours what was seen: an order of magnitude.
    None if more than 512 are needed, or with fewer than two levels or seeds.
    """
    if not levels.comparable:
        return None
    fit = Blocks(np.isfinite(levels.scores)).fit(levels.scores)
    return count_seeds(
        levels.distance,
        fit.effects,
        np.sqrt(fit.variances),
        alpha=1 - verdict.level,
        margin=verdict.margin,
        items=levels.covariance,
    )


def count_seeds(
    distance: Floats,
    effects: Floats,
    deviations: Floats,
    *,
    alpha: float,
    margin: float,
    items: Floats | None = None,
) -> int | None:
    """The smallest number of seeds for a verdict other than "inconclusive" with 80 % power.

    Raises ValueError for fewer than 2 levels.

    Args:
        distance, effects, deviations: (L,): MTD in rising order, score and residual standard
            deviation in points.
        items: covariance of the effects due to the evaluation items, (L, L); None: not counted.
    """
    if len(distance) < 2:
        raise ValueError(f"{len(distance)} level of MTD; a verdict needs at least 2")

    def is_enough(seeds: int) -> bool:
        # with more seeds critical values hardly change, so effects are scaled instead
        drawn = min(seeds, _LARGE)
        factor = float(np.sqrt(seeds / drawn))
        scaled = None if items is None else factor**2 * items
        tables = _tables(factor * effects, deviations, drawn, scaled)
        tests = shape_tests(tables[0], distance, scaled)
        judged = tests.classify(tests.fit(tables), alpha, factor * margin)
        return float((judged.shape != "inconclusive").mean()) >= POWER

    return minimum_seeds(is_enough, MOST_SEEDS)


def smallest_margin(
    levels: ArrayLike, seeds: int, *, deviation: float, alpha: float
) -> float | None:
    """The smallest margin in points at which a flat score is shown to be flat with 80 % power.

    None with fewer than 3 seeds or levels, with which no score is called flat, and for more levels
    than are compared (30).

    Args:
        levels: MTD of each level, in steps.
        deviation: residual standard deviation of a run.
    """
    distance = np.unique(np.asarray(levels, dtype=np.float64))
    if min(seeds, len(distance)) < LEAST_FLAT or len(distance) > MOST_LEVELS:
        return None
    tests = design_tests(np.ones((seeds, len(distance)), dtype=bool), distance)
    tables = _tables(np.zeros(len(distance)), np.full(len(distance), deviation), seeds)
    estimate, width = tests.each_pair.intervals(tests.fit(tables), alpha)
    return float(np.quantile((np.abs(estimate) + width).max(axis=-1), POWER))


@dataclass(frozen=True)
class Precision:
    """What limits the comparison of two levels, in points.

    Attributes:
        of_seeds, of_items: standard error of a difference between two levels due to the seeds, and
            due to the evaluation items, the root mean square over pairs of levels.
        least: the smallest difference that is significant with any number of seeds.
    """

    of_seeds: float
    of_items: float
    seeds: int
    items: int
    least: float


def estimate_precision(
    trials: pd.DataFrame,
    settings: Collection[str],
    items: ItemScores | None,
    alpha: float,
    *,
    beyond_run: BeyondRun = BEYOND_RUN,
) -> Precision | None:
    """The precision of a study's runs; None where they have no items, or nothing is compared."""
    levels = level_scores(trials, settings, items, beyond_run=beyond_run)
    if not levels.items:
        return None
    blocks = Blocks(np.isfinite(levels.scores))
    rows = np.array([one - other for one, other in combinations(np.eye(len(levels.distance)), 2)])
    contrasts = blocks.weigh(rows)
    fit = blocks.fit(levels.scores, levels.covariance)
    of_items = float(np.sqrt(np.mean(contrasts.item_variance(fit))))
    of_seeds = float(np.sqrt(np.mean(contrasts.squares @ fit.variances)))
    least = float(special.ndtri(1 - alpha / 2)) * of_items
    return Precision(of_seeds, of_items, len(levels.table), levels.items, least)


def _tables(effects: Floats, deviations: Floats, seeds: int, items: Floats | None = None) -> Floats:
    """Simulated tables, (B, seeds, L); the same for the same arguments."""
    draws = int(np.clip(2_000_000 // (seeds * len(effects)), 100, _DRAWS))
    rng = np.random.default_rng(0)
    tables = effects + deviations * rng.standard_normal((draws, seeds, len(effects)))
    if items is not None:
        tables += rng.multivariate_normal(np.zeros(len(effects)), items, size=(draws, 1))
    return np.asarray(tables)


def minimum_seeds(is_enough: Callable[[int], bool], most: int, first: int = 2) -> int | None:
    """The smallest number of seeds from 2 to `most` for which `is_enough`, None if none.

    Args:
        is_enough: monotone: true for all numbers of seeds above the smallest for which it is true.
        first: where the search begins, at most `most`; it takes the fewest calls if this is close.
    """
    low, high, step = 1, first, 1
    if is_enough(first):
        while (below := max(high - step, 1)) > 1 and is_enough(below):
            high, step = below, 2 * step
        low = below
    else:
        low, high = first, min(first + step, most)
        while high > low and not is_enough(high):
            low, step = high, 2 * step
            high = min(low + step, most)
        if high == low:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def residual_deviation(
    trials: pd.DataFrame, settings: Collection[str], *, beyond_run: BeyondRun = BEYOND_RUN
) -> float | None:
    """Residual standard deviation of a run after effects of seed and level, in points.

    The square root of the pooled variance; None with fewer than two seeds or two levels.
    """
    levels = level_scores(trials, settings, beyond_run=beyond_run)
    if not levels.comparable:
        return None
    blocks = Blocks(np.isfinite(levels.scores))
    squares = blocks.fit(levels.scores).variances @ blocks.level_freedom
    return float(np.sqrt(squares / blocks.freedom))


MAX_CORRELATION = 0.95
"""A larger correlation of log MTD with the log of a component counts as confounding."""

MAX_CONSTANT_SHARE = 1 / 3
"""A component that is constant over this share of the configurations, those with the highest or
lowest MTD, counts as confounded."""

_MIN_CONFIGURATIONS = 3


def describe_confounding(ema_decay: ArrayLike, ratio: ArrayLike) -> str:
    """Which components a design of C configurations confounds with MTD, as text; empty if none.

    These have an eta and a K/N, (C,) each. A design confounds MTD with a component if only that
    component varies, if the logarithms of both have a correlation above 0.95, or if the component
    is constant over the third of configurations with the highest (or the lowest) MTD.
    Configurations without a queue are left out; a design with one MTD gives an empty text.
    """
    trace = np.asarray(trace_limit(np.asarray(ema_decay, dtype=np.float64)))
    queue = np.asarray(ratio, dtype=np.float64)
    trace, queue = trace[queue > 0], queue[queue > 0]
    if len(np.unique(np.round(trace + queue, 3))) < 2:
        return ""
    varied = {name: values for name, values in (("η", trace), ("K/N", queue)) if np.ptp(values)}
    if len(varied) == 1:
        name = next(iter(varied))
        return f"Only {name} varies, so its effect and that of MTD cannot be separated."
    found = _correlated(varied, trace + queue) or _constant_end(varied, trace + queue)
    return f"The design confounds MTD with {found}." if found else ""


def _correlated(varied: dict[str, Floats], mtd: Floats) -> str:
    """The component with the highest correlation with MTD, if above `MAX_CORRELATION`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = {
            name: abs(float(np.corrcoef(np.log(mtd), np.log(values))[0, 1]))
            for name, values in varied.items()
        }
    name = max(sizes, key=lambda each: sizes[each])
    text = f"{name}: the correlation of their logarithms is {sizes[name]:.2f}"
    return text if sizes[name] > MAX_CORRELATION else ""


def _constant_end(varied: dict[str, Floats], mtd: Floats) -> str:
    """A component that is constant over the highest or lowest MTDs, if there is one."""
    order = np.argsort(mtd, kind="stable")
    least = max(_MIN_CONFIGURATIONS, int(np.ceil(MAX_CONSTANT_SHARE * len(mtd))))
    for end, (name, values) in product((order[-least:], order[:least]), varied.items()):
        if np.ptp(values[end]) == 0:
            low, high = mtd[end].min(), mtd[end].max()
            value = 1 - 1 / values[end][0] if name == "η" else values[end][0]
            return f"{name}: all configurations of MTD {low:.4g} to {high:.4g} have {value:.4g}"
    return ""
