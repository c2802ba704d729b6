"""Scores compared seed by seed."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.curves import compute_mtd_curve
from analysis.frames import Settings
from analysis.pairing import compute_paired_batch_curves, compute_paired_curve, pair_by_seed


def level_ground(_mtd: float) -> float:
    return 40.0


MakeTrials = Callable[..., pd.DataFrame]


def test_pairing_removes_what_a_seed_adds(trials_of: MakeTrials, settings: Settings) -> None:
    quiet = trials_of(noise=0)
    paired = compute_paired_curve(quiet, settings)
    assert paired["mean"].sum() == pytest.approx(0, abs=1e-9)
    assert (paired["high"] - paired["low"]).max() < 1e-9
    raw = compute_mtd_curve(quiet)
    assert (raw["high"] - raw["low"]).min() > 1
    moved = quiet.assign(score=quiet["score"] + 100 * quiet["seed"])
    np.testing.assert_allclose(
        compute_paired_curve(moved, settings)["mean"], paired["mean"], atol=1e-9
    )


def test_a_lost_run_takes_its_setting_and_not_the_seed(
    trials_of: MakeTrials, settings: Settings
) -> None:
    trials = trials_of()
    trials.loc[trials.index[4], "state"] = "FAIL"
    block = pair_by_seed(trials, settings)
    assert block.shape == (3, 7)
    assert 6 not in block.columns


def test_a_seed_that_has_hardly_begun_is_left_out(
    trials_of: MakeTrials, settings: Settings
) -> None:
    trials = trials_of()
    late = trials["seed"].eq(2) & trials["mtd"].astype("float64").gt(6)
    trials["state"] = trials["state"].mask(late, "WAITING")
    block = pair_by_seed(trials, settings)
    assert block.index.tolist() == [0, 1]
    assert block.shape[1] == 8


def test_an_unbalanced_setting_does_not_pass_for_its_level(
    trials_of: MakeTrials, settings: Settings
) -> None:
    trials = trials_of(batches=(64, 128), noise=0, shape=level_ground)
    trials.loc[trials["batch_size"] == 128, "score"] += 9
    whole = pair_by_seed(trials, settings)
    lost = trials.index[(trials["batch_size"] == 128) & (trials["mtd"] == 5)][0]
    part = pair_by_seed(trials.drop(index=lost), settings)
    np.testing.assert_allclose(whole.sub(whole.mean(axis=1), axis=0), 0, atol=1e-9)
    assert part[5.0].sub(part[6.0]).to_numpy() == pytest.approx([-4.5] * 3)


def test_no_runs_give_no_rows_with_their_columns(trials_of: MakeTrials, settings: Settings) -> None:
    none = trials_of().iloc[:0]
    columns = ["mtd", "seeds", "mean", "low", "high"]
    assert list(compute_paired_curve(none, settings)) == columns
    assert list(compute_paired_batch_curves(none, settings)) == ["batch_size", *columns]
