"""Level means with bands, and tests on them where the single runs are not available.

Letters: L levels of MTD, B breaks (the inner levels), C contrasts, Q random vectors. A band is
assumed to be a 95 % interval of its mean: half its width divided by 1.96 is the standard error,
which is treated as known (z tests). Levels are assumed to be independent, since their seeds are
unknown. Sources: Simonsohn (2018, two lines), Cochran (1954, homogeneity), Hsu (1984, comparisons
with the best).
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from scipy import special

from analysis.published import load_curve

Floats = NDArray[np.float64]

LEVEL = 0.95
MOST_LEVELS = 100
_MOST_NUMBERS = 2**21
_PUBLISHED = {"figure2": ("figure2_mtd", "MoCoSE, figure 2")}


@dataclass(frozen=True)
class LevelMeans:
    """Means with bands.

    name   title of the page; source: the origin of the numbers, as a sentence.
    frame  mtd, mean, low, high, L rows in rising order of mtd.
    """

    name: str
    source: str
    frame: pd.DataFrame

    @property
    def distance(self) -> Floats:
        """The levels, (L,), in steps."""
        return self.frame["mtd"].to_numpy(dtype=np.float64)

    @property
    def means(self) -> Floats:
        """The means, (L,), in points."""
        return self.frame["mean"].to_numpy(dtype=np.float64)

    @property
    def errors(self) -> Floats:
        """The standard errors, (L,), if the bands are 95 % intervals."""
        half = (self.frame["high"] - self.frame["low"]).to_numpy(dtype=np.float64) / 2
        return np.asarray(half / quantile(1 - (1 - LEVEL) / 2))


def published_means() -> tuple[str, ...]:
    """The names that `load_published_means` knows."""
    return tuple(_PUBLISHED)


def load_published_means(name: str) -> LevelMeans:
    """The means of a published figure.

    Raises ValueError for a name that is not in `published_means()`.
    """
    if name not in _PUBLISHED:
        raise ValueError(f"unknown published means {name!r}; choose from {', '.join(_PUBLISHED)}")
    file, title = _PUBLISHED[name]
    source = f"Published values of {title}, read off the figure to about 0.03 points."
    return LevelMeans(title, source, load_curve(file)[["mtd", "mean", "low", "high"]])


def quantile(probability: float) -> float:
    """Quantile of the standard normal distribution."""
    return float(special.ndtri(probability))


def slope_contrast(distance: Floats, errors: Floats, first: int, last: int) -> Floats:
    """Weights (L,) of the means in the slope on log MTD over levels `first` to `last`, inclusive.

    Least squares weighted by 1/error^2; the weights of other levels are 0.
    """
    chosen = slice(first, last + 1)
    precision = 1 / errors[chosen] ** 2
    x = np.log(distance[chosen])
    centred = precision * (x - np.average(x, weights=precision))
    weights = np.zeros_like(errors)
    weights[chosen] = centred / (centred @ x)
    return weights


def z_values(contrasts: Floats, means: Floats, errors: Floats) -> Floats:
    """Contrasts (C, L) of the means (L,), each divided by its standard error: (C,)."""
    return np.asarray(contrasts @ means / np.linalg.norm(contrasts * errors, axis=1))


def largest_z(contrasts: Floats, errors: Floats, normal: Floats) -> Floats:
    """The largest z of the contrasts (C, L) for each of Q flat curves (Q, L), sorted: (Q,)."""
    scaled = contrasts * errors
    scaled = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.sort((normal @ scaled.T).max(axis=1))


def draw_normal(levels: int) -> Floats:
    """Quasi-random standard normal vectors, (Q, L), the same at every call.

    Q is 131,072 for up to 16 levels, fewer for more; critical values are accurate to about 0.005.
    """
    source = scipy.stats.qmc.MultivariateNormalQMC(np.zeros(levels), rng=np.random.default_rng(0))
    # the quasi-random sequence is balanced for powers of 2 only
    draws = 2 ** int(np.log2(_MOST_NUMBERS / max(levels, 16)))
    return np.asarray(source.random(draws), dtype=np.float64)


@dataclass(frozen=True)
class TwoLines:
    """Two-line test for a peak: one line rises up to a break, another falls from it.

    p       minimum over breaks of the larger p value of rise and fall, each adjusted for the
            choice of the break.
    mtd     that break; rise, fall: z of the slope up to it, and of the slope down from it.
    critical_rise, critical_fall  95 % quantiles of the largest z over all breaks for a flat curve.
    """

    p: float
    mtd: float
    rise: float
    fall: float
    critical_rise: float
    critical_fall: float


def compare_two_lines(data: LevelMeans, normal: Floats) -> TwoLines:
    """The two-line test with the break chosen among all inner levels; L >= 3.

    Both lines contain the break. For a curve that does not rise, the largest z of rise exceeds its
    critical value with probability 5 % at most (and likewise for the fall), so that the error rate
    of a peak is at most 5 %.
    """
    distance, means, errors = data.distance, data.means, data.errors
    last = len(means) - 1
    breaks = range(1, last)
    up = np.array([slope_contrast(distance, errors, 0, at) for at in breaks])
    down = -np.array([slope_contrast(distance, errors, at, last) for at in breaks])
    rise, fall = z_values(up, means, errors), z_values(down, means, errors)
    flat_rise, flat_fall = largest_z(up, errors, normal), largest_z(down, errors, normal)
    adjusted = np.maximum(_exceeding(flat_rise, rise), _exceeding(flat_fall, fall))
    # ties of the p value: the break whose smaller z is largest
    at = int(np.lexsort((-np.minimum(rise, fall), adjusted))[0])
    return TwoLines(
        float(adjusted[at]),
        float(distance[1 + at]),
        float(rise[at]),
        float(fall[at]),
        float(np.quantile(flat_rise, LEVEL)),
        float(np.quantile(flat_fall, LEVEL)),
    )


def _exceeding(ordered: Floats, values: Floats) -> Floats:
    """Share of the sorted simulated maxima (Q,) that are at least each of the values (B,)."""
    return np.asarray(1 - np.searchsorted(ordered, values) / len(ordered))


def equality_p(means: Floats, errors: Floats) -> float:
    """p value of the test that all means are equal: chi-square with L - 1 degrees of freedom."""
    weights = 1 / errors**2
    distance = means - np.average(means, weights=weights)
    return float(special.chdtrc(len(means) - 1, weights @ distance**2))


def find_best_levels(data: LevelMeans, normal: Floats) -> tuple[float, ...]:
    """The levels statistically indistinguishable from the best: a 95 % confidence set of the best.

    A level is left out if another exceeds it significantly, one-sided and adjusted for all
    comparisons with that level (Hsu 1984).
    """
    means, errors = data.means, data.errors
    kept = []
    for at, level in enumerate(data.distance):
        others = np.delete(np.eye(len(means)), at, axis=0) - np.eye(len(means))[at]
        critical = np.quantile(largest_z(others, errors, normal), LEVEL)
        if z_values(others, means, errors).max() <= critical:
            kept.append(float(level))
    return tuple(kept)
