"""Rules that the verdict is compared with, each as small as it can be. Letters as in `Blocks`.

pooled    one variance for all levels, seeds as blocks, the largest of both families of slopes (a
          max-t test), without the correction for unequal variances.
by_seed   the rule of earlier versions: two slopes for each seed, the break found on the other
          seeds, t intervals over seeds.
"""

from functools import lru_cache

import numpy as np

from analysis.blocks import Blocks, Floats
from analysis.inference import slope_contrasts
from analysis.intervals import half_width

_DRAWS = 20_000


class Pooled:
    """The two-line test with a pooled variance, for one full design."""

    def __init__(self, seeds: int, distance: Floats, alpha: float = 0.05) -> None:
        self.blocks = Blocks(np.ones((seeds, len(distance)), dtype=bool))
        self.up, self.down = slope_contrasts(distance)
        noise = np.random.default_rng(1).standard_normal((_DRAWS, seeds, len(distance)))
        rise, fall = self._t(noise)
        largest = np.maximum(rise.max(axis=1), fall.max(axis=1))
        self.critical = float(np.quantile(largest, 1 - alpha))

    def _t(self, scores: Floats) -> tuple[Floats, Floats]:
        fit = self.blocks.fit(scores)
        pooled = fit.variances @ self.blocks.level_freedom / self.blocks.freedom
        scale = np.sqrt(pooled / len(self.blocks.present))[:, None]
        rise = fit.effects @ self.up.T / (scale * np.linalg.norm(self.up, axis=1))
        fall = fit.effects @ self.down.T / (scale * np.linalg.norm(self.down, axis=1))
        return rise, fall

    def is_peaked(self, tables: Floats) -> np.ndarray:
        """Of tables (B, S, L): (B,)."""
        rise, fall = self._t(tables)
        return np.minimum(rise, fall).max(axis=1) > self.critical


@lru_cache(maxsize=32)
def pooled_rule(seeds: int, distance: tuple[float, ...]) -> Pooled:
    """The pooled rule of a design, with its draws."""
    return Pooled(seeds, np.array(distance))


def is_peaked_by_seed(scores: Floats, distance: Floats, level: float = 0.95) -> bool:
    """Whether (S, L) scores rise to an inner level and fall from it, judged seed by seed."""
    seeds, levels = scores.shape
    others = (scores.sum(axis=0) - scores) / (seeds - 1)
    breaks = others.argmax(axis=1)
    if np.any((breaks == 0) | (breaks == levels - 1)):
        return False
    up, down = slope_contrasts(distance)
    rise = np.array([up[cut - 1] @ row for cut, row in zip(breaks, scores, strict=True)])
    fall = np.array([down[cut - 1] @ row for cut, row in zip(breaks, scores, strict=True)])
    return all(
        side.mean() > float(half_width(side.std(ddof=1), seeds, level=level))
        for side in (rise, fall)
    )
