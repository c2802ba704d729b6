"""The tables of queue settings and of all trials."""

from collections.abc import Callable

import pandas as pd
import pytest

from analysis.tables import (
    compute_initial_queue,
    compute_queue_slices,
    compute_tasks,
    compute_trials_table,
)

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


def scores_of(trials: pd.DataFrame, tasks: tuple[str, ...]) -> pd.DataFrame:
    rows = [
        (number, task, score + place)
        for number, score in zip(trials["number"], trials["score"], strict=True)
        for place, task in enumerate(tasks)
    ]
    return pd.DataFrame(rows, columns=["number", "task", "score"])


def test_tasks_stand_in_published_order_with_an_interval_each(trials_of: MakeTrials) -> None:
    trials = trials_of(decays=(0.85,), times=(1, 8))
    table = compute_tasks(trials, scores_of(trials, ("SICKR", "sts_dev", "STS12", "TREC")))
    assert table["task"].unique().tolist() == ["STS12", "SICKR", "TREC"]
    assert (table["seeds"] == 3).all()
    plain = trials[trials["mtd"].round(3) == 14.667]["score"].mean()
    means = table[table["mtd"] == 14.667].set_index("task")["mean"]
    assert means["SICKR"] == pytest.approx(plain)
    assert means["STS12"] == pytest.approx(plain + 2)
    assert (table["low"] < table["mean"]).all()


def test_tasks_without_a_score_or_a_run_are_left_out(trials_of: MakeTrials) -> None:
    trials = trials_of(decays=(0.85,), times=(1,))
    scores = scores_of(trials, ("STS12", "STSB"))
    scores.loc[scores["task"] == "STSB", "score"] = float("nan")
    trials.loc[0, "state"] = "FAIL"
    table = compute_tasks(trials, scores)
    assert (table["task"].tolist(), table["n"].tolist()) == (["STS12"], [2])
    assert compute_tasks(trials, scores.iloc[:0]).empty
