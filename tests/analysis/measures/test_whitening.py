"""Whitening compared with its definition."""

import numpy as np
import pytest

from mtdlab.analysis.measures.geometry import fit_whitening

X = np.random.default_rng(0).normal(size=(200, 6)) @ np.diag([5, 4, 3, 2, 1, 0.5]) + 3


def test_whitened_rows_have_the_identity_as_covariance() -> None:
    whitening = fit_whitening(X, 6)
    rows = (X - whitening.mean) @ whitening.kernel
    assert np.allclose(rows.mean(axis=0), 0)
    assert np.allclose(rows.T @ rows / len(rows), np.eye(6))


@pytest.mark.parametrize("k", [1, 3, 6])
def test_it_is_the_slow_formula(k: int) -> None:
    """y = (x - mean) U S^(-1/2) by the singular values of the covariance, row by row."""
    mean = X.sum(axis=0) / len(X)
    covariance = sum(np.outer(x - mean, x - mean) for x in X) / len(X)
    u, s, _ = np.linalg.svd(covariance)
    expected = []
    for x in X:
        y = ((x - mean) @ u @ np.diag(1 / np.sqrt(s)))[:k]
        expected.append(y / np.linalg.norm(y))
    found = fit_whitening(X, k).apply(X)
    # the sign of a direction is arbitrary
    assert np.allclose(found @ found.T, np.array(expected) @ np.array(expected).T)
    assert np.allclose(np.linalg.norm(found, axis=1), 1)


def test_one_dimension_by_hand() -> None:
    whitening = fit_whitening([[1.0], [3.0], [5.0], [7.0]], 1)
    assert whitening.mean.tolist() == pytest.approx([4])
    assert abs(whitening.kernel[0, 0]) == pytest.approx(1 / np.sqrt(5))


FLAT = X[:, :2] @ np.random.default_rng(1).normal(size=(2, 6))


@pytest.mark.parametrize(
    ("x", "k", "message"),
    [
        *((FLAT, k, rf"k is {k}; these embeddings span 2 dimensions") for k in (0, 3, 7)),
        (np.ones((4, 3)), 1, "span 0 dimensions"),
        (np.ones((1, 3)), 1, "N >= 2"),
        ([[np.nan, 1], [2, 3]], 1, "not finite"),
    ],
)
def test_embeddings_that_cannot_be_whitened_are_refused(x: object, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit_whitening(x, k)


def test_rows_of_another_dimension_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be \(N, 6\)"):
        fit_whitening(X, 2).apply(X[:, :3])
