"""Means over seeds and their intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.inference.intervals import estimate, estimate_over_items, summarise
from mtdlab.analysis.inference.pairing import estimate_mean, summarise_scores


def test_the_interval_is_scipys_over_the_seeds_means() -> None:
    runs = pd.DataFrame({"group": "a", "seed": [0, 0, 1, 1, 2], "score": [1.0, 3.0, 4.0, 6.0, 9.0]})
    row = summarise(runs, by=["group"]).iloc[0]
    means = np.array([2.0, 5.0, 9.0])
    low, high = stats.t.interval(0.95, 2, loc=means.mean(), scale=stats.sem(means))
    assert (row["n"], row["seeds"]) == (5, 3)
    assert row["mean"] == pytest.approx(means.mean())
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_rows_of_one_seed_do_not_narrow_the_interval() -> None:
    runs = pd.DataFrame({"group": "a", "seed": 0, "score": np.arange(50.0)})
    row = summarise(runs, by=["group"]).iloc[0]
    assert row["n"] == 50
    found = estimate(np.array([3.0]))
    assert found.mean == pytest.approx(3)
    assert np.isnan([row["low"], row["high"], found.low, found.high]).all()


def test_no_runs_give_no_rows_but_the_columns() -> None:
    empty = pd.DataFrame({"group": [], "seed": [], "score": []})
    table = summarise(empty, by=["group"])
    assert list(table) == ["group", "n", "seeds", "mean", "low", "high"]
    assert table.empty


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_an_estimate_is_scipys_t_interval(level: float) -> None:
    values = np.array([1.0, 2.0, 4.0, 4.5])
    found = estimate(values, level)
    low, high = stats.t.interval(level, 3, loc=values.mean(), scale=stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high))


def test_items_alone_give_the_t_interval_over_them() -> None:
    """Where all seeds agree, and each item does the same to each of them."""
    items = np.array([1.0, -2.0, 0.5, 3.0, -2.5])
    found = estimate_over_items(np.full(4, 7.0), np.tile(items, (4, 1)))
    low, high = stats.t.interval(0.95, 4, loc=7, scale=stats.sem(items))
    assert (found.mean, found.low, found.high) == pytest.approx((7, low, high))


def test_what_an_item_does_to_one_seed_alone_is_not_counted_twice() -> None:
    """By hand: 8 / (2 · 1) of the items in common, minus 4 / (1 · 2 · 4) of single seeds."""
    values, influences = np.array([10.0, 12.0]), np.array([[3.0, -3.0], [1.0, -1.0]])
    found = estimate_over_items(values, influences)
    expected = estimate(values, of_items=3.5, freedom=1)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_variances_of_seeds_and_items_are_added() -> None:
    """With Satterthwaite's degrees of freedom, that of the seeds weighted by 1 + 4 / (S - 1)."""
    values, items = np.array([1.0, 2.0, 4.0, 4.5]), np.linspace(-3, 3, 7)
    found = estimate_over_items(values, np.tile(items, (4, 1)))
    of_seeds, of_items = stats.sem(values) ** 2, stats.sem(items) ** 2
    weighted = (1 + 4 / 3) * of_seeds**2 / 3 + of_items**2 / 6
    freedom = (of_seeds + of_items) ** 2 / weighted
    low, high = stats.t.interval(0.95, freedom, values.mean(), np.sqrt(of_seeds + of_items))
    assert (found.low, found.high) == pytest.approx((low, high))


def test_an_interval_that_leaves_what_a_score_can_be_is_not_estimated() -> None:
    runs = pd.DataFrame({"mtd": 10.0, "seed": [0, 1], "score": [20.0, 34.0], "number": [0, 1]})
    for table in (summarise(runs, by=["mtd"]), summarise_scores(runs, by=["mtd"], items=None)):
        assert table["mean"].tolist() == pytest.approx([27])
        assert table[["low", "high"]].isna().all(axis=None)
    assert not np.isfinite(estimate_mean(runs, None).estimate.low)
    near = summarise(runs.assign(score=[26.0, 28.0]), by=["mtd"])
    assert near["high"].tolist() == pytest.approx([27 + 12.706], abs=0.01)
    # of another unit, such as perplexity, it can be anything
    other = summarise(runs.assign(score=[120.0, 300.0]), by=["mtd"])
    assert np.isfinite(other["low"]).all()
