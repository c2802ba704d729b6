"""The best trial: selection score, bias of selecting by the reported score, optimism."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import trials
from mtdlab.analysis.statistics.best_trial import (
    compute_choices,
    estimate_spread,
    expected_maximum,
)
from tests.analysis.conftest import build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


@pytest.fixture
def study() -> StudyFrames:
    """24 runs of 8 configurations, whose dev scores are the test scores in reverse."""
    study = dataclasses.replace(build_study(make_trials()), metric="sts_test", select_by="sts_dev")
    dev = study.trials[["number"]].assign(task="sts_dev", score=90 - study.trials["score"])
    return dataclasses.replace(study, scores=dev[["number", "task", "score"]])


# Harter, Expected values of normal order statistics, Biometrika 48 (1961), table 1
@pytest.mark.parametrize(
    ("n", "expected"), [(1, 0.0), (2, 0.56419), (5, 1.16296), (10, 1.53875), (100, 2.50759)]
)
@pytest.mark.parametrize("shared", [False, True])
def test_the_expected_maximum_of_independent_values_is_the_tabulated_one(
    n: int, expected: float, shared: bool
) -> None:
    """Of n seeds with one run each, or of one seed with n independent runs."""
    counts = [1] * n if shared else [n]
    spread = (3.0, 0.0) if shared else (0.0, 3.0)
    assert expected_maximum(counts, *spread) == pytest.approx(3 * expected, abs=3e-3)


@pytest.mark.parametrize("counts", [[8, 8, 8], [9, 4, 1, 1], [1] * 12])
def test_correlated_values_have_the_simulated_expected_maximum(counts: list[int]) -> None:
    random = np.random.default_rng(0)
    draws = 20_000
    spread = (1.5, 0.7)
    highest = np.full(draws, -np.inf)
    for count in counts:
        own = spread[1] * random.normal(size=(draws, count)).max(axis=1)
        highest = np.maximum(highest, spread[0] * random.normal(size=draws) + own)
    error = 4 * highest.std() / math.sqrt(draws)
    assert expected_maximum(counts, *spread) == pytest.approx(highest.mean(), abs=error)


def test_the_expected_maximum_is_nan_or_0_with_the_spread() -> None:
    assert math.isnan(expected_maximum([3], math.nan, math.nan))
    assert expected_maximum([3], 0.0, 0.0) == 0


def test_the_spread_is_recovered_also_with_missing_runs() -> None:
    random = np.random.default_rng(0)
    configurations, seeds = (grid.ravel() for grid in np.indices((40, 60)))
    values = random.normal(scale=9, size=40)[configurations]
    values = values + random.normal(scale=2, size=60)[seeds] + random.normal(size=2400)
    kept = random.random(2400) < 0.7
    spread = estimate_spread(values[kept], configurations[kept], seeds[kept])
    assert spread[1] == pytest.approx(1, abs=0.06)
    assert spread[0] == pytest.approx(2, abs=0.5)


def test_the_spread_of_a_complete_table_is_that_of_its_mean_squares() -> None:
    table = np.random.default_rng(1).normal(size=(5, 4))
    configurations, seeds = (grid.ravel() for grid in np.indices(table.shape))
    residual = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    run = (residual**2).sum() / (4 * 3)
    within = table.var(axis=1, ddof=1).mean()
    found = estimate_spread(table.ravel(), configurations, seeds)
    assert found[1] == pytest.approx(math.sqrt(run))
    assert found[0] == pytest.approx(math.sqrt(max(within - run, 0)))


def test_one_configuration_has_one_deviation_and_one_seed_has_none() -> None:
    values, index, zeros = np.array([1.0, 2.0, 6.0]), np.arange(3), np.zeros(3, dtype=np.int64)
    assert estimate_spread(values, zeros, index)[1] == pytest.approx(values.std(ddof=1))
    assert estimate_spread(values, zeros, index)[0] == 0
    assert math.isnan(estimate_spread(values, index, zeros)[1])


def test_the_name_of_a_score_may_hold_what_is_no_utf_8(study: StudyFrames) -> None:
    odd = dataclasses.replace(study, metric="a\ud800")
    assert compute_choices(odd)["chosen_by"].tolist() == ["sts_dev", "a\ud800"]


def test_each_score_chooses_its_trial(study: StudyFrames) -> None:
    by_dev, by_test = compute_choices(study).itertuples()
    runs = study.trials
    lowest, highest = (
        runs.loc[place] for place in (runs["score"].idxmin(), runs["score"].idxmax())
    )
    assert (by_dev.chosen_by, by_dev.number) == ("sts_dev", lowest["number"])
    assert (by_dev.score, by_dev.value) == pytest.approx((lowest["score"], 90 - lowest["score"]))
    assert (by_test.chosen_by, by_test.number) == ("sts_test", highest["number"])
    chosen = (by_test.value, by_test.score, by_test.slope)
    assert chosen == pytest.approx((highest["score"], highest["score"], 1))
    assert by_dev.slope == pytest.approx(-1)
    same = runs[(runs["ema_decay"] == lowest["ema_decay"]) & (runs["mtd"] == lowest["mtd"])]
    assert by_dev.configuration_mean == pytest.approx(same["score"].mean())
    assert (by_dev.configuration_trials, by_dev.n) == (3, 24)
    spread = by_dev.seed_sd, by_dev.trial_sd
    assert by_dev.optimism == pytest.approx(expected_maximum([8, 8, 8], *spread))
    assert by_dev.score_optimism == pytest.approx(-by_dev.optimism)
    assert by_dev.trial_sd == pytest.approx(0.2, abs=0.1)


@pytest.mark.slow
def test_the_optimism_covers_what_selection_adds() -> None:
    """24 runs of equal true mean: the excess of the best over it, averaged over 80 studies."""
    excess, estimates = [], []
    for draw in range(80):
        runs = make_trials(shape=lambda _: 40.0, draw=draw, noise=1.0)
        runs["score"] -= runs.groupby("seed")["score"].transform("mean") - 40  # no seed effect
        runs["score"] += np.random.default_rng(draw).normal(size=3)[runs["seed"]]
        (choice,) = compute_choices(
            dataclasses.replace(build_study(runs), metric="sts_dev", select_by="sts_dev")
        ).itertuples()
        excess.append(choice.value - 40)
        estimates.append(choice.optimism)
    error = 4 * (np.std(excess) + np.std(estimates)) / math.sqrt(80)
    assert np.mean(estimates) == pytest.approx(np.mean(excess), abs=error)


def test_the_page_names_both_scores_and_what_choosing_by_the_reported_one_adds(
    study: StudyFrames,
) -> None:
    contents = trials.BEST.build(StudyContext(study))
    text = " ".join(contents.text)
    scores = study.trials["score"]
    assert f"makes it {scores.max() - scores.min():.2f} points higher on these trials." in text
    assert "expected maximum of normal values, Tippett 1925" in text
    (table,) = contents.tables
    assert [row[0] for row in table.rows] == ["sts_dev", "sts_test"]
    assert table.rows[0][4:6] == (f"{90 - scores.min():.2f}", f"{scores.min():.2f}")
    assert contents.csv["best_trial"]["score_optimism"].notna().all()


def test_an_mtd_is_written_rounded(study: StudyFrames, tmp_path: Path) -> None:
    runs = study.trials.assign(mtd=124 / 3)
    report_of(dataclasses.replace(study, trials=runs), tmp_path, trials.BEST)
    table = pd.read_csv(tmp_path / "tables" / "best_trial.csv", dtype="str")
    assert table["mtd"].tolist() == [format_mtd(124 / 3)] * 2 == ["41.3"] * 2


def test_a_study_without_select_by_is_ranked_by_its_metric_and_says_so(study: StudyFrames) -> None:
    old = dataclasses.replace(study, select_by="")
    contents = trials.BEST.build(StudyContext(old))
    assert contents.csv["best_trial"]["chosen_by"].tolist() == ["sts_test", "sts_dev"]
    text = " ".join(contents.text)
    assert "Choosing by sts_test, the score that is reported, makes it" in text
    # also one whose dev scores were not recorded
    bare = trials.BEST.build(StudyContext(dataclasses.replace(old, scores=study.scores.iloc[:0])))
    assert bare is not None
    [table] = bare.tables
    assert [row[0] for row in table.rows] == ["sts_test"]


def test_one_seed_gives_no_optimism_and_no_run_no_section() -> None:
    one = dataclasses.replace(build_study(make_trials(seeds=(0,))), select_by="sts_dev")
    contents = trials.BEST.build(StudyContext(one))
    assert "By how much cannot be estimated here" in contents.text[-1]
    assert trials.BEST.build(StudyContext(build_study(make_trials().iloc[:0]))) is None
    unranked = dataclasses.replace(one, scores=one.scores.iloc[:0])
    assert trials.BEST.build(StudyContext(unranked)) is None


def test_the_table_of_trials_has_the_score_that_ranks_them(study: StudyFrames) -> None:
    contents = trials.build(StudyContext(study))
    table = contents.tables[-1]
    labels = [column.label for column in table.columns]
    assert "sts_dev" in labels
    written = contents.csv["trials"]
    np.testing.assert_allclose(written["sts_dev"], 90 - written["score"])
    many = dataclasses.replace(study, trials=pd.concat([study.trials] * 20, ignore_index=True))
    many.trials["number"] = range(len(many.trials))
    dev = many.trials[["number"]].assign(task="sts_dev", score=90 - many.trials["score"])
    written = trials.build(StudyContext(dataclasses.replace(many, scores=dev))).csv["trials"]
    chosen, _ = trials._choose(written, "sts_dev", lowest_first=False)
    assert written["sts_dev"].nlargest(200).index.isin(chosen.index).all()
