"""Sweeps: resumed, interrupted, shared, refused. Training itself is replaced."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from sqlalchemy import Engine, event
from stub_store import begin_trial, study_row

from mtdlab import load_study
from mtdlab.analysis.data.tasks import STS
from mtdlab.errors import MtdlabError, StorageError, TrialError
from mtdlab.evaluation.suite import Evaluation, TaskScore
from mtdlab.settings import TrainerSettings
from mtdlab.store import database
from mtdlab.store import owner as owners
from mtdlab.store.claims import Result
from mtdlab.store.store import open_store
from mtdlab.sweep import run as runs
from mtdlab.sweep.open_study import open_study
from mtdlab.training.inputs import EncoderScores
from mtdlab.training.loop import Outcome
from mtdlab.trial import results, trainer
from mtdlab.trial import worker as workers
from mtdlab.trial.signals import Interrupted
from tests.conftest import Written

GRID = """
study: small
trainer: {batch_size: 8, steps: 4, evaluate_every: 2}
search:
  ema_decay: [0.5, 0.75]
  queue_size: {times: batch_size, values: [1, 2]}
  initial_queue_size: [0]
seeds: [0, 1]
"""
SAMPLED = """
study: drawn
metric: sts_dev
trainer: {batch_size: 8, initial_queue_size: 0}
search:
  ema_decay: {low: 0.5, high: 0.9}
  queue_size: {low: 8, high: 64, step: 8}
sampler: SAMPLER
trials: 3
seeds: [0, 1]
"""
ONE_SEED = GRID.replace("seeds: [0, 1]", "seeds: [0]")
pytestmark = pytest.mark.usefixtures("no_inputs")
Objective = Callable[[TrainerSettings, Any], Result]
Sweep = Callable[..., runs.SweepResult]
TRAIN = trainer.train_trial


def score(settings: TrainerSettings, _watch: Any) -> Result:
    """The dev score ranks the queue sizes in the other order than the test score."""
    test = settings.ema_decay * 10 + settings.queue_size / 100 + settings.seed
    scores = {"sts_dev": test + 20 - settings.queue_size / 10, "sts_test": test}
    return Result("COMPLETE", values={"score": test, "wall_seconds": 0.1}, scores=scores)


@pytest.fixture(autouse=True)
def objective(monkeypatch: pytest.MonkeyPatch) -> Callable[[Objective], None]:
    def replace(function: Objective) -> None:
        monkeypatch.setattr(
            trainer, "train_trial", lambda watch: (function(watch.settings, watch), None)
        )

    replace(score)
    return replace


@pytest.fixture
def sweep(written: Written, url: str) -> Sweep:
    """Run a study file."""
    return lambda text, **options: runs.sweep(written(text), url, runs.Execution(jobs=1, **options))


def optuna_trials(url: str, name: str = "small") -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name=name, storage=url).trials


def settings_done(url: str, name: str = "small") -> list[tuple[float, int, int]]:
    trials = load_study(name, url).trials
    done = trials[trials["state"] == "COMPLETE"]
    return sorted(zip(done["ema_decay"], done["queue_size"], done["seed"], strict=True))


ALL = sorted((eta, size, seed) for eta in (0.5, 0.75) for size in (8, 16) for seed in (0, 1))


def test_a_sweep_does_every_setting_once_with_every_seed(sweep, url) -> None:
    result = sweep(GRID)
    assert (result.ran, result.counts, result.exit_code) == (8, {"COMPLETE": 8}, 0)
    assert settings_done(url) == ALL
    again = sweep(GRID)
    assert (again.ran, again.counts) == (0, {"COMPLETE": 8})


def test_what_a_grid_skips_may_become_less_but_not_more(sweep, url) -> None:
    skip = "skip: [{ema_decay: 0.75, queue_size: 2}]\n"
    assert sweep(GRID + skip).counts == {"COMPLETE": 6}
    assert (0.75, 16, 0) not in settings_done(url)
    more = "skip: [{ema_decay: 0.75}]\n"
    with pytest.raises(MtdlabError, match=r"holds 2 trials that the file no longer has"):
        sweep(GRID + more)
    assert sweep(GRID).ran == 2
    assert settings_done(url) == ALL
    with pytest.raises(MtdlabError, match=r"holds 2 trials that the file no longer has"):
        sweep(GRID + skip)


def test_a_profile_is_a_study_of_its_own(written, sweep, url) -> None:
    text = GRID + "profiles: {small: {search: {ema_decay: [0.5]}, seeds: [0]}}\n"
    small = written(text, profile="small")
    assert runs.sweep(small, url, runs.Execution(jobs=1)).counts == {"COMPLETE": 2}
    assert sweep(text).counts == {"COMPLETE": 8}
    assert settings_done(url, "small-small") == [(0.5, 8, 0), (0.5, 16, 0)]


def test_optuna_opens_the_study_and_finds_the_words_in_its_trials(sweep, url, tmp_path) -> None:
    sweep(GRID)
    opened = optuna.load_study(study_name="small", storage=url)
    assert len(opened.trials) == 8
    assert opened.best_value == pytest.approx(7.5 + 0.08 + 1 + 20 - 0.8)
    scores = {"select_by": "sts_dev", "metric": "sts_test"}
    assert opened.user_attrs == scores | {"folder": str(tmp_path)}
    attributes = opened.best_trial.user_attrs
    expected = {"ema_decay": 0.75, "queue_size": 8, "batch_size": 8, "seed": 1, "mtd": 5.0}
    assert attributes.items() >= expected.items()
    assert attributes["sts_test"] == pytest.approx(7.5 + 0.08 + 1)
    drawn = {"ema_decay": 0.75, "queue_size/batch_size": 1, "initial_queue_size": 0}
    assert opened.best_trial.params == drawn


def test_a_failed_trial_is_recorded_with_its_reason_and_the_sweep_goes_on(
    sweep, url, objective
) -> None:
    def fails_once(settings: TrainerSettings, watch: Any) -> Result:
        if settings.ema_decay == 0.75 and settings.queue_size == 8 and settings.seed == 1:
            return Result("FAIL", "the loss is nan at step 3")
        return score(settings, watch)

    objective(fails_once)
    result = sweep(GRID)
    assert (result.counts, result.exit_code) == ({"COMPLETE": 7, "FAIL": 1}, 3)
    trials = load_study("small", url).trials
    assert trials.loc[trials["state"] == "FAIL", "reason"].tolist() == ["the loss is nan at step 3"]
    recorded = optuna_trials(url)
    failed = [trial for trial in recorded if trial.value is None]
    assert [t.user_attrs["reason"] for t in failed] == ["the loss is nan at step 3"]

    objective(score)
    assert sweep(GRID).ran == 0
    retried = sweep(GRID, retry_failed=True)
    assert (retried.ran, retried.counts, retried.exit_code) == (1, {"COMPLETE": 8}, 0)


def test_what_breaks_in_training_is_a_failed_trial(sweep, url, monkeypatch) -> None:
    expected = {
        TrialError("the loss is inf at step 2"): "the loss is inf at step 2",
        MemoryError(): "oom: out of memory",
        RuntimeError("CUDA out of memory. Tried"): "oom: out of memory",
        ZeroDivisionError("division by zero"): "ZeroDivisionError: division by zero",
        SystemExit(3): "SystemExit: 3",
        GeneratorExit(): "GeneratorExit",
    }
    errors = iter(expected)

    def broken(*_: object) -> None:
        raise next(errors)

    monkeypatch.setattr(trainer, "train_trial", TRAIN)
    monkeypatch.setattr(trainer, "load_inputs", broken)
    result = sweep(GRID.replace("0.75]", "0.75, 0.9]").replace("values: [1, 2]", "values: [1]"))
    assert result.counts == {"FAIL": 6}
    assert load_study("small", url).trials["reason"].tolist() == [*expected.values()]


def test_a_sweep_ends_when_too_many_trials_have_failed(sweep, url, objective) -> None:
    def fails_with_seed_0(settings: TrainerSettings, watch: Any) -> Result:
        if settings.seed == 0:
            return Result("FAIL", "the loss is nan at step 3", reason_code="nan_loss")
        return score(settings, watch)

    objective(fails_with_seed_0)
    for ran in (2, 0):
        ended = sweep(GRID, max_failed=2)
        assert (ended.ran, ended.exit_code, ended.too_many_failed) == (ran, 1, True)
        assert ended.counts == {"FAIL": 2, "WAITING": 6}
    assert [row.reason_code for row in ended.failures] == ["nan_loss"] * 2
    assert sweep(GRID, max_failed=5).exit_code == 3
    codes = load_study("small", url).trials.groupby("state")["reason_code"].unique()
    assert (list(codes["FAIL"]), list(codes["COMPLETE"])) == (["nan_loss"], [""])


def test_an_interrupted_trial_goes_back_to_waiting_and_is_taken_again(
    sweep, url, objective
) -> None:
    calls = []

    def interrupted_third(settings: TrainerSettings, watch: Any) -> Result:
        calls.append(settings)
        if len(calls) == 3:
            watch.run.stop.request()
            raise Interrupted
        return score(settings, watch)

    objective(interrupted_third)
    stopped = sweep(GRID)
    assert (stopped.ran, stopped.exit_code) == (2, 130)
    assert stopped.counts == {"COMPLETE": 2, "WAITING": 6}
    states = [t.state.name for t in optuna_trials(url)]
    assert states == ["COMPLETE", "COMPLETE"]
    assert sweep(GRID).counts == {"COMPLETE": 8}
    assert settings_done(url) == ALL
    assert len(optuna_trials(url)) == 8


def test_an_error_that_ends_a_sweep_releases_its_trial(sweep, objective) -> None:
    """The process may live on, as that of a notebook."""

    def locked(_settings: TrainerSettings, _watch: Any) -> Result:
        raise StorageError("the database is locked")

    objective(locked)
    with pytest.raises(StorageError, match="is locked"):
        sweep(ONE_SEED)
    objective(score)
    assert sweep(ONE_SEED).counts == {"COMPLETE": 4}


@pytest.mark.parametrize("killed_after", ["claim", "begin", "finish"])
def test_what_a_killed_worker_left_is_repaired(written, sweep, url, killed_after: str) -> None:
    """A process that ends between any two transactions costs nothing but its own trial."""
    dead = owners.this_process() | {"started": "0"}
    store = open_study(written(ONE_SEED), url)
    if killed_after == "claim":
        assert store.claim(dead) is not None
    else:
        claim = begin_trial(store, dead, {"steps": 4}, 3.0)
    if killed_after == "finish":
        scores = {"sts_dev": 70.0, "sts_test": 9.0}
        assert store.finish(claim, Result("COMPLETE", values={"score": 9.0}, scores=scores))
    assert sweep(ONE_SEED).counts == {"COMPLETE": 4}
    if killed_after == "finish":
        best = optuna.load_study(study_name="small", storage=url).best_trial
        assert (best.value, best.user_attrs["sts_test"]) == (70.0, 9.0)
    assert settings_done(url) == ALL[::2] or killed_after == "finish"
    assert [trial.state.name for trial in optuna_trials(url)] == ["COMPLETE"] * 4


def test_a_live_owners_trial_is_left_alone(written, sweep, url) -> None:
    store = open_study(written(ONE_SEED), url)
    assert store.claim(owners.this_process()) is not None
    assert sweep(ONE_SEED).counts == {"COMPLETE": 3, "RUNNING": 1}


def test_a_worker_that_lost_its_trial_discards_its_result(sweep, objective) -> None:
    thief = {"host": "elsewhere"}

    def robbed(settings: TrainerSettings, watch: Any) -> Result:
        if settings.queue_size == 8 and settings.ema_decay == 0.5:
            assert watch.run.study.store.release(watch.run.claim)
            assert watch.run.study.store.claim(thief) is not None
        return score(settings, watch)

    objective(robbed)
    assert sweep(ONE_SEED).counts == {"COMPLETE": 3, "RUNNING": 1}


@pytest.mark.parametrize(
    "sampler", ["tpe", *(pytest.param(name, marks=pytest.mark.slow) for name in ("random", "qmc"))]
)
def test_a_sampled_study_draws_once_for_all_seeds(sweep, url, sampler: str) -> None:
    assert sweep(SAMPLED.replace("SAMPLER", sampler)).counts == {"COMPLETE": 6}
    trials = load_study("drawn", url).trials
    pairs = trials.groupby("seed")[["ema_decay", "queue_size"]]
    first, second = (group.reset_index(drop=True) for _, group in pairs)
    assert first.equals(second)
    assert first["ema_decay"].nunique() == 3
    assert first["ema_decay"].between(0.5, 0.9).all()


@pytest.mark.parametrize(
    "text", [ONE_SEED, SAMPLED.replace("SAMPLER", "random")], ids=["grid", "drawn"]
)
def test_the_attributes_of_a_trial_are_recorded_in_one_statement(sweep, text: str) -> None:
    inserted: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO trial_user_attributes"):
            inserted.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        result = sweep(text)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(inserted) == result.ran > 0


def test_random_draws_do_not_depend_on_who_draws(written, tmp_path) -> None:
    spec, drawn = written(SAMPLED.replace("SAMPLER", "random")), []
    for name in ("one.db", "two.db"):
        url = f"sqlite:///{tmp_path / name}"
        runs.sweep(spec, url, runs.Execution(jobs=1))
        workers.open_in_process.cache_clear()
        drawn.append(load_study("drawn", url).trials["ema_decay"].tolist())
    assert drawn[0] == drawn[1]


def test_a_drawn_setting_that_cannot_be_trained_fails_with_the_rule(sweep, url) -> None:
    text = SAMPLED.replace("SAMPLER", "random")
    text = text.replace("initial_queue_size: 0", "initial_queue_size: 128")
    assert sweep(text).counts == {"FAIL": 6}
    reasons = load_study("drawn", url).trials["reason"]
    assert reasons.str.contains("initial_queue_size 128 exceeds queue_size").all()


def test_a_pruned_trial_is_recorded_as_pruned(sweep, objective) -> None:
    def prunes(settings: TrainerSettings, watch: Any) -> Result:
        return Result("PRUNED", "pruned at step 2") if settings.seed else score(settings, watch)

    objective(prunes)
    assert sweep(GRID + "pruner: median\n").counts == {"COMPLETE": 4, "PRUNED": 4}


def test_trials_may_be_added_but_other_settings_are_refused(sweep, url) -> None:
    sweep(GRID)
    more = GRID.replace("[0, 1]", "[0, 1, 2]").replace("values: [1, 2]", "values: [1, 2, 4]")
    assert sweep(more).counts == {"COMPLETE": 18}
    with pytest.raises(MtdlabError, match="holds 10 trials that the file no longer has"):
        sweep(GRID)
    with pytest.raises(MtdlabError, match=r"trainer.steps: was 4, now 5"):
        sweep(more.replace("steps: 4", "steps: 5"))
    assert len(settings_done(url)) == 18


def test_a_setting_that_is_newer_than_the_study_has_its_default(written, sweep, url) -> None:
    sweep(ONE_SEED)
    spec, store = written(ONE_SEED), open_store(url, "small")
    identity = spec.identity()
    del identity["trainer"]["in_batch_negatives"]
    store.write_study(study_row("small", metric=spec.metric, identity=identity))
    assert sweep(ONE_SEED).counts == {"COMPLETE": 4}
    store.write_study(study_row("small", metric=spec.metric, identity=identity))
    with pytest.raises(MtdlabError, match="in_batch_negatives: was True, now False"):
        sweep(ONE_SEED.replace("steps: 4", "steps: 4, in_batch_negatives: false"))


@pytest.mark.slow
def test_a_study_deleted_through_optuna_is_written_there_again(sweep, url) -> None:
    sweep(ONE_SEED)
    before = optuna_trials(url)
    optuna.delete_study(study_name="small", storage=url)
    again = sweep(ONE_SEED)
    assert (again.ran, again.counts) == (0, {"COMPLETE": 4})
    names = ("number", "values", "params", "user_attrs", "intermediate_values")
    for first, second in zip(before, optuna_trials(url), strict=True):
        for name in names:
            assert getattr(first, name) == getattr(second, name), name


def outcome_of(scores: list[TaskScore]) -> Outcome:
    """A finished run: dev score 42, test score 40, its tasks' scores as given; 10 before."""
    dev, test = Evaluation(42.0, 0.1, -2.0, 0.2), Evaluation(40.0, 0.1, -2.0, 0.2)
    earlier = tuple(TaskScore(score.task, 10.0) for score in scores)
    before, after = (EncoderScores(dev, test, np.ones(3), tasks) for tasks in (earlier, (*scores,)))
    return Outcome(3, before, after, {}, {}, 1.0)


def test_the_score_of_a_trial_is_the_metric_of_its_study(written) -> None:
    tasks = [TaskScore(task, 50.0 + place) for place, task in enumerate(STS)]
    for metric, expected in (("sts_test", 40), ("STS13", 51), ("sts_average", 53)):
        spec = written(f"metric: {metric}\ntrainer: {{tasks: sts}}\nstudy: s\n")
        result = results.complete(spec.metric, "sts_dev", outcome_of(tasks), {})
        assert (result.state, result.values["score"]) == ("COMPLETE", expected)
        assert (result.scores["sts_dev"], result.scores[metric]) == (42, expected)
        assert result.values["score_before"] == (40 if metric == "sts_test" else 10)
        assert result.scores["SICKR"] == 56


def test_a_metric_or_select_by_without_a_score_fails_with_the_tasks_reason() -> None:
    missing = TaskScore("STS12", None, "sentence vectors are not finite")
    for metric, select_by in (("STS12", "sts_dev"), ("sts_test", "STS12")):
        result = results.complete(metric, select_by, outcome_of([missing]), {})
        reason = "no STS12: sentence vectors are not finite"
        assert result == Result("FAIL", reason, reason_code="nan_loss")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"hello, I am a text file", "is not a SQLite database")],
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(
    written, tmp_path: Path, monkeypatch, content: bytes, message: str
) -> None:
    """At once where it is old: nobody is creating it."""
    path = tmp_path / "wrong.db"
    path.write_bytes(content)
    os.utime(path, (0, 0))
    monkeypatch.setattr(database.time, "sleep", lambda _: pytest.fail("waited"))
    with pytest.raises(StorageError, match=message):
        runs.sweep(written(GRID), f"sqlite:///{path}", runs.Execution(jobs=1))
    assert path.read_bytes() == content


def test_an_empty_file_that_another_sweep_is_creating_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    path.touch()
    monkeypatch.setattr(database.time, "sleep", lambda _: path.write_bytes(b"SQLite format 3\x00"))
    database.check_file(path)
    path.write_bytes(b"")
    monkeypatch.setattr(database, "CREATION_SECONDS", 0.0)
    with pytest.raises(StorageError, match="is empty"):
        database.check_file(path)


def test_a_sweep_whose_trials_are_claimed_while_it_starts_has_nothing_to_do(
    written: Written, sweep: Sweep, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading the texts takes seconds, in which another sweep may take all that waits."""

    def claim_all(*_: Any, **__: Any) -> dict[str, str]:
        other = open_study(written(ONE_SEED), url)
        while other.claim(owners.this_process()):
            pass
        return {}

    monkeypatch.setattr("mtdlab.trial.trainer.check_inputs", claim_all)
    result = sweep(ONE_SEED)
    assert (result.ran, result.exit_code) == (0, 0)
    assert result.counts == {"RUNNING": 4}
