"""Tests of nested models: means and variances with seeds as blocks, curves, p values."""

import statistics

import numpy as np
import pytest
from scipy import stats

from mtdlab.analysis.statistics.sufficiency import (
    added_space,
    explained_share,
    fit_blocks,
    model_weights,
    p_added,
    smooth,
)

_ = np.nan


def test_means_are_adjusted_for_seed_effects_also_with_missing_runs() -> None:
    means = np.array([3.0, 5.0, 4.0, 9.0])
    scores = means + np.array([[10.0], [-4.0], [0.0]])
    scores[0, 1] = scores[2, 3] = np.nan
    fit = fit_blocks(scores)
    assert fit.means - fit.means[0] == pytest.approx(means - 3)
    assert fit.runs.tolist() == [3, 2, 3, 2]
    assert fit.variances == pytest.approx(np.zeros(4), abs=1e-12)


def test_missing_runs_give_least_squares_means() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(4, 5))
    scores[0, 1] = scores[3, 4] = np.nan
    rows, columns = np.nonzero(np.isfinite(scores))
    design = np.hstack([np.eye(4)[rows], np.eye(5)[columns]])
    expected = np.linalg.lstsq(design, scores[rows, columns], rcond=None)[0][4:]
    found = fit_blocks(scores).means
    assert found - found[0] == pytest.approx(expected - expected[0])


def test_variances_are_unbiased_for_each_configuration() -> None:
    rng = np.random.default_rng(1)
    deviations = np.array([1.0, 1.0, 4.0, 2.0, 1.0, 1.0])
    scores = rng.normal(size=(40_000, 3, 6)) * deviations + rng.normal(size=(40_000, 3, 1))
    squares = fit_blocks(scores).squares
    inner = fit_blocks(scores).variances
    assert inner.mean(axis=0)[2:4] == pytest.approx([16.0, 4.0], rel=0.03)
    # negative estimates are cut off at 0, which raises the mean of small variances
    assert (inner.mean(axis=0)[[0, 1, 4, 5]] > 1).all()
    assert (squares.mean(axis=0)[[0, 1, 4, 5]] > 1.2).all()


@pytest.mark.parametrize(
    ("scores", "match"),
    [
        (np.ones((3, 2)), "three configurations or more"),
        (np.array([[1.0, 2, 3], [1, 2, np.nan]]), "each with two seeds"),
        (
            np.array([[1, 2, _, _], [2, 1, _, _], [_, _, 3, 4], [_, _, 4, 3]]),
            "share no seed",
        ),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(scores: np.ndarray, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fit_blocks(scores)


def test_few_levels_are_free_and_many_follow_a_spline() -> None:
    few = smooth(np.array([1.0, 2.0, 1.0, 4.0]), 2)
    assert few.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    x = np.linspace(0, 3, 40)
    columns = smooth(x, 4)
    assert np.linalg.matrix_rank(columns) == 5
    # natural splines include all straight lines
    line = 2 + 3 * x
    assert columns @ np.linalg.lstsq(columns, line, rcond=None)[0] == pytest.approx(line)


def test_explained_shares_are_of_the_variance_between_means() -> None:
    x = np.arange(5.0)
    assert explained_share(x, x[:, None]) == pytest.approx(1)
    assert explained_share((x - 2) ** 2, x[:, None]) == pytest.approx(0, abs=1e-12)
    assert np.isnan(explained_share(np.ones(5), x[:, None]))


def test_one_added_contrast_with_all_of_the_variance_in_it_is_a_t_test() -> None:
    """Two noisy configurations: Welch's t with equal runs, except for its degrees of freedom."""
    rng = np.random.default_rng(2)
    scores = np.zeros((5, 3))
    scores[:, 0] = rng.normal(size=5)
    fit = fit_blocks(scores)
    base = np.ones((3, 1))
    added = np.array([[1.0], [-0.5], [-0.5]])
    p_value = float(p_added(fit, base, added, np.ones(3)))
    difference = scores[:, 0].mean()
    expected = difference**2 * (2 / 3) / (fit.variances / 5 * np.array([4, 1, 1]) / 6).sum()
    assert p_value == pytest.approx(stats.f.sf(expected, 1, 4))
    assert statistics.variance(scores[:, 0]) == pytest.approx(fit.variances[0], rel=1e-6)


def test_seeds_that_respond_differently_make_it_a_t_test_over_seeds() -> None:
    """One added contrast, whose size differs from seed to seed far more than errors."""
    rng = np.random.default_rng(4)
    slopes = 5 * rng.normal(size=(6, 1))
    x = np.linspace(-1, 1, 5)
    scores = (1 + slopes) * x + 0.1 * rng.normal(size=(6, 5))
    p_value = float(p_added(fit_blocks(scores), np.ones((5, 1)), x[:, None], np.ones(5)))
    assert p_value == pytest.approx(stats.ttest_1samp(scores @ x, 0).pvalue)


def test_with_items_alone_it_is_a_chi_square_test() -> None:
    """Runs that do not scatter: the covariance is known."""
    x = np.linspace(-1, 1, 5)
    fit = fit_blocks(np.vstack([x, x + 1, x - 1]))
    p_value = float(p_added(fit, np.ones((5, 1)), x[:, None], np.ones(5), 0.5 * np.eye(5)))
    assert p_value == pytest.approx(stats.chi2.sf(x @ x / 0.5, 1), rel=1e-6)


def test_empty_terms_have_no_p_value_and_exact_scores_have_0_or_1() -> None:
    x = np.arange(6.0)
    base = np.column_stack([np.ones(6), x])
    fit = fit_blocks(np.vstack([x, x + 1, x - 1]))
    weights = model_weights(fit, np.ones((6, 1)))
    assert np.isnan(p_added(fit, base, x[:, None], weights))
    assert p_added(fit, base, x[:, None] ** 2, weights) == 1
    assert added_space(base, x[:, None]).shape == (6, 0)
    bent = fit_blocks(np.vstack([x**2, x**2 + 1]))
    assert p_added(bent, base, x[:, None] ** 2, weights) == 0


def test_weights_follow_the_modelled_variance_not_each_estimate() -> None:
    rng = np.random.default_rng(3)
    x = np.linspace(-1, 1, 8)
    scores = rng.normal(size=(3, 8)) * np.exp(1.5 * x)
    fit = fit_blocks(scores)
    weights = model_weights(fit, np.column_stack([np.ones(8), x]))
    assert (np.diff(weights) < 0).all()
    assert np.diff(np.log(weights), 2) == pytest.approx(np.zeros(6), abs=1e-9)
