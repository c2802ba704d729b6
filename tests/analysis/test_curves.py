"""The curves over MTD."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.curves import (
    compute_batch_curves,
    compute_distances,
    compute_mtd_curve,
    compute_paired_batch_curves,
    compute_paired_curve,
    format_mtd,
    pair_by_seed,
    simcse_runs,
    varied_settings,
)


def level_ground(_mtd: float) -> float:
    return 40.0


MakeTrials = Callable[..., pd.DataFrame]


def test_settings_of_equal_distance_share_a_level(trials_of: MakeTrials) -> None:
    trials = trials_of(batches=(64, 128, 96))
    curve = compute_mtd_curve(trials)
    assert curve["mtd"].tolist() == [5, 6, 7.667, 8, 8.667, 10.667, 12, 14.667]
    assert curve["n"].tolist() == [9] * 8
    assert curve["seeds"].tolist() == [3] * 8
    level = trials[np.isclose(trials["mtd"], 26 / 3)]
    assert curve["mean"][4] == pytest.approx(level["score"].mean())


def test_only_completed_runs_with_a_score_count(trials_of: MakeTrials) -> None:
    trials = trials_of(decays=(0.75,))
    trials.loc[0, "state"] = "RUNNING"
    trials.loc[1, "score"] = np.nan
    trials.loc[3, "score"] = np.inf
    curve = compute_mtd_curve(trials)
    assert curve["n"].tolist() == [1, 2, 3, 3]
    assert np.isnan(curve["low"][0])


def test_no_runs_give_an_empty_curve_with_its_columns(trials_of: MakeTrials) -> None:
    none = trials_of().iloc[:0]
    assert list(compute_mtd_curve(none)) == ["mtd", "n", "seeds", "mean", "low", "high"]
    assert list(compute_batch_curves(none))[:2] == ["batch_size", "mtd"]
    assert list(compute_paired_curve(none)) == ["mtd", "seeds", "mean", "low", "high"]
    assert "batch_size" in compute_paired_batch_curves(none)
    assert compute_distances(none).empty


def test_a_method_without_a_queue_is_no_part_of_the_curve(trials_of: MakeTrials) -> None:
    trials = trials_of(decays=(0.75,)).assign(method="mocose")
    trials.loc[:2, "method"] = "simcse"
    assert compute_mtd_curve(trials)["mtd"].tolist() == [6, 8, 12]
    assert simcse_runs(trials)["number"].tolist() == [0, 1, 2]
    assert simcse_runs(trials.drop(columns="method")).empty


def test_batch_curves_split_the_runs(trials_of: MakeTrials) -> None:
    trials = trials_of(batches=(64, 128))
    curves = compute_batch_curves(trials)
    only = compute_mtd_curve(trials[trials["batch_size"] == 128])
    half = curves[curves["batch_size"] == 128].drop(columns="batch_size")
    pd.testing.assert_frame_equal(half.reset_index(drop=True), only)


def test_pairing_removes_what_a_seed_adds(trials_of: MakeTrials) -> None:
    quiet = trials_of(noise=0)
    paired = compute_paired_curve(quiet)
    assert paired["mean"].sum() == pytest.approx(0, abs=1e-9)
    assert (paired["high"] - paired["low"]).max() < 1e-9
    raw = compute_mtd_curve(quiet)
    assert (raw["high"] - raw["low"]).min() > 1
    moved = quiet.assign(score=quiet["score"] + 100 * quiet["seed"])
    np.testing.assert_allclose(compute_paired_curve(moved)["mean"], paired["mean"], atol=1e-9)


def test_a_lost_run_takes_its_setting_and_not_the_seed(trials_of: MakeTrials) -> None:
    trials = trials_of()
    trials.loc[trials.index[4], "state"] = "FAIL"
    block = pair_by_seed(trials)
    assert block.shape == (3, 7)
    assert 6 not in block.columns


def test_a_seed_that_has_hardly_begun_is_left_out(trials_of: MakeTrials) -> None:
    trials = trials_of()
    late = trials["seed"].eq(2) & trials["mtd"].astype("float64").gt(6)
    trials["state"] = trials["state"].mask(late, "WAITING")
    block = pair_by_seed(trials)
    assert block.index.tolist() == [0, 1]
    assert block.shape[1] == 8


def test_an_unbalanced_setting_does_not_pass_for_its_level(trials_of: MakeTrials) -> None:
    trials = trials_of(batches=(64, 128), noise=0, shape=level_ground)
    trials.loc[trials["batch_size"] == 128, "score"] += 9
    whole = pair_by_seed(trials)
    lost = trials.index[(trials["batch_size"] == 128) & (trials["mtd"] == 5)][0]
    part = pair_by_seed(trials.drop(index=lost))
    np.testing.assert_allclose(whole.sub(whole.mean(axis=1), axis=0), 0, atol=1e-9)
    assert part[5.0].sub(part[6.0]).to_numpy() == pytest.approx([-4.5] * 3)


def test_distances_are_from_the_ideal_point(trials_of: MakeTrials) -> None:
    trials = trials_of().assign(alignment=0.3, uniformity=-3.6)
    trials.loc[0, "uniformity"] = np.nan
    table = compute_distances(trials)
    assert len(table) == len(trials) - 1
    assert table["l1"].to_numpy() == pytest.approx(0.7)
    assert table["l2"].to_numpy() == pytest.approx(0.5)


def test_varied_settings_are_those_that_differ(trials_of: MakeTrials) -> None:
    assert varied_settings(trials_of()) == ["ema_decay", "queue_size", "mtd"]


@pytest.mark.parametrize(("mtd", "text"), [(12.0, "12"), (14.6667, "14.667"), (np.nan, "–")])
def test_a_distance_is_printed_one_way(mtd: float, text: str) -> None:
    assert format_mtd(mtd) == text
