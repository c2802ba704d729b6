"""Families of contrasts that are tested together: critical values of the largest, simulated.

The largest score of a family (`Comparison.scores`) has a distribution without unknowns where all
levels have one variance; it is simulated for the design at hand, as is that with one noisy level
(4 times the standard deviation of the others, the ratio measured on the built-in data without
in-batch negatives) at either end. The largest of the three quantiles is taken, so that no test of
the variances comes first.

Letters: S seeds, L levels, K contrasts, F families, B simulated tables.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from analysis.blocks import Blocks, Comparison, Fit, Floats

_NOISY = 4.0
_DRAWS = 10_000
_LEAST_DRAWS = 1_000
# Doubles in one array of simulated contrasts: 32 MB.
_MOST_VALUES = 4_000_000
_SEED = 0


class Families:
    """F families of contrasts on one design, each with one critical value for its largest score.

    groups     arrays (K, L) of contrasts, a family each.
    two_sided  takes the largest absolute score.

    The same design and contrasts always get the same critical value. Simulating it takes 0.1 s
    for 3 seeds and 9 levels; large designs get fewer draws, 1,000 at least.
    """

    def __init__(
        self, blocks: Blocks, groups: Sequence[Floats], *, two_sided: bool = False
    ) -> None:
        self.blocks = blocks
        self.two_sided = two_sided
        self.contrasts = blocks.weigh(np.vstack(groups))
        self._ends = np.cumsum([len(group) for group in groups])[:-1]

    def compare(self, fit: Fit) -> Comparison:
        """All contrasts of the families, one family after another."""
        return self.blocks.compare(fit, self.contrasts)

    def scores(self, fit: Fit) -> list[Floats]:
        """The scores of each family, (..., K)."""
        scores = self.compare(fit).scores()
        return np.split(np.abs(scores) if self.two_sided else scores, self._ends, axis=-1)

    def critical(self, alpha: float) -> float:
        """The value that no family's largest score exceeds with a probability above alpha."""
        draws = self._maxima.shape[1]
        return float(self._maxima[:, min(math.ceil((1 - alpha) * draws), draws - 1)].max())

    def p_value(self, score: float) -> float:
        """Probability of a score at least this large, of the family that reaches it most often."""
        draws = self._maxima.shape[1]
        below = [np.searchsorted(each, score) for each in self._maxima]
        return float((draws - min(below) + 1) / (draws + 1))

    @cached_property
    def _maxima(self) -> Floats:
        """Sorted largest scores where no contrast differs from 0, (3 F, B)."""
        present = self.blocks.present
        size = max(present.size, len(self.contrasts.rows))
        draws = int(np.clip(_MOST_VALUES // size, _LEAST_DRAWS, _DRAWS))
        noise = np.random.default_rng(_SEED).standard_normal((draws, *present.shape))
        maxima = [
            np.sort(scores.max(axis=-1))
            for deviation in _patterns(present.shape[1])
            for scores in self.scores(self.blocks.fit(noise * deviation))
        ]
        return np.array(maxima)


def _patterns(levels: int) -> Floats:
    """Standard deviations of the levels, (3, L): equal, the first noisy, the last noisy."""
    patterns = np.ones((3, levels))
    patterns[1, 0] = patterns[2, -1] = _NOISY
    return patterns
