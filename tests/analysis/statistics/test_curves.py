"""The curves over MTD."""

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.runs import format_mtd, free_settings, untraced_runs, varied_settings
from mtdlab.analysis.inference.pairing import level_scores
from mtdlab.analysis.inference.verdict import judge_levels
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import conditions, score
from mtdlab.analysis.statistics.curves import compute_distances, compute_mtd_curve
from tests.analysis.conftest import SETTINGS, build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def test_settings_of_equal_distance_share_a_level() -> None:
    trials = make_trials(batches=(64, 128, 96))
    curve = compute_mtd_curve(trials)
    assert curve["mtd"].tolist() == [5, 6, 7.667, 8, 8.667, 10.667, 12, 14.667]
    assert curve["n"].tolist() == [9] * 8
    assert curve["seeds"].tolist() == [3] * 8
    level = trials[np.isclose(trials["mtd"], 26 / 3)]
    assert curve["mean"][4] == pytest.approx(level["score"].mean())


def test_only_completed_runs_with_a_score_count() -> None:
    trials = make_trials(decays=(0.75,))
    trials.loc[0, "state"] = "RUNNING"
    trials.loc[1, "score"] = np.nan
    trials.loc[3, "score"] = np.inf
    curve = compute_mtd_curve(trials)
    assert curve["n"].tolist() == [1, 2, 3, 3]
    assert np.isnan(curve["low"][0])


def test_no_runs_give_an_empty_curve_with_its_columns() -> None:
    none = make_trials().iloc[:0]
    assert list(compute_mtd_curve(none)) == ["mtd", "n", "seeds", "mean", "low", "high"]
    assert compute_distances(none).empty


@pytest.mark.parametrize("without", [0.0, np.nan])
def test_a_run_without_an_mtd_is_no_part_of_the_curve(without: float) -> None:
    trials = make_trials(decays=(0.75,))
    assert untraced_runs(trials).empty
    trials.loc[:2, "mtd"] = without
    trials.loc[2, "state"] = "FAIL"
    assert compute_mtd_curve(trials)["mtd"].tolist() == [6, 8, 12]
    untraced = untraced_runs(trials)
    assert untraced["number"].tolist() == [0, 1]
    assert untraced["mtd"].tolist() == [0, 0]


def test_batch_curves_split_the_runs_and_share_the_error_rate() -> None:
    trials = make_trials(batches=(64, 128))
    contents = conditions.BATCHES.build(StudyContext(build_study(trials)))
    assert contents is not None
    curves = contents.csv["mtd_by_batch"]
    only = compute_mtd_curve(trials[trials["batch_size"] == 128]).assign(items=0)
    half = curves[curves["batch_size"] == 128].drop(columns="batch_size")
    pd.testing.assert_frame_equal(half.reset_index(drop=True), only)
    *sentences, shared = contents.text
    assert "each is at 97.5 % confidence" in shared
    for text, (size, runs) in zip(sentences, trials.groupby("batch_size"), strict=True):
        verdict = judge_levels(level_scores(runs, SETTINGS), level=0.975)
        assert text == f"Batch size {size}. {verdict.sentence}"


def test_distances_are_from_the_ideal_point() -> None:
    trials = make_trials().assign(alignment=0.3, uniformity=-3.6)
    trials.loc[0, "uniformity"] = np.nan
    table = compute_distances(trials)
    assert len(table) == len(trials) - 1
    assert table["l1"].to_numpy() == pytest.approx(0.7)
    assert table["l2"].to_numpy() == pytest.approx(0.5)


def test_varied_settings_are_declared_and_differ() -> None:
    trials = make_trials().assign(learning_rate=range(24), loss=range(24), steps=120)
    assert varied_settings(trials, SETTINGS) == ["ema_decay", "queue_size", "learning_rate"]
    assert varied_settings(trials, ("queue_size", "steps")) == ["queue_size"]


def test_a_setting_with_one_value_for_each_method_was_not_chosen() -> None:
    trials = make_trials()[["ema_decay", "seed"]].assign(method=["mocose", "simcse"] * 12)
    trials["pooling"] = trials["method"].map({"mocose": "cls", "simcse": "mean"})
    names = ("method", "pooling", "ema_decay")
    assert set(varied_settings(trials, names)) == set(names)
    assert set(free_settings(trials, names)) == {"method", "ema_decay"}
    assert free_settings(trials.drop(columns="method"), names) == ["ema_decay", "pooling"]


@pytest.mark.parametrize(
    ("mtd", "text"),
    [
        (12.0, "12"),
        (14.6667, "14.7"),
        (7.6667, "7.67"),
        (41.333, "41.3"),
        (27.999999999999982, "28"),
        (9.999, "10"),
        (np.nan, "–"),
    ],
)
def test_a_distance_is_printed_one_way(mtd: float, text: str) -> None:
    assert format_mtd(mtd) == text


def test_the_caption_names_a_smooth_curve_only_where_one_is_drawn() -> None:
    trials = make_trials()
    lowest = sorted(trials["mtd"].unique())[:3]
    for frame, expected in ((trials, True), (trials[trials["mtd"].isin(lowest)], False)):
        drawing = score.draw(StudyContext(build_study(frame)))
        assert drawing is not None
        assert ("The line is a smooth curve" in drawing.caption) is expected
