"""Models of the errors that simulated studies have, each with residual standard deviation 1.

Letters: B simulated studies, S seeds, L levels.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from mtdlab.analysis.measures import Floats

Draw = Callable[[np.random.Generator, int, int, Floats], Floats]
"""Errors (B, S, L) from a generator, B, S and the places (L,) of the levels, from -1 to 1."""
_LOST = 15.0
MEASURED = pd.read_csv(Path(__file__).with_name("measured_covariances.csv"))
"""Covariance of the residuals of 8 seeds at 7 levels, of four studies of the built-in data."""


def _independent(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
    return rng.standard_normal((tables, seeds, len(place)))


def _noisy(level: int) -> Draw:
    def draw(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
        errors = _independent(rng, tables, seeds, place)
        errors[..., level] *= 4  # as measured without in-batch negatives
        return errors

    return draw


def _collapsed(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
    """One run in ten collapses at any level."""
    errors = _independent(rng, tables, seeds, place)
    return np.asarray(errors - _LOST * (rng.random(errors.shape) < 0.1))


def _collapsed_at_the_end(
    rng: np.random.Generator, tables: int, seeds: int, place: Floats
) -> Floats:
    """One run in five collapses at the last level, whose mean is as if none did."""
    errors = _independent(rng, tables, seeds, place)
    errors[..., -1] += 0.2 * _LOST - _LOST * (rng.random((tables, seeds)) < 0.2)
    return errors


def _autoregressive(correlation: float) -> Draw:
    def draw(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
        steps = np.arange(len(place))
        covariance = correlation ** np.abs(np.subtract.outer(steps, steps))
        return _independent(rng, tables, seeds, place) @ np.linalg.cholesky(covariance).T

    return draw


def _curves(slope: float, curvature: float = 0.0) -> Draw:
    """Seeds with slopes and curvatures of their own, of these standard deviations."""

    def draw(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
        line, bend = _standard(place), _standard(place**2)
        own = rng.standard_normal((2, tables, seeds, 1))
        errors = _independent(rng, tables, seeds, place)
        return np.asarray(errors + slope * own[0] * line + curvature * own[1] * bend)

    return draw


def _bimodal(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
    """Half of the seeds rise, half of them fall."""
    sign = rng.choice([-1.0, 1.0], size=(tables, seeds, 1))
    return np.asarray(_independent(rng, tables, seeds, place) + 2 * sign * _standard(place))


def _measured(study: str) -> Draw:
    """Normal errors with the covariance of a study's residuals, interpolated in log MTD."""
    chosen = MEASURED[MEASURED["study"] == study]
    logs = np.log(chosen["mtd"].to_numpy(dtype=np.float64))
    covariance = chosen.drop(columns=["study", "mtd"]).to_numpy(dtype=np.float64)
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0) / np.diag(covariance).mean())

    def draw(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
        points = logs[0] + (place + 1) / 2 * (logs[-1] - logs[0])
        weights = np.array([np.interp(points, logs, unit) for unit in np.eye(len(logs))]).T
        drawn = rng.standard_normal((tables, seeds, len(logs)))
        return np.asarray(drawn @ (weights @ factor).T)

    return draw


def _skewed(slope: float) -> Draw:
    """Seeds with slopes of their own, of this standard deviation, whose distribution is skewed."""

    def draw(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
        own = rng.exponential(size=(tables, seeds, 1)) - 1
        errors = _independent(rng, tables, seeds, place)
        return np.asarray(errors + slope * own * _standard(place))

    return draw


def _skewed_level(level: int) -> Draw:
    """One level has exponential errors, three times as large as those of the others."""

    def draw(rng: np.random.Generator, tables: int, seeds: int, place: Floats) -> Floats:
        errors = _independent(rng, tables, seeds, place)
        errors[..., level] = 3 * (1 - rng.exponential(size=(tables, seeds)))
        return errors

    return draw


def _standard(values: Floats) -> Floats:
    return np.asarray((values - values.mean()) / values.std())


ERRORS: Mapping[str, Draw] = {
    "independent": _independent,
    "noisy first level": _noisy(0),
    "10 % collapsed": _collapsed,
    "AR(1) 0.5": _autoregressive(0.5),
    "AR(1) 0.9": _autoregressive(0.9),
    "slopes of 1": _curves(1),
    "slopes of 3": _curves(3),
    "slopes and curvatures of 1": _curves(1, 1),
    "slopes and curvatures of 3": _curves(3, 3),
    **{f"as measured, {study}": _measured(study) for study in MEASURED["study"].unique()},
    "half of the seeds rise, half fall": _bimodal,
    "20 % collapsed at the last level": _collapsed_at_the_end,
}
SKEWED: Mapping[str, Draw] = {
    **{f"skewed slopes of {size}": _skewed(size) for size in (1, 3)},
    **{f"skewed {name} level": _skewed_level(at) for name, at in (("first", 0), ("last", -1))},
}
"""Errors that are not symmetric, as where few seeds do much better or worse than the others."""
FEW_SEEDS_CANNOT_SHOW = ("half of the seeds rise, half fall", "20 % collapsed at the last level")
"""Errors whose rate of false verdicts is stated and not bounded."""
