"""Means with 95 % intervals, replicated by seed.

Runs that share a seed are not independent. The unit of replication is therefore the seed, and the
degrees of freedom of an interval count seeds, not runs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.measures import Floats


@dataclass(frozen=True)
class Estimate:
    """A mean or a difference in points of the score (x 100) with its interval."""

    mean: float
    low: float = math.nan
    high: float = math.nan

    def __neg__(self) -> "Estimate":
        # subtracted from 0, so that a 0 has no sign
        return Estimate(0 - self.mean, 0 - self.high, 0 - self.low)

    def as_read(self, write: ScoreFormat) -> "Estimate":
        """A score or a difference with the sign of what was read."""
        return -self if write.is_turned else self


UNKNOWN = Estimate(math.nan)
_MOST = 100.0
"""The largest correlation or share, in points."""


def share_level(count: int, level: float = LEVEL) -> float:
    """The confidence of each of several tests that share one error rate (Bonferroni)."""
    return 1 - (1 - level) / count


def estimate(
    values: Floats, level: float = LEVEL, *, of_items: float = 0.0, freedom: float = math.inf
) -> Estimate:
    """Mean and t interval of one value per seed, (S,); NaN bounds for one seed.

    Degrees of freedom after Satterthwaite (1946), with the variance between seeds weighted by 1 + 4
    / (S - 1) and at least S - 1: where that variance is small by chance there would be too many (3
    seeds and 3,000 items: coverage 91 % without, 95 % with the weight). `of_items` is the variance
    of the mean due to what all seeds share, as the evaluation items, with its `freedom`. The
    interval is at least as wide as without it: 2 seeds would cover 92 %.
    """
    mean, tail = float(values.mean()), (1 + level) / 2
    if len(values) < 2:
        return Estimate(mean)
    errors = _list_errors(values, of_items, freedom)
    width = max((special.stdtrit(count, tail) * error for count, error in errors), default=0.0)
    return Estimate(mean, mean - float(width), mean + float(width))


def find_p_above(
    values: Floats, bound: float, *, of_items: float = 0.0, freedom: float = math.inf
) -> float:
    """The one-sided p value of a mean above a bound, by the errors of `estimate`; NaN for a seed.

    The interval at a level lies above the bound where this is at most (1 - level) / 2.
    """
    above = float(values.mean()) - bound
    if len(values) < 2:
        return math.nan
    errors = _list_errors(values, of_items, freedom)
    tails = (float(special.stdtr(count, -above / error)) for count, error in errors if error > 0)
    return max(tails, default=float(above <= 0))


def _list_errors(values: Floats, of_items: float, freedom: float) -> list[tuple[float, float]]:
    """Degrees of freedom and standard error of a mean with the items, and without; see above."""
    seeds = len(values)
    of_seeds = float(values.var(ddof=1)) / seeds
    spread = (1 + 4 / (seeds - 1)) * of_seeds**2 / (seeds - 1) + of_items**2 / freedom
    if spread <= 0:
        return []
    total = of_seeds + of_items
    with_items = max(total**2 / spread, seeds - 1), math.sqrt(total)
    return [with_items, (seeds - 1, math.sqrt(of_seeds))]


def estimate_over_items(values: Floats, influences: Floats) -> Estimate:
    """Mean of one value per seed, (S,), with a t interval that also covers the sampling of P items.

    At 95 %; NaN bounds for one seed. `influences` (S, P) are as those of
    `mtdlab.analysis.data.items.influences`.
    """
    of_items = variance_of_items(influences)
    return estimate(values, of_items=of_items, freedom=influences.shape[1] - 1)


def variance_of_items(influences: Floats) -> float:
    """The variance of the mean over seeds that is due to the sampling of P items.

    All seeds share the items, so that the variance of the mean is that between seeds over S, plus
    that of the items' common influence; what an item does to a single seed is in the first already.
    """
    seeds, items = influences.shape
    common = influences.mean(axis=0)
    single = ((influences - common) ** 2).sum() / (max(seeds - 1, 1) * seeds * items**2)
    return max(float((common**2).sum() / (items * (items - 1)) - single), 0.0)


def summarise(runs: pd.DataFrame, *, by: Sequence[str], value: str = "score") -> pd.DataFrame:
    """Mean and t interval of a column, whose values are finite, for each group of runs.

    Columns: `by`, by which rows are sorted, then n (runs), seeds, mean, low, high. The mean is over
    the means of the seeds; with one seed low and high are NaN, and where they are impossible for
    scores (`without_impossible`); no runs give no rows.
    """
    keys = list(by)
    of_seeds = runs.groupby([*keys, "seed"])[value]
    # groups of the seeds' means and amounts; aggregations by name take several times as long
    means, amounts = (values.groupby(level=keys) for values in (of_seeds.mean(), of_seeds.size()))
    mean, seeds = means.mean(), means.size()
    quantile = special.stdtrit(seeds.to_numpy(np.float64) - 1, (1 + LEVEL) / 2)
    width = quantile * means.std().to_numpy(np.float64) / np.sqrt(seeds.to_numpy())
    columns = {"n": amounts.sum(), "seeds": seeds, "mean": mean}
    table = pd.DataFrame(columns | {"low": mean - width, "high": mean + width}).reset_index()
    if value == "score":
        impossible = _are_impossible(table[["low", "high"]].to_numpy(), runs[value].to_numpy())
        table.loc[impossible, ["low", "high"]] = math.nan
    return table


def without_impossible(mean: Estimate, scores: Floats) -> Estimate:
    """The mean of scores without an interval that leaves -100 to 100, where no score does.

    The few seeds that give such an interval do not estimate one.
    """
    [impossible] = _are_impossible(np.array([[mean.low, mean.high]]), scores)
    return Estimate(mean.mean) if impossible else mean


def _are_impossible(intervals: Floats, scores: Floats) -> NDArray[np.bool_]:
    """Whether intervals (G, 2) of means leave -100 to 100, within which all scores are, (G,)."""
    leave = (np.abs(intervals) > _MOST).any(axis=1)
    return np.asarray(leave & (np.abs(scores).max(initial=0) <= _MOST))
