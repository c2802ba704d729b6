"""Scores with seeds as blocks: effects of levels, with homogeneous and heterogeneous variances.

score = effect of the seed + effect of the level + error, errors independent. Letters: S seeds,
L levels, K contrasts, B tables of one design (any leading dimensions, also none). A table is
(S, L) with NaN where a seed has no run at a level; every seed has at least two levels, every
level two seeds, and all cells are connected by common seeds and levels (`connected_table`).

Two variances of a contrast are estimated. The first (`own`) is heteroscedastic: the variance of
each level, weighted by the contrast, with degrees of freedom after Satterthwaite (1946). A level's
variance is the sum of its squared residuals over the sum of 1 - leverage (as HC2, MacKinnon and
White 1985, but by level; with few levels, residuals of the other levels contribute to it). The
second (`typical`) is pooled: the mean of the levels' variances without the largest fifth, which is
robust to a few noisy levels, scaled to be unbiased where all are equal. A test uses the variance
with the larger p value.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.kept import keep

Floats = NDArray[np.float64]
_LEAST_VARIANCE = 1e-24
_LEAST_FREEDOM = 1e-6
_DRAWN_VALUES, _DRAWS = 2_000_000, (200, 5_000)
_VALUES_AT_ONCE = 250_000
"""Cells of simulated tables that are fitted at once: 2 MB, which fit into a processor's cache."""


def connected_table(scores: Floats) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which seeds and levels of an (S, L) table can be compared: masks, (S,) and (L,).

    Seeds with fewer than two levels and levels with fewer than two seeds are removed until all have
    two; of several connected components the one with the most runs is kept.
    """
    present = np.isfinite(scores)
    kept = present
    while True:
        seeds, levels = kept.sum(axis=1) > 1, kept.sum(axis=0) > 1
        left = kept & seeds[:, None] & levels
        if (left == kept).all():
            break
        kept = left
    part = _largest_part(kept)
    return part & seeds, levels & kept[part].any(axis=0)


def _largest_part(present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The seeds of the connected component with the most runs, (S,)."""
    left, best = present.any(axis=1), np.zeros(len(present), bool)
    while left.any():
        part = np.zeros(len(present), bool)
        grown = np.arange(len(present)) == left.argmax()
        while (grown != part).any():
            part = grown
            grown = present[:, present[part].any(axis=0)].any(axis=1)
        if present[part].sum() > present[best].sum():
            best = part
        left = left & ~part
    return best


@dataclass(frozen=True)
class Fit:
    """Effects of levels in B tables of one design.

    effects    least-squares effects of the levels, less their mean over levels, (..., L).
    variances  variance of an error at each level, (..., L).
    typical    pooled variance: the mean of these without the largest fifth, scaled, (...).
    """

    effects: Floats
    variances: Floats
    typical: Floats


class Blocks:
    """The design of a table: which of its cells have a run.

    present           (S, L).
    freedom           degrees of freedom of all residuals, (S - 1)(L - 1) in a full table.
    level_freedom     (L,) of each level's variance; they sum to `freedom`.
    typical_freedom   of the pooled variance, by its first two moments.
    """

    def __init__(self, present: NDArray[np.bool_]) -> None:
        self.present = present
        weight = present.astype(np.float64)
        per_seed = weight.sum(axis=1)
        shared = weight.T @ (weight / per_seed[:, None])
        # the levels' normal equations after the seeds are eliminated; the mean effect is free
        self._inverse = np.linalg.pinv(np.diag(weight.sum(axis=0)) - shared, hermitian=True)
        self._per_seed = per_seed
        self._weight = weight
        self.freedom = float(weight.sum() - len(per_seed) - (weight.shape[1] - 1))
        left = (weight * (1 - self._leverage())).sum(axis=0)
        # 0 for a level that only connects two parts of the table: its runs are fitted exactly
        self.level_freedom = np.maximum(left, _LEAST_FREEDOM)
        self._kept = levels_kept(weight.shape[1])
        self._bias = 1.0
        moments = keep("moments", (present,), lambda: np.array([self._typical_moments()]))
        self._bias, self.typical_freedom = moments[0].tolist()

    def _typical_moments(self) -> tuple[float, float]:
        """Mean and degrees of freedom of the pooled variance of tables with error variance 1."""
        draws = int(np.clip(_DRAWN_VALUES // self.present.size, *_DRAWS))
        rng = np.random.default_rng(0)
        pieces = [
            self.fit(rng.standard_normal((count, *self.present.shape))).typical
            for count in pieces_of(draws, self.present.size)
        ]
        typical = np.concatenate(pieces)
        return float(typical.mean()), float(2 * typical.mean() ** 2 / typical.var())

    def _leverage(self) -> Floats:
        """Leverage of each cell, (S, L)."""
        share = self._weight / self._per_seed[:, None]
        by_seed = share @ self._inverse
        within = np.diag(self._inverse) - 2 * by_seed + (by_seed * share).sum(axis=1)[:, None]
        return np.asarray(1 / self._per_seed[:, None] + within, dtype=np.float64)

    def fit(self, scores: Floats) -> Fit:
        """Effects and variances of tables (..., S, L) of this design."""
        values = np.where(self.present, scores, 0.0)
        per_seed = self._per_seed[:, None]
        centred = (values - values.sum(axis=-1, keepdims=True) / per_seed) * self._weight
        effects = centred.sum(axis=-2) @ self._inverse
        residuals = (values - effects[..., None, :]) * self._weight
        residuals -= residuals.sum(axis=-1, keepdims=True) / per_seed * self._weight
        variances = (residuals**2).sum(axis=-2) / self.level_freedom
        lower = np.sort(variances, axis=-1)[..., : self._kept]
        return Fit(effects, variances, lower.mean(axis=-1) / self._bias)

    def weigh(self, rows: Floats) -> "Contrasts":
        """Contrasts of level effects: `rows` (K, L), each summing to 0."""
        solved = rows @ self._inverse
        share = (solved @ self._weight.T) / self._per_seed
        squares = (
            solved**2 * self._weight.sum(axis=0)
            - 2 * solved * (share @ self._weight)
            + share**2 @ self._weight
        )
        return Contrasts(rows, squares)

    def compare(self, fit: Fit, contrasts: "Contrasts") -> "Comparison":
        """Estimates and standard errors of contrasts in one table, or in each of B."""
        squares = contrasts.squares
        typical = fit.typical[..., None] * squares.sum(axis=-1)
        own = np.maximum(fit.variances @ squares.T, _LEAST_VARIANCE)
        spread = (fit.variances**2 / self.level_freedom) @ (squares**2).T
        return Comparison(
            estimate=fit.effects @ contrasts.rows.T,
            typical=np.sqrt(np.maximum(typical, _LEAST_VARIANCE)),
            own=np.sqrt(own),
            typical_freedom=self.typical_freedom,
            own_freedom=own**2 / np.maximum(spread, _LEAST_VARIANCE**2),
            freedom=self.freedom,
        )


@dataclass(frozen=True)
class Contrasts:
    """Weights of the levels in K contrasts, and of their runs in the estimates.

    rows     (K, L), each summing to 0.
    squares  (K, L), the squared weights of a level's runs in the estimate, summed.
    """

    rows: Floats
    squares: Floats


def pieces_of(draws: int, cells: int) -> list[int]:
    """The numbers of simulated tables that are fitted at once; they sum to `draws`."""
    size = max(_VALUES_AT_ONCE // cells, 1)
    return [min(size, draws - first) for first in range(0, draws, size)]


def levels_kept(levels: int) -> int:
    """How many of the levels' variances, the smallest ones, are averaged for the pooled one."""
    return levels - math.ceil(levels / 5)


@dataclass(frozen=True)
class Comparison:
    """Estimates of K contrasts with both standard errors and their degrees of freedom.

    estimate, typical (pooled), own (heteroscedastic), own_freedom  (..., K); freedom: of all
    residuals of the table.
    """

    estimate: Floats
    typical: Floats
    own: Floats
    typical_freedom: float
    own_freedom: Floats
    freedom: float

    def scores(self) -> Floats:
        """z score of each contrast, (..., K): of both standard errors the one nearer to 0.

        The sign is the estimate's.
        """
        typical = to_normal(self.estimate / self.typical, self.typical_freedom)
        own = to_normal(self.estimate / self.own, self.own_freedom)
        return np.where(np.abs(typical) < np.abs(own), typical, own)

    def half_width(self, critical: float) -> Floats:
        """Half width of the interval whose ends have a `scores()` of `critical`, (..., K)."""
        typical = from_normal(critical, self.typical_freedom) * self.typical
        own = from_normal(critical, self.own_freedom) * self.own
        return np.asarray(np.maximum(typical, own), dtype=np.float64)

    def pointwise(self, level: float) -> Floats:
        """Half width of each contrast's t interval at a confidence level, (..., K).

        From the mean of the two variances, degrees of freedom after Satterthwaite: the coverage is
        `level` on average over contrasts, not for each contrast where variances differ much.
        """
        own, typical = self.own**2, self.typical**2
        spread = own**2 / self.own_freedom + typical**2 / self.typical_freedom
        # with few levels the two come from the same residuals
        freedom = np.minimum((own + typical) ** 2 / spread, self.freedom)
        quantile = special.stdtrit(freedom, (1 + level) / 2)
        return np.asarray(quantile * np.sqrt((own + typical) / 2), dtype=np.float64)


def to_normal(t: Floats, freedom: Floats | float) -> Floats:
    """The z score with the tail probability of a Student t, by Wallace's approximation (1959).

    Monotone in t. For |t| up to 3 the error is below 0.02 with 5 degrees of freedom or more, below
    0.3 with 1. It does not bias a test: critical values are simulated on the same scale.
    """
    factor = (8 * freedom + 1) / (8 * freedom + 3)
    return np.asarray(np.sign(t) * factor * np.sqrt(freedom * np.log1p(t**2 / freedom)))


def from_normal(z: float, freedom: Floats | float) -> Floats:
    """The inverse of `to_normal`."""
    factor = (8 * freedom + 1) / (8 * freedom + 3)
    exponent = np.minimum((z / factor) ** 2 / freedom, 100.0)
    return np.asarray(np.sign(z) * np.sqrt(freedom * np.expm1(exponent)))
