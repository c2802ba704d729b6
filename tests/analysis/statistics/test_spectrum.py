"""Singular values and effective rank compared with NumPy and closed forms."""

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.measures.geometry import singular_values
from mtdlab.analysis.statistics.curves import (
    compute_effective_ranks,
    compute_spectra,
    effective_rank,
    find_width,
)
from tests.analysis.conftest import make_trials


@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (8, 8), (1, 5)])
def test_singular_values_are_those_of_the_decomposition(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    expected = np.linalg.svd(x, compute_uv=False)
    np.testing.assert_allclose(singular_values(x), expected, rtol=1e-9)


def test_a_missing_dimension_gives_a_value_of_nearly_zero() -> None:
    x = np.random.default_rng(1).normal(size=(20, 4))
    x[:, 3] = x[:, 0]
    values = singular_values(x)
    assert values[-1] < 1e-6 * values[0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.ones(3), r"must be a matrix \(N, D\)"),
        (np.ones((0, 3)), r"must be a matrix \(N, D\)"),
        (np.array([[1.0, np.inf]]), "not finite"),
    ],
)
def test_what_has_no_singular_values_is_refused(x: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        singular_values(x)


def test_effective_rank_of_known_spectra() -> None:
    assert effective_rank([2, 2, 2, 2]) == pytest.approx(4)
    assert effective_rank([5, 0, 0]) == pytest.approx(1)
    shares = [0.5, 0.25, 0.25]
    slow = np.prod([share**-share for share in shares])
    assert effective_rank(np.array(shares) * 7) == pytest.approx(slow)


@pytest.mark.parametrize("values", [[], [0, 0], [-1, 2], [np.nan], [[1, 2]]])
def test_an_invalid_spectrum_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match="finite numbers >= 0, not all 0"):
        effective_rank(np.array(values, dtype=float))


def spectra_of(trials: pd.DataFrame) -> pd.DataFrame:
    rows = {(number, "before"): [4.0, 1.0] for number in trials["number"]}
    for number, mtd in zip(trials["number"], trials["mtd"], strict=True):
        rows[(number, "after")] = [2 * mtd, mtd]
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = pd.MultiIndex.from_tuples(list(rows))
    return frame


def test_spectra_are_relative_and_by_level() -> None:
    trials = make_trials()
    trials.loc[0, "state"] = "FAIL"
    table = compute_spectra(trials, spectra_of(trials))
    assert table.index.get_level_values("moment").tolist() == ["after"] * 8 + ["before"]
    np.testing.assert_allclose(table.to_numpy()[:8], [[1, 0.5]] * 8)
    np.testing.assert_allclose(table.to_numpy()[8], [1, 0.25])


def test_effective_ranks_count_seeds() -> None:
    trials = make_trials()
    table = compute_effective_ranks(trials, spectra_of(trials))
    after = table[table["moment"] == "after"]
    assert after["seeds"].tolist() == [3] * 8
    assert after["mean"].to_numpy() == pytest.approx(effective_rank([2, 1]))


def test_a_spectrum_that_is_not_finite_is_left_out() -> None:
    trials = make_trials()
    spectra = spectra_of(trials)
    spectra.iloc[0, 0] = np.nan
    ranks = compute_effective_ranks(trials, spectra)
    assert ranks.loc[ranks["moment"] == "before", "n"].sum() == len(trials) - 1


def test_no_spectra_give_empty_tables() -> None:
    assert compute_spectra(make_trials(), pd.DataFrame()).empty
    ranks = compute_effective_ranks(make_trials(), pd.DataFrame())
    assert list(ranks) == ["moment", "mtd", "n", "seeds", "mean", "low", "high"]
    assert ranks.empty


def test_the_width_is_that_of_every_spectrum() -> None:
    spectra = pd.DataFrame([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    assert find_width(spectra) == 3
    spectra.iloc[1, 2] = np.nan
    assert find_width(spectra) is None
    assert find_width(pd.DataFrame()) is None
