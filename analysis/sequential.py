"""Nominal significance levels of a test that is repeated while data accumulate.

Alpha spending (Lan and DeMets, Biometrika 1983): a function of the information fraction t in (0, 1]
gives the part of the error probability alpha that is spent up to t. The critical value of look k is
chosen so that z statistics with cov(Z_i, Z_j) = sqrt(t_i / t_j), i <= j, first exceed their
critical value at look k with the probability that is spent at that look (Armitage, McPherson and
Rowe, JRSS A 1969). `nominal` is its tail probability, with which the p value of look k is compared
(the significance-level approach): exact for normal statistics, approximate for others.

Letters: K looks, G nodes of the integration.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
Spending = Literal["obrien-fleming", "pocock", "linear"]
Sides = Literal[1, 2]

_NODES = 400
_WIDEST = 9.0
"""Standard deviations beyond which the density of a statistic is set to 0."""
_LEAST = 1e-16
"""Smaller probabilities are not spent: the critical value is infinite."""


@dataclass(frozen=True)
class Boundaries:
    """Critical values and significance levels of K looks.

    fractions   information fraction of each look, (K,), the last at most 1.
    cumulative  error probability spent up to each look, (K,).
    critical    critical value of a z statistic (of its absolute value if two-sided), (K,).
    nominal     p value at or below which a look is significant, (K,); 0 where nothing is spent.
    """

    fractions: Floats
    cumulative: Floats
    critical: Floats
    nominal: Floats


def spend(fractions: ArrayLike, alpha: float, spending: Spending = "obrien-fleming") -> Floats:
    """Error probability spent up to each information fraction, of a one-sided alpha.

    obrien-fleming  2 - 2 Phi(z(1 - alpha / 2) / sqrt(t)): little at the first looks.
    pocock          alpha log(1 + (e - 1) t): about the same at every look.
    linear          alpha t (Kim and DeMets, Biometrika 1987, with the power 1): between the two.
    """
    t = np.minimum(np.asarray(fractions, dtype=np.float64), 1.0)
    if spending == "pocock":
        return np.asarray(alpha * np.log1p((np.e - 1) * t), dtype=np.float64)
    if spending == "linear":
        return alpha * t
    quantile = special.ndtri(1 - alpha / 2)
    return np.asarray(2 * special.ndtr(-quantile / np.sqrt(t)), dtype=np.float64)


def compute_boundaries(
    fractions: ArrayLike,
    alpha: float = 0.05,
    *,
    spending: Spending = "obrien-fleming",
    sides: Sides = 1,
) -> Boundaries:
    """Critical values and nominal significance levels of looks at the given fractions.

    sides  2 spends alpha / 2 on each side of a symmetric test.

    Stopping for futility is non-binding: alpha holds whether or not a study stops for it. Raises
    ValueError for fractions that do not rise within
    (0, 1] and for an alpha outside (0, 0.5].
    """
    t = np.asarray(fractions, dtype=np.float64)
    if t.ndim != 1 or not t.size or t[0] <= 0 or t[-1] > 1 or np.any(np.diff(t) <= 0):
        raise ValueError(f"information fractions {t}: they must rise, above 0 and at most to 1")
    if not 0 < alpha <= 0.5:
        raise ValueError(f"alpha is {alpha:g}; it must be above 0 and at most 0.5")
    one_side = spend(t, alpha / sides, spending)
    critical = _critical_values(t, np.diff(one_side, prepend=0.0), two_sided=sides == 2)
    nominal = sides * special.ndtr(-critical)
    return Boundaries(t, sides * one_side, critical, np.asarray(nominal, dtype=np.float64))


def _critical_values(t: Floats, spent: Floats, *, two_sided: bool) -> Floats:
    """Critical values (K,) whose first crossing at look k, on one side, has probability spent[k].

    The density of S = Z sqrt(t) of the paths that have not crossed is integrated from look to look
    on G Gauss-Legendre nodes.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    critical = np.full(len(t), np.inf)
    points, mass = np.zeros(1), np.ones(1)
    before = 0.0
    for look, (now, share) in enumerate(zip(t, spent, strict=True)):
        step = np.sqrt(now - before)
        if share > _LEAST:
            critical[look] = _solve(points, mass, step, np.sqrt(now), share)
        scale = np.sqrt(now)
        high = min(critical[look], _WIDEST) * scale
        low = -high if two_sided else -_WIDEST * scale
        middle, half = (high + low) / 2, (high - low) / 2
        reached = middle + half * nodes
        density = np.exp(-0.5 * ((reached[:, None] - points) / step) ** 2) @ mass
        points, mass = reached, half * weights * density / (step * np.sqrt(2 * np.pi))
        before = now
    return critical


def _solve(points: Floats, mass: Floats, step: float, scale: float, share: float) -> float:
    """The critical value of z that paths at `points` exceed with probability `share`."""

    def excess(z: float) -> float:
        tail = special.ndtr((points - z * scale) / step)
        return float(np.log(max(float(mass @ tail), 1e-300)) - np.log(share))

    return float(scipy.optimize.brentq(excess, -_WIDEST, 40.0, xtol=1e-10))
