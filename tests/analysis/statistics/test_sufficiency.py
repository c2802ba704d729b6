"""The test of sufficiency: results, conditions, section of the page, simulated error rates."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.frames import NuisanceTrials, StudyFrames
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.metric import POINTS
from mtdlab.analysis.measures.trace import d_trace
from mtdlab.analysis.questions.sufficiency import describe_sufficiency
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import sufficiency as topic
from mtdlab.analysis.statistics.sufficiency import (
    Sufficiency,
    build_models,
    compute_sufficiency,
    curve_covariance,
    describe_confounding,
    largest_difference,
    near_levels,
)
from tests.analysis.conftest import SETTINGS, build_study, make_trials

DECAYS, RATIOS = (0.75, 0.95, 0.985, 0.998), (1, 4, 16, 64)


def scored(score: Callable[[float, float], float], *, noise: float = 0.3) -> pd.DataFrame:
    """Four seeds of a 4 x 4 grid whose score is a function of 1/(1 - eta) and K/N."""
    trials = make_trials(
        seeds=range(4), decays=DECAYS, times=RATIOS, noise=noise, shape=lambda _: 0
    )
    ratio = trials["queue_size"] / trials["batch_size"]
    trace = 1 / (1 - trials["ema_decay"])
    added = [score(a, b) for a, b in zip(trace, ratio, strict=True)]
    return trials.assign(score=trials["score"] + 30 + np.array(added))


def sufficiency_of(trials: pd.DataFrame, **fields: Any) -> Sufficiency:
    study = StudyFrames("s", "sts_average", 0, trials, settings=SETTINGS, **fields)
    return compute_sufficiency(study, trials)


def test_a_curve_over_mtd_is_not_rejected() -> None:
    trials = scored(lambda a, b: -((np.log(a + b) - 3.5) ** 2))
    found = sufficiency_of(trials)
    assert found.answer == "not rejected"
    assert found.explained["mtd"] > 0.98 > found.explained["additive"]
    assert (found.cells["trials"].sum(), found.seeds, len(found.cells)) == (64, 4, 16)


def test_a_curve_that_is_steep_between_levels_is_not_rejected() -> None:
    """A spline does not follow it; equal levels and their neighbours do."""
    for middle in (5.0, 8.0, 20.0, 70.0):
        trials = scored(lambda a, b, at=middle: 10 / (1 + ((a + b) / at) ** -8.0), noise=0.1)
        found = sufficiency_of(trials)
        assert (found.answer, found.freedom["mtd"]) == ("not rejected", 9)


def test_without_nearly_equal_levels_it_cannot_be_tested() -> None:
    found = sufficiency_of(make_trials(decays=(0.5, 0.75), times=(1, 4, 16)))
    assert found.reason == "no two configurations have nearly equal MTD"


def test_what_a_curve_does_within_a_level_is_as_steep_as_beside_it() -> None:
    mtd = np.log([10.0, 10.5, 20.0, 40.0, 40.0])
    covariance = curve_covariance(np.array([0.0, 1.0, 8.0, 3.0, 5.0]), mtd)
    slope = 7.5 / (np.log(20) - np.log([10, 10.5]).mean())
    half = np.log(10.5 / 10) / 2
    expected = np.zeros((5, 5))
    expected[:2, :2] = (slope * half) ** 2 * np.array([[1, -1], [-1, 1]])
    assert covariance == pytest.approx(expected, abs=1e-9)
    assert not curve_covariance(np.arange(3.0), np.log([10.0, 10.0, 10.5])).any()


@pytest.mark.parametrize("count", [1, 700])
def test_levels_span_at_most_a_tenth_of_an_mtd(count: int) -> None:
    mtd = np.geomspace(2, 200, count)
    levels = near_levels(np.log(mtd))
    assert (levels.sum(axis=1) == 1).all()
    spans = [np.ptp(np.log(mtd[level > 0])) for level in levels.T]
    assert max(spans) <= np.log(1.1) + 1e-6
    assert levels.shape[1] == (1 if count == 1 else 47)


def test_an_effect_of_one_component_rejects_it() -> None:
    found = sufficiency_of(scored(lambda _, b: -np.log(b)))
    assert found.answer == "rejected"
    assert found.p_value < 0.001
    assert found.interaction_p > 0.05
    assert found.explained["queue_size"] > 0.98
    tests = found.tests.set_index(["base", "added"])["p_value"]
    assert tests["queue_size", "ema_decay"] > 0.05 > tests["ema_decay", "queue_size"]
    assert tests["queue_size", "mtd"] > 0.05
    high, low = found.cells.iloc[[found.pair.high_row, found.pair.low_row]].to_dict("records")
    assert (high["ratio"], low["ratio"]) == (1, 64)
    assert found.pair.difference.low < np.log(64) < found.pair.difference.high


def test_evaluation_items_are_counted_where_every_run_has_them() -> None:
    """Configurations differ by what 100 items do to them, and by little else."""
    trials = scored(lambda _a, _b: 0.0)
    rng = np.random.default_rng(4)
    configuration = trials.groupby(["ema_decay", "queue_size"]).ngroup()
    values = rng.normal(0, 20, size=(16, 100))[configuration]
    trials["score"] += values.mean(axis=1)
    items = ItemScores(trials["number"].to_numpy(), values, None, {"own": 100}, "digest")
    these, like = (
        sufficiency_of(trials, load_items=lambda counted=counted: counted)
        for counted in (None, items)
    )
    assert these.p_value < 0.001
    assert like.p_value > 0.05
    assert like.p_these == pytest.approx(these.p_value)
    assert (these.items, like.items) == (0, 100)
    assert these.pair.difference.low > 0 > like.pair.difference.low
    text = describe_sufficiency(like, POINTS)[0]
    assert "over seeds and 100 evaluation items, p < 0.001 for exactly these;" in text
    part = items.of(trials["number"].tolist()[1:])
    assert sufficiency_of(trials, load_items=lambda: part).items == 0


def test_configurations_beyond_the_run_are_left_out_of_the_test() -> None:
    # the score depends on MTD, and on being nearly frozen (0.998^160 = 0.73)
    trials = scored(lambda a, b: -np.log(a + b) + 5 * (a > 400)).assign(steps=160)
    found = sufficiency_of(trials)
    assert (found.answer, len(found.cells), len(found.left_out)) == ("not rejected", 12, 4)
    assert (
        "Left out, being beyond the run: MTD 501, 504, 516, 564"
        in describe_sufficiency(found, POINTS)[0]
    )
    kept = sufficiency_of(trials, beyond_run="keep")
    assert (len(kept.cells), kept.left_out) == (16, ())
    only = trials[trials["ema_decay"].isin([0.75, 0.998])]
    assert sufficiency_of(only).reason == "only queue_size varies within the run"


def test_intervals_of_the_figure_are_those_of_the_tested_runs() -> None:
    def intervals(trials: pd.DataFrame) -> pd.DataFrame:
        study = StudyFrames("s", "sts_average", 0, trials, settings=SETTINGS)
        found = topic.compute(StudyContext(study))
        assert found is not None
        return found.cells[["ema_decay", "ratio", "mean", "within_low", "within_high"]]

    trials = scored(lambda a, b: -np.log(a + b)).assign(steps=160, learning_rate=1e-3)
    tested = trials[trials["ema_decay"] < 0.998]
    expected = intervals(tested)
    assert (expected["within_low"] < expected["within_high"]).all()
    pd.testing.assert_frame_equal(intervals(trials), expected)
    other = tested[tested["queue_size"] == 64].assign(learning_rate=3e-3)
    other["score"] += 10 * np.random.default_rng(1).normal(size=len(other))
    pd.testing.assert_frame_equal(intervals(pd.concat([tested, other])), expected)


def test_an_interaction_is_found() -> None:
    found = sufficiency_of(scored(lambda a, b: -np.log(b) / a * 4))
    assert found.answer == "rejected"
    assert found.interaction_p < 0.001


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda trials: trials[trials["seed"] == 0], "needs three configurations or more"),
        (lambda trials: trials.iloc[:0], "no trial with a score has a recorded queue"),
        (lambda trials: trials.assign(state="FAIL"), "no trial with a score has a recorded queue"),
        (lambda trials: trials.assign(score=np.nan), "no trial with a score has a recorded queue"),
        (lambda trials: trials.assign(seed=range(len(trials))), "some configurations share no"),
        (lambda trials: trials[trials["ema_decay"] == 0.75], "only queue_size varies"),
        (lambda trials: trials[trials["queue_size"] == 64], "only ema_decay varies"),
    ],
)
def test_too_little_cannot_be_tested(
    change: Callable[[pd.DataFrame], pd.DataFrame], reason: str
) -> None:
    found = sufficiency_of(change(make_trials()))
    assert found.answer == "cannot be tested"
    assert found.reason.startswith(reason)


def test_equal_scores_give_no_significance() -> None:
    found = sufficiency_of(make_trials().assign(score=30.0))
    assert found.answer == "not rejected"
    assert found.p_value == pytest.approx(1)


def test_other_settings_are_held_at_one_value() -> None:
    """A shifted copy with another learning rate and fewer configurations is not used."""
    full = scored(lambda _, b: -np.log(b)).assign(learning_rate=1e-3)
    other = full[full["ema_decay"] < 0.99].assign(learning_rate=3e-3, score=0.0)
    both = pd.concat([other, full], ignore_index=True)
    alone, found = (sufficiency_of(trials) for trials in (full, both))
    assert found.p_value == pytest.approx(alone.p_value)
    assert found.cells["trials"].sum() == 64


def test_a_value_that_was_chosen_for_a_configuration_is_no_other_setting() -> None:
    trials = scored(lambda _, b: -np.log(b))
    rates = np.where(trials["ema_decay"] < 0.99, 1e-3, 3e-3)
    tuning = NuisanceTrials(("learning_rate",), (), 0, {}, trials.iloc[:0])
    alone = sufficiency_of(trials)
    found = sufficiency_of(trials.assign(learning_rate=rates), tuning=tuning)
    assert found.p_value == pytest.approx(alone.p_value)
    assert found.cells["trials"].tolist() == alone.cells["trials"].tolist()


def test_a_share_of_the_queue_is_part_of_the_queue() -> None:
    trials = scored(lambda _, b: -np.log(b))
    shared = trials.assign(initial_queue_size=trials["queue_size"] // 4)
    assert sufficiency_of(shared).cells["trials"].sum() == 64


def test_missing_runs_are_left_out() -> None:
    trials = scored(lambda _, b: -np.log(b))
    trials.loc[[0, 5, 9], "state"] = "FAIL"
    found = sufficiency_of(trials)
    assert (found.answer, found.cells["trials"].sum()) == ("rejected", 61)


def test_the_largest_difference_is_between_near_levels_alone() -> None:
    rng = np.random.default_rng(0)
    mtd = np.array([10.0, 10.5, 20.0, 40.0, 43.0])
    scores = np.array([0.0, 1.0, 9.0, 3.0, 5.0]) + rng.normal(scale=0.1, size=(6, 5))
    pair = largest_difference(scores, mtd)
    assert (pair.high_row, pair.low_row) == (4, 3)
    paired = stats.ttest_rel(scores[:, 4], scores[:, 3]).confidence_interval(0.975)
    assert (pair.difference.low, pair.difference.high) == pytest.approx((paired.low, paired.high))
    assert largest_difference(scores, mtd**2) is None
    scores[1:, 3] = np.nan
    alone = largest_difference(scores, mtd)
    assert (alone.high_row, alone.low_row) == (1, 0)


def test_strata_of_mtd_have_a_level_of_their_own() -> None:
    ratio = np.array([1, 2, 3, 1, 4, 9, 1, 9, 28], dtype=float)
    mtd = np.repeat([8.0, 15.0, 40.0], 3)
    models = build_models(mtd - ratio, ratio)
    assert np.linalg.matrix_rank(models.null["mtd"]) == 3
    assert (models.null["mtd"].sum(axis=0) == 3).all()


def crossed(decays: tuple[float, ...], ratios: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    eta, ratio = np.meshgrid(decays, ratios)
    return eta.ravel(), ratio.ravel()


@pytest.mark.parametrize(
    ("design", "text"),
    [
        (crossed(DECAYS, RATIOS), ""),
        (crossed((0.75, 0.85), (1, 2, 4, 8)), ""),
        (crossed((0.75, 0.85, 0.95), (1, 8, 64)), "all configurations of MTD 68 to 84 have 64"),
        (crossed((0.1, 0.2, 0.3), (8, 16, 32, 64)), "the correlation of their logarithms is 1.00"),
        (crossed((0.5, 0.75), (8,)), "Only η varies"),
        (crossed((0.5,), (1, 8)), "Only K/N varies"),
        (crossed((0.5,), (8,)), ""),
        (crossed((0.5, 0.75), (0,)), ""),
    ],
)
def test_confounded_designs_are_pointed_out(
    design: tuple[np.ndarray, np.ndarray], text: str
) -> None:
    found = describe_confounding(*design)
    assert (text in found) if text else (found == "")


def test_the_section_answers_in_two_sentences() -> None:
    trials = scored(lambda _, b: -np.log(b))
    contents = topic.build(StudyContext(build_study(trials)))
    first, second = contents.text
    assert first.startswith("MTD alone does not determine the score here")
    assert "(p < 0.001 over seeds, for these items; 16 configurations, 4 seeds, 64" in first
    assert "the largest difference at nearly equal MTD is" in second
    assert "K/N 1 (MTD" in second
    (table,) = contents.tables
    assert table.rows[0][0] == "MTD"
    assert len(table.rows) == 7
    assert "MTD alone does not determine" in contents.figures["sufficiency"].alt


def test_the_section_states_what_cannot_be_tested() -> None:
    contents = topic.build(StudyContext(build_study(make_trials(times=(8,)))))
    assert contents.missing == (
        "Whether MTD alone determines the score cannot be tested here: only ema_decay varies."
    )
    assert not contents.tables
    assert not contents.figures
    assert topic.build(StudyContext(build_study(make_trials(decays=(0.75,), times=(8,))))) is None


def load_evidence() -> ModuleType:
    path = Path(__file__).parents[2] / "evidence" / "sufficiency.py"
    spec = importlib.util.spec_from_file_location("evidence_sufficiency", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_false_rejections_are_few_and_effects_are_found() -> None:
    """150 data sets per cell detect large errors only; tests/evidence has the full simulation."""
    table = load_evidence().rows(150, 1)
    assert len(table) == 5 * (4 * 8 + 5) * 4 * 3
    assert (table["low99"] <= table["rejected"]).all()
    assert (table["rejected"] <= table["high99"]).all()
    null = table[table["null"]]
    # of so many cells some are above their own bound by chance
    assert (null["rejected"] <= stats.binom.isf(0.01 / len(null), 150, 0.05) / 150).all()
    cells = table.set_index(["question", "design", "truth", "variances", "seeds"])["rejected"]
    assert cells["MTD sufficient", "stratified", "K/N alone", "equal", 3] > 0.9
    assert cells["interaction", "queue-and-decay", "interaction", "equal", 10] > 0.9


def test_distance_of_the_designs_is_that_of_the_formula() -> None:
    trace, ratio = load_evidence().DESIGNS["figure 2"]
    assert (trace + ratio)[-1] == pytest.approx(d_trace(0.95, 64, 64))
    assert len(trace) == 9
