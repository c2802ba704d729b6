"""Models ranked over blocks: which are separated, which may be the best, and their groups."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.inference.best import group_models, rank_models


def scores_of(means: list[float], blocks: int = 12, seed: int = 0) -> pd.DataFrame:
    """Scores (B, M) with errors of standard deviation 1, in blocks that differ by 10."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((blocks, len(means)))
    scores = means + noise + 10 * rng.standard_normal((blocks, 1))
    return pd.DataFrame(scores, columns=[f"model {at}" for at in range(len(means))])


def apart(models: int, pairs: list[tuple[int, int]]) -> np.ndarray:
    matrix = np.zeros((models, models), dtype=bool)
    for first, second in pairs:
        matrix[first, second] = matrix[second, first] = True
    return matrix


@pytest.mark.parametrize(
    ("pairs", "groups"),
    [
        ([], [(0, 1, 2)]),
        ([(0, 2)], [(0, 1), (1, 2)]),
        ([(0, 1), (0, 2)], [(0,), (1, 2)]),
        ([(0, 1), (0, 2), (1, 2)], [(0,), (1,), (2,)]),
    ],
)
def test_groups_are_letters(pairs: list[tuple[int, int]], groups: list[tuple[int, ...]]) -> None:
    assert group_models(apart(3, pairs)) == groups


@pytest.mark.parametrize("seed", range(8))
def test_groups_are_the_largest_sets_without_a_separated_pair(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = apart(6, [pair for pair in combinations(range(6), 2) if rng.random() < 0.4])
    free = [
        set(group)
        for size in range(1, 7)
        for group in combinations(range(6), size)
        if not matrix[np.ix_(group, group)].any()
    ]
    largest = [group for group in free if not any(group < other for other in free)]
    assert group_models(matrix) == sorted(tuple(sorted(group)) for group in largest)


def test_a_model_far_above_the_others_is_separated_from_equal_ones() -> None:
    judged, table = rank_models(scores_of([0.0, 5.0, 0.0]))
    assert judged.is_separated
    assert (judged.ranked[0], judged.may_be_best) == (1, (1,))
    assert table["model"].iloc[0] == "model 1"
    assert table["groups"].tolist() == ["a", "b", "b"]
    assert table["may_be_best"].tolist() == [True, False, False]
    assert (table["difference_high"].iloc[1:] < 0).all()


def test_two_models_have_the_interval_of_the_paired_t_test() -> None:
    scores = scores_of([0.0, 0.3])
    values = scores["model 0"] - scores["model 1"]
    interval = stats.ttest_1samp(values, 0).confidence_interval()
    sign = 1 if values.mean() < 0 else -1
    row = rank_models(scores)[1].iloc[1]
    assert row["difference"] == pytest.approx(sign * values.mean())
    width = (row["difference_high"] - row["difference_low"]) / 2
    assert width == pytest.approx((interval.high - interval.low) / 2, rel=0.05)


def test_neither_the_order_of_the_table_nor_the_difficulty_of_blocks_matters() -> None:
    scores = scores_of([0.0, 1.0, 3.0, 3.2])
    harder = scores.iloc[::-1, ::-1].add(np.arange(12.0), axis=0)
    expected, other = rank_models(scores)[1], rank_models(harder)[1]
    numbers = ["difference", "difference_low", "difference_high"]
    assert other[["model", "groups"]].equals(expected[["model", "groups"]])
    assert other[numbers].to_numpy() == pytest.approx(expected[numbers].to_numpy(), nan_ok=True)


def test_models_with_the_same_scores_are_not_separated() -> None:
    scores = scores_of([0.0, 4.0])
    judged, table = rank_models(scores.assign(copy=scores["model 1"]))
    assert table["groups"].tolist() == ["a", "a", "b"]
    assert not judged.is_separated
