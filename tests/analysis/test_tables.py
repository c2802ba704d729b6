"""The tables of queue settings and of all trials."""

from collections.abc import Callable

import pandas as pd
import pytest

from analysis.tables import compute_initial_queue, compute_queue_slices, compute_trials_table

MakeTrials = Callable[..., pd.DataFrame]


def test_slices_stand_beside_the_published_ones(trials_of: MakeTrials) -> None:
    slices = ("all", "256-768", "0-256,768-1024", "5-9")
    parts = [trials_of(decays=(0.85,), times=(4,)).assign(queue_slice=name) for name in slices]
    table = compute_queue_slices(pd.concat(parts)).set_index("queue_slice")
    assert table["n"].to_dict() == dict.fromkeys(slices, 3)
    assert table.loc["all", "published"] == 76.86
    assert table.loc["256-768", "published"] == 77.02
    assert table.loc["0-256,768-1024", "published"] == 76.18
    assert table["published"].isna().to_dict()["5-9"]


def test_one_slice_is_no_comparison(trials_of: MakeTrials) -> None:
    table = compute_queue_slices(trials_of())
    assert table.empty
    assert list(table) == ["queue_slice", "n", "seeds", "mean", "low", "high", "published"]


def test_the_initial_queue_is_a_share_of_the_queue(trials_of: MakeTrials) -> None:
    trials = trials_of(decays=(0.85,), times=(8,))
    parts = [trials.assign(initial_queue_size=size) for size in (0, 128, 512)]
    table = compute_initial_queue(pd.concat(parts))
    assert table["share"].tolist() == [0, 0.25, 1]
    assert table["published"].tolist() == [75.38, 77.30, 76.29]
    assert table["mean"].to_numpy() == pytest.approx(trials["score"].mean())


def test_a_run_without_a_queue_has_no_share(trials_of: MakeTrials) -> None:
    trials = trials_of(decays=(0.85,), times=(8,)).assign(queue_size=0, initial_queue_size=0)
    table = compute_initial_queue(trials)
    assert table.empty
    assert list(table)[:2] == ["share", "queue_size"]


def test_the_trials_table_has_its_columns_first_and_loses_none(trials_of: MakeTrials) -> None:
    trials = trials_of().assign(fgsm_epsilon=5e-9).sample(frac=1, random_state=0)
    table = compute_trials_table(trials)
    assert table["number"].is_monotonic_increasing
    assert list(table)[:4] == ["number", "state", "seed", "ema_decay"]
    assert set(table) == set(trials)
    assert list(table)[-1] == "fgsm_epsilon"
