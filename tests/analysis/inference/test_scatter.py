"""The covariance between levels that power is computed from."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.scatter import (
    ASSUMED_OF_ITEMS,
    Interpolated,
    assume_scatter,
    difference_variance,
    estimate_errors,
)

DISTANCE = np.array([5.0, 10, 20, 60, 200])


def differences(covariance: np.ndarray) -> list[float]:
    """The variance of the difference of each two levels."""
    pairs = combinations(range(len(covariance)), 2)
    return [covariance[i, i] + covariance[j, j] - 2 * covariance[i, j] for i, j in pairs]


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_what_is_assumed_has_the_stated_size(levels: int) -> None:
    distance = DISTANCE[:levels]
    scatter = assume_scatter(distance, 1.5, 900)
    errors = scatter.errors.at(distance)
    assert np.mean(differences(errors)) == pytest.approx(2 * 1.5**2)
    items = scatter.items.at(distance)
    assert np.sqrt(np.mean(differences(items))) == pytest.approx(ASSUMED_OF_ITEMS / 30)
    # levels that are further apart differ more in what items do to them
    assert differences(items)[0] <= differences(items)[levels - 2]


def test_a_design_is_the_same_process_at_other_levels() -> None:
    errors = assume_scatter(DISTANCE, 1.5).errors
    some = errors.at(DISTANCE[[0, 2, 4]])
    assert some == pytest.approx(errors.at(DISTANCE)[np.ix_([0, 2, 4], [0, 2, 4])])
    beyond = errors.at(np.array([1.0, 5.0, 200.0, 900.0]))
    assert beyond[0, 0] == pytest.approx(beyond[1, 1])
    assert beyond[3, 3] == pytest.approx(beyond[2, 2])


def simulated(errors: np.ndarray, seeds: int) -> LevelScores:
    rng = np.random.default_rng(0)
    scores = rng.multivariate_normal(np.arange(5.0), errors, seeds) + 9 * rng.normal(
        size=(seeds, 1)
    )
    return LevelScores(pd.DataFrame(scores, columns=DISTANCE))


def centre(covariance: np.ndarray) -> np.ndarray:
    levels = len(covariance)
    centring = np.eye(levels) - 1 / levels
    return np.asarray(centring @ covariance @ centring)


def test_curves_of_seeds_and_variances_by_level_are_found_again() -> None:
    """In errors that have slopes and curvatures, and twice the deviation at one level."""
    place = np.log(DISTANCE) - np.log(DISTANCE).mean()
    factor = np.diag([2.0, 1, 1, 1, 1])
    errors = factor @ (0.5 * np.outer(place, place) + np.eye(5)) @ factor
    found = centre(estimate_errors(simulated(errors, 2_000)).at(DISTANCE))
    assert np.diag(found) == pytest.approx(np.diag(centre(errors)), rel=0.2)
    correlation = np.corrcoef(found.ravel(), centre(errors).ravel())[0, 1]
    assert correlation > 0.97


def test_three_levels_have_the_covariance_of_the_residuals() -> None:
    scores = simulated(np.eye(5), 6).table[[5.0, 20.0, 200.0]]
    found = estimate_errors(LevelScores(scores)).at(np.array([5.0, 20, 200]))
    residuals = scores.sub(scores.mean(axis=1), axis=0)
    assert centre(found) == pytest.approx(np.cov(residuals, rowvar=False))


def test_between_levels_a_recorded_covariance_is_interpolated() -> None:
    known = Interpolated(np.array([10.0, 40.0]), np.array([[1.0, 0.5], [0.5, 3.0]]))
    found = known.at(np.array([10.0, 20.0, 90.0]))
    assert found[1, 1] == pytest.approx((1 + 2 * 0.5 + 3) / 4)
    assert found[0, 2] == pytest.approx(0.5)
    assert found[2, 2] == pytest.approx(3)


def test_the_variance_of_differences_is_that_of_all_pairs() -> None:
    covariance = np.cov(np.random.default_rng(0).normal(size=(5, 40)))
    assert 2 * difference_variance(covariance) == pytest.approx(np.mean(differences(covariance)))
