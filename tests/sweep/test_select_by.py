"""Trials are ranked by `select_by`, not by the metric that is reported."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from stub_store import end_trial, new_store

from mtdlab import load_study
from mtdlab.config import Unit
from mtdlab.errors import MtdlabError
from mtdlab.store import FinishedTrial, Result
from mtdlab.store.owner import this_process
from mtdlab.sweep import run as runs
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.progress import Tally
from tests.sweep.conftest import TinyStudy

ReadStudy = Callable[..., Any]


@pytest.fixture
def spec_of(tiny_study: TinyStudy) -> ReadStudy:
    def read(select_by: str = "sts_dev", pruner: str = "none", **keys: Any) -> Any:
        return tiny_study({"steps": 6}, study="ranked", select_by=select_by, pruner=pruner, **keys)

    return read


def sweep(spec: Any, place: Path) -> tuple[runs.SweepResult, optuna.Study, pd.DataFrame]:
    """The result, Optuna's study, and the trials with their dev and test scores."""
    url = f"sqlite:///{place / 's.db'}"
    result = runs.sweep(spec, url, models=place / "models", jobs=1)
    study = load_study(spec.name, url)
    assert study.select_by == spec.select_by
    scores = study.scores.pivot_table(index="number", columns="task", values="score")
    opened = optuna.load_study(study_name=spec.name, storage=url)
    return result, opened, study.trials.merge(scores, on="number")


@pytest.mark.parametrize("select_by", ["sts_dev", "sts_test"])
def test_optunas_values_and_the_best_trial_are_by_select_by(
    spec_of: ReadStudy, tmp_path: Path, select_by: str
) -> None:
    result, opened, trials = sweep(spec_of(select_by), tmp_path)
    assert opened.user_attrs.items() >= {"select_by": select_by, "metric": "sts_test"}.items()
    assert [trial.value for trial in opened.trials] == trials[select_by].tolist()
    reported = [trial.user_attrs["sts_test"] for trial in opened.trials]
    assert reported == trials["sts_test"].tolist() == trials["score"].tolist()
    assert not trials["sts_dev"].equals(trials["sts_test"])
    best = trials.loc[trials[select_by].idxmax()]
    assert opened.best_trial.number == best["number"]
    assert result.best is not None
    assert (result.best.number, result.best.ranking) == (best["number"], best[select_by])
    assert (result.metric, result.select_by, result.best.score) == (
        "sts_test",
        select_by,
        best["sts_test"],
    )
    card = (tmp_path / "models" / "ranked" / "README.md").read_text()
    assert f"for the highest {select_by} of the study's trials" in card
    assert f"| trial | {best['number']} |" in card


def test_a_pruner_compares_the_scores_that_rank_the_trials(
    spec_of: ReadStudy, tmp_path: Path
) -> None:
    _, opened, trials = sweep(spec_of(pruner="median"), tmp_path)
    done = [trial for trial in opened.trials if trial.state.name == "COMPLETE"]
    assert len(done) >= 5  # a median pruner starts after five trials
    for trial in done:
        # the checkpoint's dev score is the highest of those that the pruner saw
        assert list(trial.intermediate_values) == [2, 4, 6]
        assert trial.value == pytest.approx(max(trial.intermediate_values.values()), rel=1e-6)
    assert {trial.number for trial in done} == set(trials["number"])


def test_a_tpe_sampler_learns_from_the_dev_score(spec_of: ReadStudy, tmp_path: Path) -> None:
    drawn = {"search": {"ema_decay": {"low": 0.5, "high": 0.9}}, "sampler": "tpe", "trials": 2}
    _, opened, trials = sweep(spec_of(**drawn), tmp_path)
    assert [trial.value for trial in opened.trials] == trials["sts_dev"].tolist()


def test_a_study_keeps_its_select_by(spec_of: ReadStudy, tmp_path: Path) -> None:
    store = open_study(spec_of("sts_dev"), f"sqlite:///{tmp_path / 's.db'}", "")
    assert store.claim(this_process()) is not None
    with pytest.raises(MtdlabError, match=r"\(select_by: was sts_dev, now sts_test\)"):
        sweep(spec_of("sts_test"), tmp_path)


def test_an_average_ranks_trials_too(tmp_path: Path) -> None:
    """It is no task of its own, so that its value is recorded beside the tasks' scores."""
    url, units = f"sqlite:///{tmp_path / 'a.db'}", [Unit(name, 0, {}) for name in "abcd"]
    store = new_store(url, *units, identity={"sampler": "grid", "select_by": "sts_average"})
    for number, average in enumerate([50.0, 60.0, 60.0]):
        scores = {"sts_average": average, "sts_test": 40.0 - number}
        end_trial(store, Result("COMPLETE", values={"score": 40.0 - number}, scores=scores))
    best = store.best_trial()
    assert best is not None
    assert (best.number, best.score, best.ranking) == (1, 39.0, 60.0)
    assert store.select_by("sts_test") == "sts_average"


def test_the_progress_line_shows_the_best_by_the_score_that_ranks() -> None:
    tally = Tally(planned=3, finished=0, jobs=1, select_by="sts_dev")
    for number, (score, ranking) in enumerate([(50.0, 60.0), (49.0, 61.0), (70.0, 59.0)]):
        trial = FinishedTrial(number, 0, {}, "COMPLETE", score=score, ranking=ranking, mtd=5.0)
        tally.add(trial)
    assert tally.summary() == "best sts_dev 61.00"
