"""Cosines of random pairs on a spherical cap: why random negatives are rarely hard negatives.

Two points are drawn uniformly from the unit sphere's points within an angle ω of an axis, in d
dimensions. With φ and φ' their angles to the axis and β that between their directions across it,

    cos θ = cos φ cos φ' + sin φ sin φ' cos β,

where φ and φ' have a density ∝ sin^(d−2) on 0 to ω, and β one ∝ sin^(d−3) on 0 to π. Source:
MixCSE (Zhang et al., AAAI 2022), which mixes negatives for this reason. Angles are in radians, in
the table of `compute_spherical_cap` in degrees.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import beta, betainc, hyp2f1

from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.trace import check_range

DIMENSIONS = (4, 8, 16, 32, 64, 128, 256, 768)
ANGLES = (30, 60, 90)
MIXING_WEIGHT = 0.2
"""The weight of the positive in MixCSE's mixed negatives, λ."""

_NEAR_RIGHT = 0.99


def cap_cosine_moments(dimension: ArrayLike, angle: ArrayLike) -> tuple[Floats, Floats]:
    """Mean and variance of cos θ, in closed form, for dimensions d and angles ω that broadcast.

    β is independent of the two heights and symmetric, so the mean is m², m = E cos φ, and the
    variance (1 − s)² + s² / (d − 1) − m⁴, s = E sin² φ; both follow from the incomplete integral of
    sin^(d−2). Raises ValueError for a dimension below 3 or an angle outside 0 to π.
    """
    d, omega = _checked(dimension, angle)
    height = _mean_height(d, omega)
    across = (d - 1) / d * (1 - height * np.cos(omega))
    mean = height**2
    variance = (1 - across) ** 2 + across**2 / (d - 1) - mean**2
    return mean, np.maximum(variance, 0.0)


def simulate_cap_cosines(
    dimension: int, angle: float, pairs: int, random: np.random.Generator
) -> Floats:
    """cos θ (pairs,) of pairs of random points, exact up to rounding.

    Raises ValueError for a dimension below 3, an angle outside 0 to π, or less than one pair.
    """
    _checked(dimension, angle)
    if pairs < 1:
        raise ValueError(f"pairs is {pairs}; it must be at least 1")
    first, second = _heights(dimension, angle, 2 * pairs, random).reshape(2, pairs)
    turn = random.standard_normal(pairs)
    turn /= np.sqrt(turn**2 + random.chisquare(dimension - 2, pairs))
    return np.asarray(first * second + np.sqrt((1 - first**2) * (1 - second**2)) * turn)


def compute_spherical_cap(
    dimensions: Sequence[int] = DIMENSIONS, angles: Sequence[float] = ANGLES, *, pairs: int = 20_000
) -> pd.DataFrame:
    """Mean and standard deviation of cos θ, in closed form and simulated, by angle and dimension.

    Columns: angle (degrees), dimension; mean, std of cos θ; simulated_mean, simulated_std over
    `pairs` random pairs; mixed, the cosine of a sentence's vector h and its mixed negative
    λ h + (1 − λ) v, λ 0.2, where v is a random negative at the mean cosine.
    Raises ValueError for a dimension, angle or number of pairs outside its range.
    """
    random, weight, rest = np.random.default_rng(0), MIXING_WEIGHT, 1 - MIXING_WEIGHT
    table = pd.DataFrame(product(angles, dimensions), columns=["angle", "dimension"])
    omega = np.radians(table["angle"].astype("float64"))
    mean, variance = cap_cosine_moments(table["dimension"], omega)
    drawn = [
        simulate_cap_cosines(dimension, angle, pairs, random)
        for dimension, angle in zip(table["dimension"], omega, strict=True)
    ]
    norm = np.sqrt(weight**2 + rest**2 + 2 * weight * rest * mean)
    return table.assign(
        mean=mean,
        std=np.sqrt(variance),
        simulated_mean=[cosines.mean() for cosines in drawn],
        simulated_std=[cosines.std() for cosines in drawn],
        mixed=(weight + rest * mean) / norm,
        pairs=pairs,
    )


def _checked(dimension: ArrayLike, angle: ArrayLike) -> tuple[Floats, Floats]:
    d, omega = check_range("dimension", dimension, 3), np.asarray(angle, dtype=np.float64)
    wrong = ~((omega > 0) & (omega <= np.pi))
    if wrong.any():
        raise ValueError(f"angle is {omega[wrong].flat[0]:g}; it must be above 0 and at most pi")
    return d, omega


def _mean_height(d: Floats, omega: Floats) -> Floats:
    """The mean of cos φ: sin^(d−1) ω / ((d − 1) A), A the integral of sin^(d−2) from 0 to ω.

    Up to a right angle (d − 1) A = sin^(d−1) ω · 2F1(1/2, (d−1)/2; (d+1)/2; sin² ω): the power
    cancels, which avoids underflow. Near a right angle, where 2F1 loses precision, the incomplete
    beta function is used. Beyond it A is the integral to π less that to π − ω.
    """
    acute = np.minimum(omega, np.pi - omega)
    square, half, whole = np.sin(acute) ** 2, (d - 1) / 2, beta((d - 1) / 2, 0.5)
    far = 1 / hyp2f1(0.5, half, half + 1, np.minimum(square, _NEAR_RIGHT))
    near = np.maximum(square, _NEAR_RIGHT)
    near = near**half / half / (whole * betainc(half, 0.5, near))
    height = np.where(square < _NEAR_RIGHT, far, near)
    power = square**half / (d - 1)
    beyond = power / (whole - power / height)
    return np.asarray(np.where(omega <= np.pi / 2, height, beyond))


def _heights(dimension: int, angle: float, count: int, random: np.random.Generator) -> Floats:
    """cos φ (count,) of points on the cap: density ∝ (1 − x²)^((d−3)/2) on cos ω to 1.

    They are drawn by rejection sampling: from the whole sphere where the cap is a large part of it,
    else from an exponential density, which is tangent to the log density at the rim and above it by
    concavity.
    """
    rim, power, heights = float(np.cos(angle)), (dimension - 3) / 2, np.empty(0)
    while len(heights) < count:
        if rim < 1 / np.sqrt(dimension):
            x = random.standard_normal(count)
            x /= np.sqrt(x**2 + random.chisquare(dimension - 1, count))
            accepted = x >= rim
        else:
            slope = 2 * power * rim / (1 - rim**2)
            share, top = random.random(count), 1 - rim
            # slope 0: the density is uniform in three dimensions
            above = -np.log1p(share * np.expm1(-slope * top)) / slope if slope else share * top
            x = rim + above
            ratio = power * np.log((1 - x**2) / (1 - rim**2)) + slope * above
            accepted = np.log1p(-random.random(count)) < ratio
        heights = np.concatenate([heights, x[accepted]])
    return heights[:count]
