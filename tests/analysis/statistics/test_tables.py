"""The tables of tasks and of all trials."""

import pandas as pd
import pytest

from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics.trials import build
from mtdlab.analysis.statistics.curves import compute_tasks
from tests.analysis.conftest import build_study, make_trials


def test_the_trials_table_has_its_columns_first_and_loses_none() -> None:
    trials = make_trials().assign(fgsm_epsilon=5e-9).sample(frac=1, random_state=0)
    table = build(StudyContext(build_study(trials))).csv["trials"]
    assert table["number"].is_monotonic_increasing
    assert list(table)[:4] == ["number", "state", "seed", "ema_decay"]
    assert set(table) == {*trials, "sts_dev"}
    assert list(table)[-2:] == ["fgsm_epsilon", "sts_dev"]


def scores_of(trials: pd.DataFrame, tasks: tuple[str, ...]) -> pd.DataFrame:
    rows = [
        (number, task, score + place)
        for number, score in zip(trials["number"], trials["score"], strict=True)
        for place, task in enumerate(tasks)
    ]
    return pd.DataFrame(rows, columns=["number", "task", "score"])


def test_tasks_stand_in_published_order_with_an_interval_each() -> None:
    trials = make_trials(decays=(0.85,), times=(1, 8))
    table = compute_tasks(trials, scores_of(trials, ("SICKR", "sts_dev", "STS12", "TREC")))
    assert table["task"].unique().tolist() == ["STS12", "SICKR", "TREC"]
    assert (table["seeds"] == 3).all()
    plain = trials[trials["mtd"].round(3) == 14.667]["score"].mean()
    means = table[table["mtd"] == 14.667].set_index("task")["mean"]
    assert means["SICKR"] == pytest.approx(plain)
    assert means["STS12"] == pytest.approx(plain + 2)
    assert (table["low"] < table["mean"]).all()


def test_tasks_without_a_score_or_a_run_are_left_out() -> None:
    trials = make_trials(decays=(0.85,), times=(1,))
    scores = scores_of(trials, ("STS12", "STSB"))
    scores.loc[scores["task"] == "STSB", "score"] = float("nan")
    trials.loc[0, "state"] = "FAIL"
    table = compute_tasks(trials, scores)
    assert (table["task"].tolist(), table["n"].tolist()) == (["STS12"], [2])
    assert compute_tasks(trials, scores.iloc[:0]).empty


def test_tasks_are_by_method_where_it_varies() -> None:
    trials = make_trials(decays=(0.85,), times=(1, 1)).assign(method=["a"] * 3 + ["b"] * 3)
    trials.loc[trials["method"] == "b", "mtd"] = float("nan")
    table = compute_tasks(trials, scores_of(trials, ("STS12",)), by=["method"])
    assert table["method"].tolist() == ["a", "b"]
    assert table["mtd"].tolist() == [7.667, 0]
    expected = trials.groupby("method")["score"].mean().tolist()
    assert table["mean"].tolist() == pytest.approx(expected)
