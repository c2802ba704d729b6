"""How many seeds a verdict takes: approximate power of the tests of a shape.

Letters: L levels of MTD.
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from analysis.blocks import Fit, Floats, levels_kept
from analysis.defaults import ALPHA, MARGIN
from analysis.inference import ShapeTests, shape_tests

MOST_SEEDS = 1000
# With this many seeds the critical values are close to those of more.
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
    """Least number of seeds that give a verdict with a probability of `power`, at least 2.

    effects    true score of each level up to a constant, (L,); variances: of a run's error at each
               level, (L,); distance: MTD, (L,) in rising order.
    margin     points below which a difference counts as none.

    The verdict is the one that is most probable: flat, peaked, rising or falling. Errors of the
    estimates are taken as normal, slopes on the two sides of a peak as independent. None where
    more than 1,000 seeds would be needed. Raises ValueError for fewer than 2 levels.
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
        return max(each(tests, truth, factor, alpha, margin) for each in _CHANCES) >= power

    return least_seeds(is_enough, MOST_SEEDS)


def least_seeds(is_enough: Callable[[int], bool], most: int) -> int | None:
    """The least number of seeds from 2 to `most` that is enough, None if none is, by bisection.

    is_enough  holds for every number of seeds above one for which it holds.
    """
    low, high = 1, 2
    while not is_enough(high):
        if high == most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _chance_of_flat(
    tests: ShapeTests, truth: Fit, factor: float, alpha: float, margin: float
) -> float:
    comparison = tests.each_offset.compare(truth)
    width = comparison.half_width(tests.each_offset.critical(alpha)) / factor
    room = (margin - np.abs(truth.effects) - width) * factor
    return 1 - float(2 * special.ndtr(-room / comparison.own).sum())


def _chance_of_peak(
    tests: ShapeTests, truth: Fit, factor: float, alpha: float, _margin: float
) -> float:
    best = int(truth.effects.argmax())
    if not 0 < best < tests.levels - 1:
        return 0.0
    critical = tests.lines.critical(alpha)
    rise, fall = (special.ndtr(each * factor - critical) for each in tests.lines.scores(truth))
    return float((rise * fall).max())


def _chance_of_trend(
    tests: ShapeTests, truth: Fit, factor: float, alpha: float, _margin: float
) -> float:
    score = tests.trend.scores(truth)[0][0]
    return float(special.ndtr(score * factor - tests.trend.critical(alpha)))


# Of the tests at some number of seeds, the true effects and variances, the factor by which errors
# are smaller with the seeds beyond that number, alpha and the margin.
_CHANCES = (_chance_of_flat, _chance_of_peak, _chance_of_trend)
