"""Simulated critical values of the largest score of a family of contrasts (max-t tests).

The null distribution of the largest score (`ContrastEstimates.scores`) of a family is simulated for
the design of the table under three error models. Where levels have an order: independent errors of
equal variance; errors of a seed that are correlated at neighbouring levels (AR(1), 0.5); and seeds
with slopes of their own, three times as large as the other errors. Where they have none, as
configurations: independent errors; and seeds with differences of their own, between two halves of
the configurations or in given contrasts, as large as the other errors and three times as large. The
largest of the three quantiles is used, so that nothing has to be tested before. Each quantile is
the upper end of its 99 % interval, so that simulation error does not raise the error rate above
alpha.

Letters: S seeds, L levels, K contrasts, F families, B simulated tables.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from mtdlab.analysis.inference.blocks import (
    Blocks,
    ContrastEstimates,
    Contrasts,
    Fit,
    KnownErrors,
    join_fits,
    pieces_of,
)
from mtdlab.analysis.inference.kept import keep
from mtdlab.analysis.measures import Floats

_CORRELATION = 0.5
_OWN = 3.0
_ZERO = 1e-9
_Z99 = 2.33
_DRAWS = 10_000
_LEAST_DRAWS = 1_000
# simulated scores that are in memory at once: 32 MB
_MOST_VALUES = 4_000_000
_MOST_SIMULATED = 2_500_000
_SEED = 0


@dataclass(frozen=True, eq=False)
class Null:
    """Simulated tables without differences between levels.

    Attributes:
        errors: the model of their errors.
        definition: all that they depend on.
        simulate: a fit of B tables under each of several models of the errors.
    """

    errors: Blocks | KnownErrors
    definition: tuple[object, ...]
    simulate: Callable[[], tuple[Fit, ...]]

    @property
    def fits(self) -> tuple[Fit, ...]:
        return _simulate_fits(self)


@lru_cache(maxsize=4)
def _simulate_fits(null: Null) -> tuple[Fit, ...]:
    """The tables of the latest few, which may have 100 MB each."""
    return null.simulate()


def null_of(blocks: Blocks, own: Floats | None = None) -> Null:
    """Simulated tables of one design with seeds as blocks: 10,000 for each of the error models.

    Large designs have fewer, at least 1,000. The random seed is fixed. Where levels have no order,
    seeds have differences of their own in the contrasts `own` (K, L); None: between two halves of
    the levels, drawn at random.
    """
    # the projection on the contrasts, (L, L): which basis of them is found depends on the processor
    along = None if own is None else np.linalg.pinv(own, rcond=_ZERO) @ own
    return Null(blocks, (blocks.present, blocks.places, along), lambda: _simulate(blocks, along))


def _simulate(blocks: Blocks, along: Floats | None) -> tuple[Fit, ...]:
    shape = blocks.present.shape
    draws = int(np.clip(_MOST_VALUES // (shape[0] * shape[1]), _LEAST_DRAWS, _DRAWS))
    # generators of their own, so that the numbers do not depend on the pieces
    of_noise, of_seeds, of_halves = (np.random.default_rng([_SEED, stream]) for stream in range(3))
    half = np.where(np.arange(shape[1]) < shape[1] // 2, 1.0, -1.0) / math.sqrt(2)
    fits: list[list[Fit]] = []
    for count in pieces_of(draws, shape[0] * shape[1]):
        noise = of_noise.standard_normal((count, *shape))
        weights = along
        if weights is None:
            weights = of_halves.permuted(np.tile(half, (count, 1)), axis=1)[:, None]
        own = of_seeds.standard_normal((count, shape[0], weights.shape[-2]))
        fits.append([blocks.fit(errors) for errors in _draw(blocks.places, noise, own, weights)])
    return tuple(join_fits(pieces) for pieces in zip(*fits, strict=True))


def _draw(places: Floats | None, noise: Floats, own: Floats, weights: Floats) -> list[Floats]:
    """Errors (B, S, L) of each model; seeds deviate by `own` (B, S, D) along `weights`, (D, L)."""
    if places is None:
        differences = own @ weights
        return [noise, noise + differences, noise + _OWN * differences]
    steps = np.arange(len(places))
    factor = np.linalg.cholesky(_CORRELATION ** np.abs(np.subtract.outer(steps, steps)))
    scaled = (places - places.mean()) / places.std()
    return [noise, noise @ factor.T, noise + _OWN * own * scaled]


def compare_own(
    scores: Floats, rows: Floats, items: Floats | None = None, *, own: Floats | None = None
) -> tuple["Families", Fit]:
    """A family of two-sided contrasts (K, L) of levels without an order, and the table's fit.

    Its critical values also hold where seeds have differences of their own in these contrasts
    `rows`, each summing to 0, or in those of `own`, (D, L). `scores` (S, L) are as required by
    `Blocks`, and `items` is the covariance of the levels' effects due to the evaluation items, (L,
    L) in points squared; None: not counted.
    """
    null = null_of(Blocks(np.isfinite(scores)), rows if own is None else own)
    null = null_for(null, scores, items)
    return Families(null, [rows], two_sided=True), null.errors.fit(scores, items)


def null_for(null: Null, scores: Floats, items: Floats | None) -> Null:
    """The null distribution with the items' effect on a table (S, L); unchanged without items."""
    if items is None:
        return null
    # the items' share of the variance, above 0 also where runs do not scatter
    variance = float(null.errors.fit(scores).typical)
    share = items / max(variance, 1e-9 * float(np.trace(items)), 1e-40)
    return null_with_items(null, share)


def null_with_items(null: Null, items: Floats) -> Null:
    """Simulated tables to which an effect of the evaluation items on each level is added.

    The tables without it stay: the items' share is an estimate, and a critical value that is lower
    with it could let the items decide what the seeds alone leave open.

    `items`: covariance of the effects due to the items, (L, L), relative to the pooled variance
    of an error.
    """
    root = root_of(items)

    def simulate() -> tuple[Fit, ...]:
        rng, with_items = np.random.default_rng(_SEED + 1), []
        for fit in null.fits:
            # the same share of the variance under each model
            scale = float(fit.typical.mean())
            drawn = rng.standard_normal(fit.effects.shape) @ root
            effects = fit.effects + math.sqrt(scale) * (drawn - drawn.mean(axis=-1, keepdims=True))
            with_items.append(replace(fit, effects=effects, items=scale * items))
        return *null.fits, *with_items

    return Null(null.errors, (*null.definition, items), simulate)


def root_of(covariance: Floats) -> Floats:
    """The symmetric matrix whose square is the covariance, (L, L).

    Scaled eigenvectors are a root too, but the processor chooses their signs, and those of equal
    eigenvalues.
    """
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T)


class Families:
    """F families of contrasts on one design, with one critical value for the largest scores.

    Args:
        groups: arrays (K, L) of contrasts, one for each family.
        two_sided: whether the score of a family is the largest absolute score.
        alone: whether a contrast may have the variance of its own values alone. Not where it is
            with the mean of all levels: a level whose runs all went well would be far from it where
            runs of any level fail at random.
    """

    def __init__(
        self, null: Null, groups: Sequence[Floats], *, two_sided: bool = False, alone: bool = True
    ) -> None:
        self.two_sided, self._alone = two_sided, alone
        self._null = null
        self._rows = np.vstack(groups)
        self._ends = np.cumsum([len(group) for group in groups])[:-1]
        # families share contrasts, also with the opposite sign: each is computed once
        signs = np.sign(self._rows[np.arange(len(self._rows)), (self._rows != 0).argmax(axis=1)])
        unique, self._at = np.unique(self._rows * signs[:, None], axis=0, return_inverse=True)
        self._signs, self._contrasts = signs, self._weigh(unique)

    def _weigh(self, rows: Floats) -> Contrasts:
        contrasts = self._null.errors.weigh(rows)
        return replace(contrasts, alone=contrasts.alone & self._alone)

    def apart(self) -> "Families":
        """Each contrast as a one-sided family of its own: no correction for their number."""
        return Families(self._null, [row[None] for row in self._rows])

    def compare(self, fit: Fit) -> ContrastEstimates:
        """All contrasts of the families, one family after another."""
        return self._null.errors.compare(fit, self._weigh(self._rows))

    def intervals(self, fit: Fit, alpha: float) -> tuple[Floats, Floats]:
        """Estimates of all contrasts and half widths of their intervals, (..., K) each."""
        comparison = self.compare(fit)
        return comparison.estimate, comparison.half_width(self.critical(alpha))

    def scores(self, fit: Fit) -> list[Floats]:
        """The scores of each family, (..., K)."""
        unique = self._null.errors.compare(fit, self._contrasts).scores()
        scores = unique[..., self._at] * self._signs
        return np.split(np.abs(scores) if self.two_sided else scores, self._ends, axis=-1)

    def critical(self, alpha: float) -> float:
        """The value that each family's largest score exceeds with probability at most alpha."""

        def compute() -> Floats:
            draws = self._maxima.shape[1]
            # the largest number of tables above at which `p_value` is alpha or less
            root = (math.sqrt(_Z99**2 + 4 * alpha * draws) - _Z99) / 2
            return np.array([self._maxima[:, draws - max(int(root**2), 1)].max()])

        return float(keep("critical", (*self._definition, alpha), compute)[0])

    def p_value(self, scores: Floats) -> Floats:
        """Probability of a largest score of at least `scores`; the maximum over families."""
        table = self._table
        draws = int(table.shape[1])
        below = np.min([np.searchsorted(simulated, scores) for simulated in table], axis=0)
        above = draws - below + 1
        return np.asarray(np.minimum((above + _Z99 * np.sqrt(above)) / draws, 1.0))

    @property
    def _definition(self) -> tuple[object, ...]:
        return *self._null.definition, self._rows, self._ends, self.two_sided, self._alone

    @cached_property
    def _table(self) -> Floats:
        return keep("maxima", self._definition, lambda: self._maxima)

    @cached_property
    def _maxima(self) -> Floats:
        """Sorted simulated largest scores under the null hypothesis, (models F, B)."""
        count = len(self._contrasts.rows)
        size, draws = max(_MOST_VALUES // count, 1), max(_MOST_SIMULATED // count, _LEAST_DRAWS)
        largest: list[Floats] = []
        for fit in self._null.fits:
            starts = range(0, min(len(fit.effects), draws), size)
            pieces = (fit.part(slice(start, start + size)) for start in starts)
            parts = [[scores.max(axis=-1) for scores in self.scores(piece)] for piece in pieces]
            largest.extend(np.sort(np.concatenate(model)) for model in zip(*parts, strict=True))
        return np.array(largest)
