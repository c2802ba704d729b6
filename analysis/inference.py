"""The shape of scores over levels of MTD, judged with the seed as the unit.

Letters: S seeds, L levels of MTD in rising order, B resamples. `scores` is (S, L) without a
hole, `distance` is (L,). Each seed is compared with itself, so what a seed adds to all its
runs drops out. A peak needs two lines (Simonsohn 2018): a slope up to it and a slope down
from it, each clear of zero. The break that splits a seed's levels is found on the other
seeds, because a peak chosen on the same scores favours itself.
"""

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.intervals import half_width

Floats = NDArray[np.float64]
Shape = Literal["peaked inside", "rising", "falling", "flat", "undecided"]

# Up to 5 seeds, all S^S resamples (3125 at most) are taken; beyond, this many are drawn.
_ENUMERATED_SEEDS = 5
_DRAWN = 2000
_MOST_SEEDS = 1000


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its t interval, in points of the score (x 100)."""

    mean: float
    low: float
    high: float


def estimate(values: Floats, level: float) -> Estimate:
    """Mean and t interval of one value per seed, (S,); NaN bounds for one seed."""
    mean = float(values.mean())
    if len(values) < 2:
        return Estimate(mean, float("nan"), float("nan"))
    width = float(half_width(values.std(ddof=1), len(values), level=level))
    return Estimate(mean, mean - width, mean + width)


def _slopes(scores: Floats, distance: Floats) -> Floats:
    """Least-squares slope of each row of (S, L) on log MTD, points per unit of log."""
    centred = np.log(distance) - np.log(distance).mean()
    return np.asarray(scores @ centred / (centred @ centred), dtype=np.float64)


def _is_peaked(scores: Floats, distance: Floats, level: float) -> bool:
    """Whether the score rises to an inner level and falls from it, each slope clear of 0."""
    seeds, levels = scores.shape
    others = (scores.sum(axis=0) - scores) / (seeds - 1)
    breaks = others.argmax(axis=1)
    if np.any((breaks == 0) | (breaks == levels - 1)):
        return False
    up = np.empty(seeds)
    down = np.empty(seeds)
    for row, cut in enumerate(breaks):
        one = scores[row : row + 1]
        up[row] = _slopes(one[:, : cut + 1], distance[: cut + 1])[0]
        down[row] = _slopes(one[:, cut:], distance[cut:])[0]
    return estimate(up, level).low > 0 and estimate(down, level).high < 0


def _trend(scores: Floats, distance: Floats, level: float, margin: float) -> Shape:
    """Rising or falling, if the slope over all levels is clear of 0 and its end is the best."""
    slope = estimate(_slopes(scores, distance), level)
    mean = scores.mean(axis=0)
    if slope.low > 0 and mean.max() - mean[-1] < margin:
        return "rising"
    if slope.high < 0 and mean.max() - mean[0] < margin:
        return "falling"
    return "undecided"


def _is_flat(scores: Floats, level: float, margin: float) -> bool:
    """Whether every level's offset from its seed's mean is shown to be below the margin.

    Two one-sided tests per level at (1 - level)/2 each; all must hold, so no correction.
    """
    estimates = [estimate(column, level) for column in scores.T]
    return all(-margin < each.low and each.high < margin for each in estimates)


def judge_shape(scores: Floats, distance: Floats, level: float, margin: float) -> Shape:
    """The shape of (S, L) scores over (L,) distances; "undecided" below 2 seeds or levels.

    Flat comes first and needs every level shown to lie within the margin: a difference that
    was not found is not a difference ruled out, and a slope within the margin counts as
    none. A peak or a trend needs slopes whose interval is clear of 0.
    """
    seeds, levels = scores.shape
    if seeds < 2 or levels < 2:
        return "undecided"
    # Rounded, so that scores without any scatter do not get a slope from the last bit.
    offsets = np.round(scores - scores.mean(axis=1, keepdims=True), 9)
    if _is_flat(offsets, level, margin):
        return "flat"
    if levels > 2 and _is_peaked(offsets, distance, level):
        return "peaked inside"
    return _trend(offsets, distance, level, margin)


def resample_peaks(scores: Floats, seed: int) -> tuple[NDArray[np.intp], str]:
    """Best level of each of B resamples of the seeds, (B,), and how they were made."""
    seeds = len(scores)
    if seeds <= _ENUMERATED_SEEDS:
        draws = np.array(list(itertools.product(range(seeds), repeat=seeds)))
        method = f"all {len(draws)} resamples of {seeds} seeds"
    else:
        draws = np.random.default_rng(seed).integers(seeds, size=(_DRAWN, seeds))
        method = f"{_DRAWN} resamples of {seeds} seeds, random seed {seed}"
    counts = np.stack([(draws == row).sum(axis=1) for row in range(seeds)], axis=1)
    return (counts @ scores).argmax(axis=1), method


def count_seeds_needed(scores: Floats, level: float, margin: float) -> int | None:
    """Least number of seeds whose paired difference of two levels has a half width <= margin."""
    seeds, levels = scores.shape
    if seeds < 2 or levels < 2:
        return None
    rest = scores - scores.mean(axis=1, keepdims=True)
    rest = rest - rest.mean(axis=0)
    variance = float((rest**2).sum()) / ((seeds - 1) * (levels - 1))
    counts = np.arange(2, _MOST_SEEDS + 1)
    enough = half_width(np.sqrt(2 * variance), counts, level=level) <= margin
    return int(counts[enough][0]) if enough.any() else None
