"""Seeds needed for a verdict: approximate power of the tests of a shape.

Letters: L levels of MTD.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from analysis.blocks import Fit, Floats, levels_kept
from analysis.defaults import ALPHA, MARGIN
from analysis.inference import ShapeTests, shape_tests

MOST_SEEDS = 1000
# With this many seeds or more, critical values hardly depend on the number of seeds.
_LARGE = 12


def count_seeds(
    effects: Floats,
    variances: Floats,
    distance: Floats,
    *,
    alpha: float = ALPHA,
    margin: float = MARGIN,
    power: float = 0.8,
) -> int | None:
    """Smallest number of seeds, at least 2, for a verdict with the given power.

    effects    true score of each level up to a constant, (L,); variances: of a run's error at each
               level, (L,); distance: MTD, (L,) in rising order.
    margin     points below which a difference is treated as no difference.

    The power is the largest of those of flat, peaked, and rising or falling. Estimates are assumed
    to be normal, the slopes on the two sides of a peak independent. None if more than 1,000 seeds
    are needed. Raises ValueError for fewer than 2 levels.
    """
    if len(effects) < 2:
        raise ValueError(f"{len(effects)} level of MTD; a verdict needs at least 2")
    offsets = effects - effects.mean()
    typical = np.sort(variances)[: levels_kept(len(variances))].mean()
    truth = Fit(offsets, variances, typical)

    def is_enough(seeds: int) -> bool:
        drawn = min(seeds, _LARGE)
        tests = shape_tests(np.zeros((drawn, len(offsets))), distance)
        factor = float(np.sqrt(seeds / drawn))
        return max(each(tests, truth, factor, alpha, margin) for each in _POWERS) >= power

    return minimum_seeds(is_enough, MOST_SEEDS)


def minimum_seeds(is_enough: Callable[[int], bool], most: int, first: int = 2) -> int | None:
    """The smallest number of seeds from 2 to `most` for which `is_enough`, None if none.

    is_enough  monotone: true for all numbers of seeds above the smallest for which it is true.
    first      where the search begins, at most `most`; it takes the fewest calls if this is close.
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


def _flat_power(tests: ShapeTests, truth: Fit, factor: float, alpha: float, margin: float) -> float:
    comparison = tests.each_offset.compare(truth)
    width = comparison.half_width(tests.each_offset.critical(alpha)) / factor
    slack = (margin - np.abs(truth.effects) - width) * factor
    return 1 - float(2 * special.ndtr(-slack / comparison.own).sum())


def _peak_power(
    tests: ShapeTests, truth: Fit, factor: float, alpha: float, _margin: float
) -> float:
    best = int(truth.effects.argmax())
    if not 0 < best < tests.levels - 1:
        return 0.0
    critical = tests.lines.critical(alpha)
    rise, fall = (special.ndtr(each * factor - critical) for each in tests.lines.scores(truth))
    return float((rise * fall).max())


def _trend_power(
    tests: ShapeTests, truth: Fit, factor: float, alpha: float, _margin: float
) -> float:
    score = tests.trend.scores(truth)[0][0]
    return float(special.ndtr(score * factor - tests.trend.critical(alpha)))


# Arguments: tests at some number of seeds, the true effects and variances, the factor by which
# additional seeds reduce standard errors, alpha and the margin.
_POWERS = (_flat_power, _peak_power, _trend_power)
