"""Influences of evaluation items on a score, against the jackknife, the bootstrap and SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mtdlab.analysis.data.items import ItemScores, influences
from tests.analysis.conftest import scores_of

Floats = NDArray[np.float64]
RANDOM = np.random.default_rng
SETS = ["levels", "fractions", "ties"]


def graded(count: int, kind: str, trials: int = 2) -> ItemScores:
    """Similarities of trials that agree with one another, and gold scores of some kind."""
    random = RANDOM(count)
    truth = random.normal(size=count)
    gold = np.clip(np.round(truth * 1.2 + 2.5, 0 if kind == "ties" else 1), 0, 5)
    if kind == "fractions":
        gold = truth + 0.1 * random.normal(size=count)
    shared = truth + 0.8 * random.normal(size=count)
    values = shared + 0.3 * random.normal(size=(trials, count))
    if kind == "ties":
        values = np.round(values, 1)
    return items_of(values, gold, {"STSB": count})


def items_of(values: Floats, gold: Floats | None, tasks: dict[str, int]) -> ItemScores:
    return ItemScores(np.arange(len(values)), values.astype(np.float32), gold, tasks, "abc")


def drawn(items: ItemScores, columns: NDArray[np.intp], tasks: dict[str, int]) -> Floats:
    gold = None if items.gold is None else items.gold[columns].astype(np.float64)
    return scores_of(items_of(items.values[:, columns].astype(np.float64), gold, tasks))


def resampled(items: ItemScores, times: int) -> Floats:
    """Scores (times, N) over items of graded tasks, drawn again within each task."""
    random, ends = RANDOM(1), np.cumsum([0, *items.tasks.values()])
    assert items.gold is not None
    scores = []
    for begin, end in pairwise(ends):
        columns = random.integers(begin, end, (times, end - begin))
        ranks = stats.zscore(stats.rankdata(items.values[:, columns], axis=-1), axis=-1)
        gold = stats.zscore(stats.rankdata(items.gold[columns], axis=-1), axis=-1)
        scores.append(100 * (ranks * gold).mean(axis=-1).T)
    return np.asarray(np.mean(scores, axis=0))


def variance_of(found: Floats) -> Floats:
    """The variance of the score over drawn items, from influences (..., P)."""
    return np.asarray((found**2).sum(axis=-1) / found.shape[-1] ** 2)


@pytest.mark.parametrize("count", [200, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", SETS)
def test_variances_of_scores_and_differences_are_those_of_the_bootstrap(
    count: int, kind: str
) -> None:
    items = graded(count, kind)
    found, scores = influences(items), resampled(items, 3000)
    first = drawn(items, RANDOM(1).integers(0, count, (3000, count))[0], {"STSB": count})
    assert scores[0] == pytest.approx(first)
    np.testing.assert_allclose(found.mean(axis=1), 0, atol=1e-9)
    # the bootstrap's own standard error is 2.6 %
    assert scores.var(axis=0) == pytest.approx(variance_of(found), rel=0.1)
    difference = variance_of(found[0] - found[1])
    assert np.var(scores[:, 0] - scores[:, 1]) == pytest.approx(difference, rel=0.1)


@pytest.mark.parametrize("kind", SETS)
def test_influences_are_those_of_leaving_one_item_out(kind: str) -> None:
    items = graded(200, kind)
    every, count = np.arange(200), {"STSB": 199}
    without = np.array([drawn(items, np.delete(every, at), count) for at in every]).T
    pseudo = 199 * (scores_of(items)[:, None] - without)
    found = influences(items)
    for row, expected in zip(found, pseudo, strict=True):
        assert np.corrcoef(row, expected)[0, 1] > 0.999
        assert np.polyfit(expected, row, 1)[0] == pytest.approx(1, abs=0.03)
    difference = pseudo[0] - pseudo[1]
    assert difference.var() == pytest.approx((found[0] - found[1]).var(), rel=0.05)


def test_influences_on_a_mean_are_deviations_from_it() -> None:
    items = items_of(np.array([[100.0, 0, 0, 100], [50, 50, 0, 0]]), None, {"MR": 4})
    np.testing.assert_allclose(influences(items), [[50, -50, -50, 50], [25, 25, -25, -25]])


def test_an_average_of_tasks_gives_each_task_the_same_weight() -> None:
    one, other = graded(150, "levels"), graded(600, "fractions")
    values = np.concatenate([one.values, other.values], axis=1).astype(np.float64)
    gold = np.concatenate([one.gold, other.gold]).astype(np.float64)
    items = items_of(values, gold, {"STS12": 150, "STSB": 600})
    apart = (variance_of(influences(one)) + variance_of(influences(other))) / 4
    assert variance_of(influences(items)) == pytest.approx(apart)
    assert resampled(items, 1500).var(axis=0) == pytest.approx(apart, rel=0.15)


def test_without_a_correlation_there_are_no_influences() -> None:
    items = items_of(np.array([[1.0, 1, 1], [1, 2, 3]]), np.array([1.0, 2, 4]), {"STSB": 3})
    assert np.isnan(influences(items)).all(axis=1).tolist() == [True, False]


def test_the_items_of_some_trials() -> None:
    items = graded(20, "levels", trials=3)
    assert items.of([2, 0]).numbers.tolist() == [2, 0]
    np.testing.assert_array_equal(items.of([2, 0]).values, items.values[[2, 0]])
    with pytest.raises(ValueError, match="trial 7 has no items; 3 trials have"):
        items.of([0, 7])
