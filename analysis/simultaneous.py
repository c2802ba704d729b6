"""Simulated critical values of the largest score of a family of contrasts (max-t tests).

The null distribution of the largest score of a family (`Comparison.scores`) is simulated for the
design of the table under four error models: equal variances; a noisy first or last level (4 times
the standard deviation of the others, the ratio measured on the built-in data without in-batch
negatives); and one run in ten collapsed. The largest of the four quantiles is used, which makes a
preliminary test of equal variances unnecessary. Each quantile is the upper end of its 99 %
interval, so that simulation error does not raise the error rate above alpha.

Letters: S seeds, L levels, K contrasts, F families, B simulated tables.
"""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from analysis.blocks import Blocks, Comparison, Fit, Floats, pieces_of
from analysis.kept import keep

_NOISY = 4.0
_COLLAPSED, _LOST = 0.1, 15.0
_Z99 = 2.33
_DRAWS = 10_000
_LEAST_DRAWS = 1_000
# simulated scores that are in memory at once: 32 MB
_MOST_VALUES = 4_000_000
_SEED = 0


class NullFits:
    """Fits of simulated tables without differences between levels, for one design.

    fits  for each of the four error models, of 10,000 tables (fewer for large designs, at least
          1,000). The random seed is fixed.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        shape = self.blocks.present.shape
        draws = int(np.clip(_MOST_VALUES // (shape[0] * shape[1]), _LEAST_DRAWS, _DRAWS))
        fits: list[list[Fit]] = [[], [], [], []]
        equal, first, last, collapsed = fits
        rng = np.random.default_rng(_SEED)
        for noise in _noise(draws, shape, rng):
            equal.append(self.blocks.fit(noise))
            first.append(self.blocks.fit(_with_noisy(noise, 0)))
            last.append(self.blocks.fit(_with_noisy(noise, -1)))
        # of the same normal errors; the runs that collapse are drawn after them
        for noise in _noise(draws, shape, np.random.default_rng(_SEED)):
            lost = rng.random(noise.shape) < _COLLAPSED
            collapsed.append(self.blocks.fit(noise - _LOST * lost))
        return tuple(_joined(pieces) for pieces in fits)


class Families:
    """F families of contrasts on one design, with one critical value for the largest scores.

    null       simulated fits of the design.
    groups     arrays (K, L) of contrasts, one for each family.
    two_sided  whether the score of a family is the largest absolute score.
    """

    def __init__(
        self, null: NullFits, groups: Sequence[Floats], *, two_sided: bool = False
    ) -> None:
        self.blocks = null.blocks
        self.two_sided = two_sided
        self.contrasts = self.blocks.weigh(np.vstack(groups))
        self._null = null
        self._ends = np.cumsum([len(group) for group in groups])[:-1]

    def compare(self, fit: Fit) -> Comparison:
        """All contrasts of the families, one family after another."""
        return self.blocks.compare(fit, self.contrasts)

    def scores(self, fit: Fit) -> list[Floats]:
        """The scores of each family, (..., K)."""
        scores = self.compare(fit).scores()
        return np.split(np.abs(scores) if self.two_sided else scores, self._ends, axis=-1)

    def critical(self, alpha: float) -> float:
        """The value that each family's largest score exceeds with probability at most alpha."""
        kept = keep("critical", (*self._definition, alpha), lambda: self._critical(alpha))
        return float(kept[0, 0])

    def _critical(self, alpha: float) -> Floats:
        draws = self._maxima.shape[1]
        above = max(int(alpha * draws - _Z99 * math.sqrt(alpha * draws)), 1)
        return np.array([[self._maxima[:, draws - above].max()]])

    def p_value(self, score: float) -> float:
        """Probability of a largest score of at least `score`; the maximum over families."""
        table = self._table
        draws = int(table.shape[1])
        above = draws - min(int(np.searchsorted(each, score)) for each in table) + 1
        return min(float(above + _Z99 * math.sqrt(above)) / draws, 1.0)

    @property
    def _definition(self) -> tuple[object, ...]:
        """All that the simulated scores depend on."""
        return self.blocks.present, self.contrasts.rows, self._ends, self.two_sided

    @cached_property
    def _table(self) -> Floats:
        return keep("maxima", self._definition, lambda: self._maxima)

    @cached_property
    def _maxima(self) -> Floats:
        """Sorted simulated largest scores under the null hypothesis, (4 F, B)."""
        size = max(_MOST_VALUES // len(self.contrasts.rows), 1)
        largest: list[Floats] = []
        for fit in self._null.fits:
            parts = [
                [scores.max(axis=-1) for scores in self.scores(_part(fit, start, size))]
                for start in range(0, len(fit.typical), size)
            ]
            largest.extend(np.sort(np.concatenate(each)) for each in zip(*parts, strict=True))
        return np.array(largest)


def _part(fit: Fit, start: int, size: int) -> Fit:
    """A slice of the tables of a fit, which bounds the memory of their scores."""
    chosen = slice(start, start + size)
    return Fit(fit.effects[chosen], fit.variances[chosen], fit.typical[chosen])


def _joined(parts: Sequence[Fit]) -> Fit:
    """Fits of tables one after another."""
    return Fit(
        np.concatenate([part.effects for part in parts]),
        np.concatenate([part.variances for part in parts]),
        np.concatenate([part.typical for part in parts]),
    )


def _noise(draws: int, shape: tuple[int, int], rng: np.random.Generator) -> Iterator[Floats]:
    """Standard normal errors in pieces (B, S, L) that bound the memory."""
    for count in pieces_of(draws, shape[0] * shape[1]):
        yield rng.standard_normal((count, *shape))


def _with_noisy(noise: Floats, level: int) -> Floats:
    noisy = noise.copy()
    noisy[..., level] *= _NOISY
    return noisy
