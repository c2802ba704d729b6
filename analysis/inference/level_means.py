"""Level means with bands, and their verdict where the single runs are not available.

Letters: L levels, K contrasts, B simulated curves. A band is assumed to be a 95 % interval of its
mean: half its width divided by 1.96 is the standard error, which is treated as known. Levels are
assumed to be independent, since their seeds are unknown. The tests are those of runs
(`analysis.inference.shapes`), with these standard errors in place of estimated ones.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import special

from analysis.data.defaults import MARGIN
from analysis.data.level_means import LEVEL, LevelMeans
from analysis.inference.blocks import Comparison, Contrasts, Fit
from analysis.inference.shapes import ShapeTests
from analysis.inference.verdict import Verdict, judge, write_sentence
from analysis.measures import Floats

_MEANS_DRAWN = 50_000
_KNOWN = 1e9
"""Degrees of freedom of a known standard error."""


@dataclass(frozen=True)
class KnownErrors:
    """Means with known standard errors (L,), as a model of the errors of contrasts."""

    errors: Floats

    def fit(self, scores: Floats, items: Floats | None = None) -> Fit:
        """The means (..., L) less their mean over levels."""
        effects = scores - scores.mean(axis=-1, keepdims=True)
        nothing = np.zeros((*effects.shape[:-1], 0, 0))
        variances = np.broadcast_to(self.errors**2, effects.shape)
        return Fit(effects, variances, variances.mean(axis=-1), nothing, 0 * effects[..., 0], items)

    def weigh(self, rows: Floats) -> Contrasts:
        """Contrasts of level effects: `rows` (K, L), each summing to 0."""
        return Contrasts(rows, rows**2, np.zeros((len(rows), 0, 0)), np.zeros(len(rows)))

    def compare(self, fit: Fit, contrasts: Contrasts) -> Comparison:
        """Estimates of contrasts with their known standard errors."""
        variance = fit.variances @ contrasts.squares.T
        known = [(variance, np.full_like(variance, _KNOWN))]
        return Comparison.of(fit.effects @ contrasts.rows.T, known, 0.0, _KNOWN)


class NullMeans:
    """Simulated curves without differences between levels."""

    def __init__(self, errors: KnownErrors) -> None:
        self.errors = errors
        self.definition: tuple[object, ...] = ("known errors", errors.errors)

    @cached_property
    def fits(self) -> tuple[Fit, ...]:
        """A fit of 50,000 curves; the random seed is fixed."""
        noise = np.random.default_rng(0).standard_normal((_MEANS_DRAWN, len(self.errors.errors)))
        return (self.errors.fit(noise * self.errors.errors),)


@dataclass(frozen=True)
class MeansVerdict:
    """The verdict on level means, and whether the levels differ at all.

    Attributes:
        p_equal: of the test that all means are equal (Cochran 1954).
        left_out: the level whose removal gives the largest such p value, p_left_out: that p value.
    """

    verdict: Verdict
    p_equal: float
    left_out: float
    p_left_out: float


def judge_means(data: LevelMeans, *, margin: float = MARGIN) -> MeansVerdict:
    """The shape of the means, at 95 % confidence, by the rules for runs
    (`analysis.inference.verdict`).

    Args:
        margin: points below which a difference is treated as no difference.

    Raises:
        ValueError: for fewer than 3 levels or a margin that is not above 0.
    """
    if len(data.frame) < 3:
        raise ValueError(f"{len(data.frame)} levels; a shape needs at least 3")
    if not margin > 0:
        raise ValueError(f"margin is {margin:g}; it must be above 0 points")
    distance, means, errors = data.distance, data.means, data.errors
    tests = ShapeTests(NullMeans(KnownErrors(errors)), distance)
    found = Verdict(
        "inconclusive",
        levels=len(means),
        levels_run=len(means),
        first=float(distance[0]),
        last=float(distance[-1]),
        level=LEVEL,
        margin=margin,
        known_errors=True,
    )
    found = judge(found, tests, tests.fit(means))
    without = [equality_p(np.delete(means, at), np.delete(errors, at)) for at in range(len(means))]
    return MeansVerdict(
        replace(found, sentence=write_sentence(found)),
        equality_p(means, errors),
        float(distance[int(np.argmax(without))]),
        max(without),
    )


def equality_p(means: Floats, errors: Floats) -> float:
    """p value of the test that all means are equal: chi-square with L - 1 degrees of freedom."""
    weights = 1 / errors**2
    distance = means - np.average(means, weights=weights)
    return float(special.chdtrc(len(means) - 1, weights @ distance**2))
