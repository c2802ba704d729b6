"""Power analysis before a study runs: the seeds needed for several numbers of levels.

Letters: L levels of MTD.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

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
FIRST_SEEDS = 8
"""Where the search of a number of seeds begins."""
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
    searches = [_Search(each, effect / deviation, alpha) for each in designs]
    peak = searches[0].seeds_for_peak(FIRST_SEEDS)
    # one answer is a good beginning for the search of the next
    begin = peak or FIRST_SEEDS
    needs = [Need(len(own), peak, searches[0].seeds_for_slope(begin))]
    for distance, search in zip(designs[1:], searches[1:], strict=True):
        needs.append(Need(len(distance), search.seeds_for_peak(begin)))
    return needs


class _Search:
    """Seeds that one design needs, by simulation with a residual standard deviation of 1."""

    def __init__(self, distance: Floats, height: float, alpha: float) -> None:
        self.distance, self.height, self.alpha = distance, height, alpha
        # critical values are simulated, and the same for a peak and for a slope
        self.tests = cache(self._tests)

    def seeds_for_peak(self, first: int) -> int | None:
        if len(self.distance) < 3:
            return None
        effects = peak_effects(self.distance, self.height)
        return self._seeds(lambda seeds: self._peak_power(effects, seeds), first)

    def seeds_for_slope(self, first: int) -> int | None:
        effects = slope_effects(self.distance, self.height)
        return self._seeds(lambda seeds: self._slope_power(effects, seeds), first)

    def _seeds(self, power: Callable[[int], float], first: int) -> int | None:
        return minimum_seeds(lambda seeds: power(seeds) >= POWER, MOST_SEEDS, first)

    def _tests(self, seeds: int) -> ShapeTests:
        return ShapeTests(np.ones((seeds, len(self.distance)), dtype=bool), self.distance)

    def _peak_power(self, effects: Floats, seeds: int) -> float:
        tests = self.tests(seeds)
        rise, fall = tests.lines.scores(tests.blocks.fit(_tables(effects, seeds)))
        largest = np.minimum(rise, fall).max(axis=-1)
        return float((largest > tests.lines.critical(self.alpha)).mean())

    def _slope_power(self, effects: Floats, seeds: int) -> float:
        tests = self.tests(seeds)
        [scores] = tests.trend.scores(tests.blocks.fit(_tables(effects, seeds)))
        return float((scores[:, 0] > tests.trend.critical(self.alpha)).mean())


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
