"""Paired comparison of scores."""

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.inference.pairing import (
    compute_paired_curve,
    estimate_mean,
    level_scores,
    summarise_scores,
)
from mtdlab.analysis.statistics.curves import compute_mtd_curve
from tests.analysis.conftest import SETTINGS, make_trials


def test_pairing_removes_seed_effects() -> None:
    quiet = make_trials(noise=0)
    paired = compute_paired_curve(level_scores(quiet, SETTINGS))
    assert paired["mean"].sum() == pytest.approx(0, abs=1e-9)
    assert (paired["high"] - paired["low"]).max() < 1e-9
    raw = compute_mtd_curve(quiet)
    assert (raw["high"] - raw["low"]).min() > 1
    moved = quiet.assign(score=quiet["score"] + 100 * quiet["seed"])
    np.testing.assert_allclose(
        compute_paired_curve(level_scores(moved, SETTINGS))["mean"], paired["mean"], atol=1e-9
    )


def test_a_missing_run_is_a_missing_value() -> None:
    trials = make_trials()
    lost = trials.index[4]
    trials.loc[lost, "state"] = "FAIL"
    table = level_scores(trials, SETTINGS).table
    assert table.shape == (3, 8)
    assert table.isna().sum().sum() == 1
    assert np.isnan(table.loc[trials.loc[lost, "seed"], trials.loc[lost, "mtd"].round(3)])


def test_a_seed_with_few_runs_counts_at_its_levels() -> None:
    trials = make_trials()
    late = trials["seed"].eq(2) & trials["mtd"].astype("float64").gt(6)
    trials["state"] = trials["state"].mask(late, "WAITING")
    table = level_scores(trials, SETTINGS).table
    assert table.notna().sum(axis=1).tolist() == [8, 8, 2]
    seeds = compute_paired_curve(level_scores(trials, SETTINGS))["seeds"]
    assert seeds.tolist() == [3, 3, *[2] * 6]


def test_an_unbalanced_setting_does_not_pass_for_its_level() -> None:
    trials = make_trials(batches=(64, 128), noise=0, shape=lambda _: 40.0)
    trials.loc[trials["batch_size"] == 128, "score"] += 9
    whole = level_scores(trials, SETTINGS).table
    lost = trials.index[(trials["batch_size"] == 128) & (trials["mtd"] == 5)][0]
    part = level_scores(trials.drop(index=lost), SETTINGS).table
    np.testing.assert_allclose(whole.sub(whole.mean(axis=1), axis=0), 0, atol=1e-9)
    # the seed without it is left out at this level; others have the mean of both
    assert part[5.0].sub(part[6.0]).dropna().to_numpy() == pytest.approx([0.0, 0.0], abs=1e-9)


def test_levels_are_compared_with_the_values_that_all_of_them_have() -> None:
    """Runs that fail at the high rate, at one level, leave that level the easy rate alone."""
    easy = make_trials(noise=0, shape=lambda _: 60.0).assign(learning_rate=1e-4)
    hard = easy.assign(learning_rate=1e-2, number=easy["number"] + 1000)
    hard["score"] -= 30 + hard["seed"]
    trials = pd.concat([easy, hard], ignore_index=True)
    names = [*SETTINGS, "learning_rate"]
    whole = level_scores(trials, names)
    assert not whole.uneven
    assert not whole.unbalanced
    assert set(whole.runs["learning_rate"]) == {1e-4, 1e-2}
    middle = trials["mtd"].eq(trials["mtd"].unique()[3]) & trials["learning_rate"].eq(1e-2)
    for lost in (middle, middle & trials["seed"].gt(0)):
        levels = level_scores(trials[~lost], names)
        assert levels.uneven == ({"learning_rate": 1e-2},)
        assert set(levels.runs["learning_rate"]) == {1e-4}
        high = trials["learning_rate"].eq(1e-2) & ~lost
        assert levels.unbalanced == set(trials["number"][high])
        offsets = levels.table.sub(levels.table.mean(axis=1), axis=0)
        np.testing.assert_allclose(offsets, 0, atol=1e-9)


def test_runs_without_a_value_are_compared_apart_from_others() -> None:
    """A missing value is one too, and a setting may be called as a column of the computation."""
    known = make_trials(noise=0, shape=lambda _: 60.0).assign(level=2.0)
    lacks = known.assign(level=np.nan, score=known["score"] - 30, number=known["number"] + 1000)
    trials = pd.concat([known, lacks[lacks["mtd"] != lacks["mtd"].unique()[3]]], ignore_index=True)
    levels = level_scores(trials, [*SETTINGS, "level"])
    [left] = levels.uneven
    assert np.isnan(left["level"])
    assert levels.runs["level"].tolist() == [2.0] * len(known)
    offsets = levels.table.sub(levels.table.mean(axis=1), axis=0)
    np.testing.assert_allclose(offsets, 0, atol=1e-9)


def test_no_runs_give_no_rows_with_their_columns() -> None:
    none = make_trials().iloc[:0]
    columns = ["mtd", "seeds", "mean", "low", "high", "low_all", "high_all"]
    assert list(compute_paired_curve(level_scores(none, SETTINGS))) == columns


def test_a_level_is_averaged_over_a_complete_block_of_configurations_and_seeds() -> None:
    """Of MTD 8 a configuration is left out, which lacks two seeds, of MTD 9 a seed that one lacks.

    A run that is repeated counts as one.
    """
    runs = [(seed, 5.0, 0.5, 10.0 + seed) for seed in range(4)] + [(0, 5.0, 0.5, 12.0)]
    runs += [(seed, 8.0, 0.6, 20.0 + seed) for seed in range(4)]
    runs += [(seed, 8.0, 0.7, 100.0) for seed in range(2)]
    runs += [(seed, 9.0, 0.8, 30.0) for seed in range(4)]
    runs += [(seed, 9.0, 0.9, 50.0) for seed in range(3)]
    trials = pd.DataFrame(runs, columns=["seed", "mtd", "ema_decay", "score"])
    levels = level_scores(trials.assign(number=range(len(runs))), SETTINGS)
    expected = [[11, 20, 40], [11, 21, 40], [12, 22, 40], [13, 23, np.nan]]
    np.testing.assert_allclose(levels.scores, expected)


@pytest.mark.slow
def test_the_interval_of_a_mean_covers_seeds_and_items() -> None:
    """The true mean is 0; the items' standard error is 0.7, that of the seeds 0.2."""
    draws, covers = np.random.default_rng(5), {"seeds": 0, "items": 0}
    count = 400
    for _ in range(count):
        common = draws.normal(0, 10, size=200)
        values = common + draws.normal(0, 0.4, size=(4, 1)) + draws.normal(0, 4, size=(4, 200))
        numbers = np.arange(4)
        runs = pd.DataFrame({"number": numbers, "seed": numbers, "score": values.mean(axis=1)})
        items = ItemScores(numbers, values, None, {"own": 200}, "digest")
        for name, known in (("seeds", None), ("items", items)):
            mean = estimate_mean(runs, known)
            assert mean.items == (200 if known else 0)
            covers[name] += mean.estimate.low < 0 < mean.estimate.high
    assert covers["items"] >= 0.92 * count
    assert covers["seeds"] < 0.8 * count


def test_the_mean_of_a_run_without_items_is_for_these_items() -> None:
    runs = pd.DataFrame({"number": [0, 1], "seed": [0, 1], "score": [1.0, 3.0]})
    items = ItemScores(np.array([0]), np.zeros((1, 5)), None, {"own": 5}, "digest")
    mean = estimate_mean(runs, items)
    assert (mean.items, mean.seeds) == (0, 2)
    assert mean.estimate.mean == pytest.approx(2)
    # t(1) = 12.7062, standard deviation 1.4142
    assert mean.estimate.high == pytest.approx(2 + 12.7062, abs=1e-3)


def test_a_table_of_means_says_which_of_them_cover_items() -> None:
    rng = np.random.default_rng(0)
    runs = pd.DataFrame({"number": range(8), "seed": [0, 1] * 4, "mtd": [5.0, 5, 8, 8] * 2})
    values = rng.normal(0, 20, size=(8, 50))
    items = ItemScores(np.arange(8), values, None, {"own": 50}, "digest")
    runs["score"] = values.mean(axis=1)
    part = items.of([0, 1, 4, 5])
    for known, counts in ((None, [0, 0]), (items, [50, 50]), (part, [50, 0])):
        table = summarise_scores(runs, by=["mtd"], items=known)
        assert table["items"].tolist() == counts
        for mtd, low in zip(table["mtd"], table["low"], strict=True):
            mean = estimate_mean(runs[runs["mtd"] == mtd], known)
            assert low == pytest.approx(mean.estimate.low)
    assert list(summarise_scores(runs.iloc[:0], by=["mtd"], items=items))[-1] == "items"
