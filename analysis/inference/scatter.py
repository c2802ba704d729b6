"""How seeds and evaluation items make differences between levels of MTD scatter.

Power is computed from two covariances: that of a seed's errors between levels, and that of the
levels' effects due to the evaluation items, which all seeds share. Both are taken from runs of the
study where there are any, and are assumed otherwise. Letters: L levels, D polynomials in log MTD.
"""

from dataclasses import dataclass, replace

import numpy as np

from mtdlab.analysis.inference.blocks import Blocks, polynomials
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.measures import Floats

ASSUMED_DEVIATION = 1.5
"""Residual standard deviation in points where none was measured. The built-in studies have 0.9 to
2.0 at most levels."""
ASSUMED_CURVES = (0.4, 0.2)
"""Shares of the residual variance that are a seed's own slope and curvature over log MTD where none
were measured; the rest is independent from level to level. Means of the four studies in
`tests/evidence/measured_covariances.csv`: 0.37 and 0.24."""
ASSUMED_OF_ITEMS = 21.0
"""Standard error of a difference between two levels, of Spearman's correlation x 100, that one pair
would have, where no items were recorded; of P pairs it is the root of P times smaller. Root mean
square over pairs of levels. On the built-in data, three studies of 3, 6 and 7 levels have 26, 16
and 21."""
ASSUMED_CURVES_OF_ITEMS = (0.65, 0.15)
"""The same shares of the variance due to the items; two of these studies have 0.74 and 0.11, 0.57
and 0.13."""
INDEPENDENT = (0.0, 0.0)
"""The same shares where columns are independent."""
_LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Curves:
    """A covariance of a slope and a curvature over log MTD, and of errors independent by level.

    Attributes:
        places: log MTD of the levels of a design, (L,).
        curves: covariance of the coefficients of their orthonormal polynomials, (D, D).
        rest: variance of the independent errors.
        factors: (L,) by which a level's standard deviation is larger than these imply.
    """

    places: Floats
    curves: Floats
    rest: float
    factors: Floats

    def at(self, distance: Floats) -> Floats:
        """The covariance (L, L) at any levels, in steps; outside the design that of the nearest."""
        points = np.clip(np.log(distance), self.places[0], self.places[-1])
        basis = polynomials(self.places, points)
        factors = np.interp(points, self.places, self.factors)
        covariance = basis.T @ self.curves @ basis + self.rest * np.eye(len(points))
        return np.asarray(covariance * np.outer(factors, factors), dtype=np.float64)

    def scaled(self, variance: float) -> "Curves":
        """These curves, scaled to this `difference_variance` at the levels of the design."""
        share = variance / max(difference_variance(self.at(np.exp(self.places))), _LEAST_VARIANCE)
        return replace(self, factors=np.sqrt(share) * self.factors)


@dataclass(frozen=True)
class Interpolated:
    """A covariance (L, L) estimated at some levels and interpolated linearly in log MTD."""

    distance: Floats
    covariance: Floats

    def at(self, distance: Floats) -> Floats:
        known, points = np.log(self.distance), np.log(distance)
        weights = np.array([np.interp(points, known, unit) for unit in np.eye(len(known))]).T
        return np.asarray(weights @ self.covariance @ weights.T, dtype=np.float64)


Covariance = Curves | Interpolated
"""A covariance between levels of MTD, in points squared, that is known at any levels."""


@dataclass(frozen=True)
class Scatter:
    """The two sources of variation of scores: errors of runs, and evaluation items.

    Attributes:
        errors: covariance of the errors of one seed's runs, without what they have in common.
        items: covariance of the levels' effects due to the evaluation items; None: not counted.
        count: how many items these are; 0 where they are not counted.
        ordered: whether it is between levels of MTD; else between configurations, at the places
            from 1 in the place of levels.
    """

    errors: Covariance
    items: Covariance | None = None
    count: int = 0
    ordered: bool = True


def difference_variance(covariance: Floats) -> float:
    """Half of the mean variance of a difference between two levels, of an (L, L) covariance.

    Where errors are independent and equal it is their variance: the residual variance.
    """
    levels = len(covariance)
    return float((np.trace(covariance) - covariance.sum() / levels) / (levels - 1))


def assume(distance: Floats, shares: tuple[float, float], variance: float) -> Curves:
    """Curves with a `difference_variance` at the levels of a design, (L,) in steps.

    `shares` are those of slope and curvature in the variance at a level; coefficients are those of
    all levels.
    """
    places, levels = np.log(distance), len(distance)
    curves = levels * np.diag(shares[: len(polynomials(places))])
    return Curves(places, curves, 1 - sum(shares), np.ones(levels)).scaled(variance)


def assume_scatter(
    distance: Floats, deviation: float | None = None, items: int = 0, *, ordered: bool = True
) -> Scatter:
    """What is assumed at the levels of a design, (L,), or between as many configurations.

    Args:
        deviation: residual standard deviation of a run in points; None: `ASSUMED_DEVIATION`.
        items: how many pairs the score, Spearman's correlation x 100, is computed from; 0: they are
            not counted.
        ordered: as in `Scatter`; what configurations have of their own is independent.
    """
    of_errors, of_items = INDEPENDENT, INDEPENDENT
    if ordered:
        of_errors, of_items = ASSUMED_CURVES, ASSUMED_CURVES_OF_ITEMS
    errors, assumed = assume(distance, of_errors, (deviation or ASSUMED_DEVIATION) ** 2), None
    if items:
        assumed = assume(distance, of_items, ASSUMED_OF_ITEMS**2 / 2 / items)
    return Scatter(errors, assumed, items, ordered)


def estimate_scatter(levels: LevelScores, deviation: float | None = None) -> Scatter:
    """How comparable scores scatter over seeds and the evaluation items that they count.

    Items are not counted where seeds scatter so much that the estimated share of items is 0.

    `deviation`: a residual standard deviation in points in place of that of the scores.
    """
    items, covariance = None, levels.covariance
    if covariance is not None and difference_variance(covariance) > _LEAST_VARIANCE:
        items = Interpolated(levels.distance, covariance)
    if levels.ordered:
        errors = estimate_errors(levels)
    else:
        # the variance of an error is that of all columns: few seeds tell them not apart
        blocks = Blocks(np.isfinite(levels.scores))
        pooled = float(levels.fit.variances @ blocks.level_freedom / blocks.freedom)
        errors = assume(levels.distance, INDEPENDENT, pooled)
    if deviation:
        errors = errors.scaled(deviation**2)
    return Scatter(errors, items, levels.items if items else 0, levels.ordered)


def estimate_errors(levels: LevelScores) -> Curves:
    """The covariance of the errors of comparable scores; their variances by level differ."""
    places = np.log(levels.distance)
    blocks = Blocks(np.isfinite(levels.scores), places)
    fit = blocks.fit(levels.scores)
    alike = Curves(places, fit.curves, float(fit.rest), np.ones(len(places)))
    # the variance of a residual, as `Fit.variances` has it of the runs
    covariance = alike.at(levels.distance)
    centred = covariance - covariance.mean(axis=0) - covariance.mean(axis=1)[:, None]
    expected = np.diag(centred + covariance.mean()) * len(places) / (len(places) - 1)
    factors = np.sqrt(fit.variances / np.maximum(expected, _LEAST_VARIANCE))
    by_level = replace(alike, factors=factors)
    return by_level.scaled(float(fit.variances @ blocks.level_freedom / blocks.freedom))
