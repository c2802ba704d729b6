"""Tests of nested models of configuration means, with seeds as blocks and unequal variances.

Letters: S seeds, C configurations, p columns of a model, r dimensions added by a model. A table of
scores is (..., S, C), NaN for a run that is missing; leading dimensions are independent tables with
the same missing runs.

The statistic is the ANOVA-type statistic of Brunner, Dette and Munk (Journal of the American
Statistical Association 92, 1997, 1494-1502) in weighted least squares: the sum of squares that a
model adds, divided by its expectation, with an F distribution whose degrees of freedom are Box's
approximation. The expectation comes from one error variance per configuration, with errors that are
independent within a seed, or from the covariance between seeds of what the model adds, for seeds
that each respond differently. The larger p value is used; nothing is tested before.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_RANK = 1e-9
_LEVEL_DECIMALS = 6
_MOST_LEVELS = 500
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True)
class Means:
    """Configuration means adjusted for the effects of seeds.

    means      (..., C), least-squares means.
    variances  (..., C), error variance of one run of each configuration.
    squares    (..., C), mean squares of the residuals, from which the variances are estimated.
    residuals  (..., S, C), 0 for a run that is missing.
    runs       (C,), runs of each configuration.
    """

    means: Floats
    variances: Floats
    squares: Floats
    residuals: Floats
    runs: Floats


def fit_blocks(scores: Floats) -> Means:
    """Means and error variances of configurations from scores (..., S, C), seeds as blocks.

    Least squares of score ~ seed + configuration. The variances are unbiased quadratic estimates
    from its residuals (approximate where runs are missing), at least 0. Raises ValueError for fewer
    than three configurations, for a configuration with fewer than two runs, and where seeds and
    configurations are not connected by runs.
    """
    here = np.isfinite(scores[(0,) * (scores.ndim - 2)]).astype(np.float64)
    runs, width = here.sum(axis=0), here.sum(axis=1)
    if len(runs) < 3 or runs.min() < 2 or width.min() < 1:
        raise ValueError("needs three configurations or more, each with two seeds or more")
    values = np.where(here > 0, scores, 0.0)
    seeds = _seed_effects(values, here)
    rest = (values - seeds[..., None]) * here
    means = rest.sum(axis=-2) / runs
    # rounded, so that the variance of equal scores is 0 and not a rounding error
    rest = np.round((rest - means[..., None, :]) * here, 9)
    squares = np.asarray((rest**2).sum(axis=-2) / (runs - 1))
    return Means(means, _variances(squares, float(width.mean())), squares, rest, runs)


def _seed_effects(values: Floats, here: Floats) -> Floats:
    """Effects of the seeds (..., S), with mean 0, from the equations reduced for configurations."""
    runs = here.sum(axis=0)
    information = np.diag(here.sum(axis=1)) - (here / runs) @ here.T
    # the effects sum to 0: in a connected design only the constant is not identified
    information += 1 / len(information)
    if np.linalg.matrix_rank(information, hermitian=True) < len(information):
        raise ValueError("some configurations share no seed with the others")
    means = values.sum(axis=-2) / runs
    right = ((values - means[..., None, :]) * here).sum(axis=-1)
    return np.asarray(np.linalg.solve(information, right[..., None])[..., 0])


def _variances(squares: Floats, width: float) -> Floats:
    """Error variances, corrected for the share of a seed's other errors in a squared residual."""
    mean = squares.mean(axis=-1, keepdims=True) / (1 - 1 / width)
    return np.asarray(np.maximum((squares - mean / width) / (1 - 2 / width), 0.0))


def smooth(values: Floats, freedom: int) -> Floats:
    """Columns (C, p) of a smooth curve in `values` (C,), p at most freedom + 1 with the constant.

    With at most freedom + 1 distinct values there is an indicator for each. With more it is a
    natural cubic spline with knots at the centres of clusters of values (complete linkage).
    """
    rounded = np.round(values, _LEVEL_DECIMALS)
    levels = np.unique(rounded)
    if len(levels) <= freedom + 1:
        return np.asarray(rounded[:, None] == levels, dtype=np.float64)
    if freedom < 2:
        return np.column_stack([np.ones_like(values), values])
    step = -(-len(levels) // _MOST_LEVELS)
    inner = levels[::step]
    trees = scipy.cluster.hierarchy
    labels = trees.fcluster(trees.linkage(inner[:, None], "complete"), freedom + 1, "maxclust")
    knots = np.sort([inner[labels == label].mean() for label in np.unique(labels)])
    knots[0], knots[-1] = levels[0], levels[-1]
    return np.asarray(
        scipy.interpolate.CubicSpline(knots, np.eye(len(knots)), bc_type="natural")(values)
    )


def added_space(base: Floats, added: Floats) -> Floats:
    """Orthonormal basis (C, r) of `added` (C, p) orthogonal to `base` (C, q); r may be 0."""
    space = _orthonormal(base)
    return _orthonormal(added - space @ (space.T @ added), float(np.abs(added).max()))


def _orthonormal(columns: Floats, scale: float = 1.0) -> Floats:
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > _RANK * max(1.0, scale)])


def explained_share(means: Floats, columns: Floats) -> float:
    """R²: share of the variance between the means (C,) that the columns (C, p) explain."""
    space = added_space(np.ones((len(means), 1)), columns)
    total = float(((means - means.mean()) ** 2).sum())
    return float(((means @ space) ** 2).sum()) / total if total > 0 else float("nan")


def model_weights(fit: Means, columns: Floats) -> Floats:
    """Weights of the means (..., C): runs divided by the variance that a log-linear model predicts.

    columns  (C, p), covariates of the logarithm of the error variance.

    The variance estimate of a configuration has little influence on its weight, so that an estimate
    that is small by chance does not give a large weight. Weights are equal if all variances are 0.
    """
    largest = fit.squares.max(axis=-1, keepdims=True)
    floor = np.where(largest > 0, _LEAST_VARIANCE * largest, 1.0)
    logs = np.log(np.maximum(fit.squares, floor))
    space = _orthonormal(columns)
    return np.asarray(fit.runs / np.exp(logs @ space @ space.T))


def p_added(fit: Means, base: Floats, added: Floats, weights: Floats) -> Floats:
    """p values (...,) of the hypothesis that the means follow `base` (C, q) without `added` (C, p).

    weights  (..., C), as from `model_weights`: the test is valid for any weights; weights near the
             inverse variances have more power.

    The sum of squares that `added` explains in weighted least squares is divided by its expectation
    under the error variances of the configurations, and by that under the covariance between seeds.
    The degrees of freedom are Box's f in the numerator, and in the denominator (1 + f)/2 times the
    mean degrees of freedom of the configurations; with f times, simulated error rates reached 7 %
    at a nominal 5 % where one configuration had most of the variance. Between seeds they are f
    times those of the seeds. NaN where nothing is added; 0 or 1 if all variances are 0. A missing
    run only reduces the number of runs of its configuration.
    """
    null, extra = _orthonormal(base), added_space(base, added)
    if not extra.shape[1]:
        return np.full(fit.means.shape[:-1], np.nan)
    root = np.sqrt(weights)[..., None]
    inside, _ = np.linalg.qr(root * null)
    outside = root * extra
    space, _ = np.linalg.qr(outside - inside @ (np.swapaxes(inside, -1, -2) @ outside))
    observed = (np.einsum("...i,...ir->...r", root[..., 0] * fit.means, space) ** 2).sum(axis=-1)
    scaled = weights * fit.variances / fit.runs
    independent = np.einsum("...ir,...i,...is->...rs", space, scaled, space)
    freedom = (fit.runs - 1).mean()
    p_value = _anova_type(observed, independent, lambda upper: (1 + upper) / 2 * freedom)
    seeds = fit.residuals.shape[-2]
    single = fit.residuals * (root[..., 0] / fit.runs)[..., None, :] @ space
    between = np.swapaxes(single, -1, -2) @ single * (seeds / (seeds - 1))
    return np.maximum(p_value, _anova_type(observed, between, lambda upper: upper * (seeds - 1)))


def _anova_type(observed: Floats, covariance: Floats, lower: Callable[[Floats], Floats]) -> Floats:
    """p values of sums of squares (...,) whose terms have a covariance (..., r, r).

    lower  the degrees of freedom of the denominator, from Box's f of the numerator.
    """
    expected = np.trace(covariance, axis1=-2, axis2=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = expected**2 / (covariance**2).sum(axis=(-2, -1))
        p_value = scipy.special.fdtrc(upper, lower(upper), observed / expected)
    return np.where(expected > 0, p_value, np.where(observed > _RANK, 0.0, 1.0))
