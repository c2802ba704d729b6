"""Trials are ranked by `select_by`, not by the metric that is reported."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from stub_store import claim_trial, end_trial, new_store

from mtdlab import load_study
from mtdlab.config.study import PlannedTrial, StudySpec
from mtdlab.errors import MtdlabError
from mtdlab.store.claims import Result
from mtdlab.store.ranking import FinishedTrial
from mtdlab.sweep import run as runs
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.progress import SweepTally
from tests.tiny_studies import TinyStudy

Ranked = Callable[..., StudySpec]
Sweep = Callable[..., tuple[runs.SweepResult, optuna.Study, pd.DataFrame]]


@pytest.fixture
def ranked(tiny_study: TinyStudy) -> Ranked:
    return partial(tiny_study, {"steps": 6}, study="ranked")


@pytest.fixture
def sweep(ranked: Ranked, url: str, tmp_path: Path) -> Sweep:
    """The result, Optuna's study, and the trials with their dev and test scores."""

    def call(**keys: Any) -> tuple[runs.SweepResult, optuna.Study, pd.DataFrame]:
        spec = ranked(**keys)
        result = runs.sweep(spec, url, runs.Execution(jobs=1), models=tmp_path / "models")
        study = load_study("ranked", url)
        assert study.select_by == spec.select_by
        scores = study.scores.pivot_table(index="number", columns="task", values="score")
        opened = optuna.load_study(study_name="ranked", storage=url)
        return result, opened, study.trials.merge(scores, on="number")

    return call


@pytest.mark.parametrize("select_by", [pytest.param("sts_dev", marks=pytest.mark.slow), "sts_test"])
def test_optunas_values_and_the_best_trial_are_by_select_by(
    sweep: Sweep, tmp_path: Path, select_by: str
) -> None:
    result, opened, trials = sweep(select_by=select_by)
    assert opened.user_attrs.items() >= {"select_by": select_by, "metric": "sts_test"}.items()
    assert [trial.value for trial in opened.trials] == trials[select_by].tolist()
    reported = [trial.user_attrs["sts_test"] for trial in opened.trials]
    assert reported == trials["sts_test"].tolist() == trials["score"].tolist()
    assert not trials["sts_dev"].equals(trials["sts_test"])
    best = trials.loc[trials[select_by].idxmax()]
    assert opened.best_trial.number == best["number"]
    shown = result.best
    assert (shown.number, shown.ranking) == (best["number"], best[select_by])
    assert (result.metric, result.select_by) == ("sts_test", select_by)
    assert shown.score == best["sts_test"]
    card = (tmp_path / "models" / "ranked" / "README.md").read_text()
    assert f"for the highest {select_by} of the study's trials" in card
    assert f"| trial | {best['number']} |" in card


@pytest.mark.slow
def test_a_pruner_compares_the_scores_that_rank_the_trials(sweep: Sweep) -> None:
    _, opened, trials = sweep(pruner="median")
    done = [trial for trial in opened.trials if trial.state.name == "COMPLETE"]
    assert len(done) >= 5  # a median pruner starts after five trials
    for trial in done:
        # the checkpoint's dev score is the highest of those that the pruner saw
        assert list(trial.intermediate_values) == [2, 4, 6]
        assert trial.value == pytest.approx(max(trial.intermediate_values.values()), rel=1e-6)
    assert {trial.number for trial in done} == set(trials["number"])


@pytest.mark.slow
def test_a_tpe_sampler_learns_from_the_dev_score(sweep: Sweep) -> None:
    search = {"ema_decay": {"low": 0.5, "high": 0.9}}
    _, opened, trials = sweep(search=search, sampler="tpe", trials=2)
    assert [trial.value for trial in opened.trials] == trials["sts_dev"].tolist()


def test_a_study_keeps_its_select_by(ranked: Ranked, sweep: Sweep, url: str) -> None:
    claim_trial(open_study(ranked(), url))
    with pytest.raises(MtdlabError, match=r"\(select_by: was sts_dev, now sts_test\)"):
        sweep(select_by="sts_test")


def test_an_average_ranks_trials_too(url: str) -> None:
    """It is no task of its own, so that its value is recorded beside the tasks' scores."""
    planned = [PlannedTrial(name, 0, {}) for name in "abcd"]
    store = new_store(url, *planned, identity={"sampler": "grid", "select_by": "sts_average"})
    for number, average in enumerate([50.0, 60.0, 60.0]):
        scores = {"sts_average": average, "sts_test": 40.0 - number}
        end_trial(store, Result("COMPLETE", values={"score": 40.0 - number}, scores=scores))
    best = store.best_trial()
    assert (best.number, best.score, best.ranking) == (1, 39.0, 60.0)
    assert store.study().select_by == "sts_average"


def test_the_progress_line_shows_the_best_by_the_score_that_ranks() -> None:
    tally = SweepTally(planned=3, finished=0, jobs=1, select_by="sts_dev")
    for number, (score, ranking) in enumerate([(50.0, 60.0), (49.0, 61.0), (70.0, 59.0)]):
        trial = FinishedTrial(number, 0, {}, "COMPLETE", score=score, ranking=ranking, mtd=5.0)
        tally.add(trial)
    assert tally.summary() == "best sts_dev 61.00"
