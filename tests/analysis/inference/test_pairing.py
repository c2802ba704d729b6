"""Paired comparison of scores."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.data.frames import Settings
from analysis.inference.pairing import (
    compute_paired_curve,
    level_scores,
)
from analysis.statistics.curves import compute_mtd_curve


def level_ground(_mtd: float) -> float:
    return 40.0


MakeTrials = Callable[..., pd.DataFrame]


def test_pairing_removes_seed_effects(trials_of: MakeTrials, settings: Settings) -> None:
    quiet = trials_of(noise=0)
    paired = compute_paired_curve(level_scores(quiet, settings))
    assert paired["mean"].sum() == pytest.approx(0, abs=1e-9)
    assert (paired["high"] - paired["low"]).max() < 1e-9
    raw = compute_mtd_curve(quiet)
    assert (raw["high"] - raw["low"]).min() > 1
    moved = quiet.assign(score=quiet["score"] + 100 * quiet["seed"])
    np.testing.assert_allclose(
        compute_paired_curve(level_scores(moved, settings))["mean"], paired["mean"], atol=1e-9
    )


def test_a_missing_run_is_a_missing_value(trials_of: MakeTrials, settings: Settings) -> None:
    trials = trials_of()
    lost = trials.index[4]
    trials.loc[lost, "state"] = "FAIL"
    table = level_scores(trials, settings).table
    assert table.shape == (3, 8)
    assert table.isna().sum().sum() == 1
    assert np.isnan(table.loc[trials.loc[lost, "seed"], trials.loc[lost, "mtd"].round(3)])


def test_a_seed_with_few_runs_counts_at_its_levels(
    trials_of: MakeTrials, settings: Settings
) -> None:
    trials = trials_of()
    late = trials["seed"].eq(2) & trials["mtd"].astype("float64").gt(6)
    trials["state"] = trials["state"].mask(late, "WAITING")
    table = level_scores(trials, settings).table
    assert table.notna().sum(axis=1).tolist() == [8, 8, 2]
    assert compute_paired_curve(level_scores(trials, settings))["seeds"].tolist() == [
        3,
        3,
        *[2] * 6,
    ]


def test_an_unbalanced_setting_does_not_pass_for_its_level(
    trials_of: MakeTrials, settings: Settings
) -> None:
    trials = trials_of(batches=(64, 128), noise=0, shape=level_ground)
    trials.loc[trials["batch_size"] == 128, "score"] += 9
    whole = level_scores(trials, settings).table
    lost = trials.index[(trials["batch_size"] == 128) & (trials["mtd"] == 5)][0]
    part = level_scores(trials.drop(index=lost), settings).table
    np.testing.assert_allclose(whole.sub(whole.mean(axis=1), axis=0), 0, atol=1e-9)
    # the seed without it is left out at this level; others have the mean of both
    assert part[5.0].sub(part[6.0]).dropna().to_numpy() == pytest.approx([0.0, 0.0], abs=1e-9)


def test_no_runs_give_no_rows_with_their_columns(trials_of: MakeTrials, settings: Settings) -> None:
    none = trials_of().iloc[:0]
    columns = ["mtd", "seeds", "mean", "low", "high", "low_all", "high_all"]
    assert list(compute_paired_curve(level_scores(none, settings))) == columns
