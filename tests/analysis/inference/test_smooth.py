"""The smooth curve through the levels and its band."""

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.inference.pairing import (
    LevelScores,
    compute_smooth,
    natural_spline,
    place_knots,
)

DISTANCE = np.geomspace(5, 200, 7)


def levels_of(scores: np.ndarray) -> LevelScores:
    return LevelScores(pd.DataFrame(scores, columns=DISTANCE[: scores.shape[1]]))


def test_the_basis_interpolates_and_is_linear_at_its_ends() -> None:
    knots = np.array([0.0, 1.0, 3.0, 4.0])
    np.testing.assert_allclose(natural_spline(knots, knots), np.eye(4), atol=1e-12)
    points = np.linspace(0, 4, 50)
    basis = natural_spline(knots, points)
    np.testing.assert_allclose(basis.sum(axis=1), 1)
    np.testing.assert_allclose(basis @ (2 * knots - 1), 2 * points - 1)
    step = 1e-3
    for end in (0.0, 4.0 - 2 * step):
        values = natural_spline(knots, np.array([end, end + step, end + 2 * step]))
        assert np.abs(np.diff(values, 2, axis=0)).max() / step**2 < 0.01


def test_knots_are_fewer_than_the_levels() -> None:
    assert len(place_knots(np.log(DISTANCE))) == 5
    assert len(place_knots(np.log(DISTANCE[:4]))) == 3
    assert place_knots(np.array([1.0, 1.0, 2.0])).tolist() == [1, 2]


def test_a_curve_that_a_spline_can_follow_is_followed() -> None:
    truth = 3 * np.log(DISTANCE)
    scores = truth + np.array([[1.0], [5.0], [-2.0]])
    curve = compute_smooth(levels_of(scores))
    expected = 3 * np.log(curve["mtd"]) - truth.mean()
    np.testing.assert_allclose(curve["mean"], expected, atol=1e-9)
    assert (curve["mtd"].iloc[0], curve["mtd"].iloc[-1]) == pytest.approx((5, 200))


@pytest.mark.slow
def test_the_band_holds_for_the_whole_curve() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(200):
        curve = compute_smooth(levels_of(rng.normal(size=(4, 7))))
        held += bool((curve["low"] < 0).all() and (curve["high"] > 0).all())
    assert held >= 0.9 * 200


def test_too_few_levels_or_seeds_give_no_rows() -> None:
    for shape in ((3, 3), (1, 7), (0, 0)):
        curve = compute_smooth(levels_of(np.zeros(shape)))
        assert curve.empty
        assert list(curve) == ["mtd", "mean", "low", "high"]
