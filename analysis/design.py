"""Power analysis before a study runs: the seeds needed for several numbers of levels.

Letters: L levels of MTD.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.blocks import Blocks, Floats
from analysis.inference import ShapeTests
from analysis.pairing import score_table
from analysis.power import minimum_seeds

ASSUMED_DEVIATION = 1.5
"""Residual standard deviation in points where none was measured. The built-in studies have 0.9 to
2.0 at most levels."""
OTHER_LEVELS = (5, 9)
POWER, MOST_SEEDS = 0.8, 512
_DRAWS = 1_000


@dataclass(frozen=True)
class Need:
    """Seeds for 80 % power at a number of levels; None where more than 512 are needed.

    peak   for a verdict "peaked"; None also with fewer than 3 levels.
    slope  for "rising"; computed for the levels of the design only.
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

    levels     MTD of each level of the design, at least two different ones, in steps.
    deviation  residual standard deviation of a run, the same at every level.

    Returns one `Need` for the levels of the design, then one each for 5 and 9 levels over the same
    range, evenly spaced in log MTD.
    """
    own = np.unique(np.asarray(levels, dtype=np.float64))
    designs = [own]
    designs += [np.geomspace(own[0], own[-1], n) for n in OTHER_LEVELS if n != len(own)]

    def count_for_peak(distance: Floats) -> int | None:
        effects = peak_effects(distance, effect) / deviation
        return _needed_seeds(lambda seeds: _peak_power(effects, distance, seeds, alpha))

    needs = [Need(len(each), count_for_peak(each) if len(each) > 2 else None) for each in designs]
    effects = slope_effects(own, effect) / deviation
    slope = _needed_seeds(lambda seeds: _slope_power(effects, own, seeds, alpha))
    return [replace(needs[0], slope=slope), *needs[1:]]


def _needed_seeds(power: Callable[[int], float]) -> int | None:
    return minimum_seeds(lambda seeds: power(seeds) >= POWER, MOST_SEEDS)


def _peak_power(effects: Floats, distance: Floats, seeds: int, alpha: float) -> float:
    """Power of the test of a peak, residual standard deviation 1."""
    tests = ShapeTests(np.ones((seeds, len(effects)), dtype=bool), distance)
    rise, fall = tests.lines.scores(tests.blocks.fit(_tables(effects, seeds)))
    largest = np.minimum(rise, fall).max(axis=-1)
    return float((largest > tests.lines.critical(alpha)).mean())


def _slope_power(effects: Floats, distance: Floats, seeds: int, alpha: float) -> float:
    """Power of the test of a slope over all levels, residual standard deviation 1."""
    tests = ShapeTests(np.ones((seeds, len(effects)), dtype=bool), distance)
    [scores] = tests.trend.scores(tests.blocks.fit(_tables(effects, seeds)))
    return float((scores[:, 0] > tests.trend.critical(alpha)).mean())


def _tables(effects: Floats, seeds: int) -> Floats:
    """Simulated tables, (B, seeds, L); the same for the same arguments."""
    draws = int(np.clip(2_000_000 // (seeds * len(effects)), 100, _DRAWS))
    noise = np.random.default_rng(0).standard_normal((draws, seeds, len(effects)))
    return np.asarray(effects + noise)


def residual_deviation(trials: pd.DataFrame, settings: Collection[str]) -> float | None:
    """Residual standard deviation of a run after effects of seed and level, in points.

    The square root of the pooled variance; None with fewer than two seeds or two levels.
    """
    scores = score_table(trials, settings).to_numpy()
    if min(scores.shape) < 2:
        return None
    blocks = Blocks(np.isfinite(scores))
    squares = blocks.fit(scores).variances @ blocks.level_freedom
    return float(np.sqrt(squares / blocks.freedom))
