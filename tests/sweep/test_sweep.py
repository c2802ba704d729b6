"""Sweeps: resumed, interrupted, shared, refused. Training itself is replaced."""

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from sqlalchemy import Engine, event
from stub_store import study_row

from analysis.data.tasks import STS
from mtdlab import load_study
from mtdlab.config import TrainerSettings, read_study
from mtdlab.errors import MtdlabError, StorageError, TrialError
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.suite import TaskScore
from mtdlab.store import Result, database
from mtdlab.store import owner as owners
from mtdlab.store.store import open_store
from mtdlab.sweep import results, trainer
from mtdlab.sweep import run as runs
from mtdlab.sweep import worker as workers
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.signals import Interrupted
from mtdlab.training.inputs import EncoderScores
from mtdlab.training.loop import Outcome

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
trials: 5
seeds: [0, 1]
"""
Objective = Callable[[TrainerSettings, Any], Result]


def score(settings: TrainerSettings, _watch: Any) -> Result:
    """The dev score ranks the queue sizes in the other order than the test score."""
    test = settings.ema_decay * 10 + settings.queue_size / 100 + settings.seed
    scores = {"sts_dev": test + 20 - settings.queue_size / 10, "sts_test": test}
    return Result("COMPLETE", values={"score": test, "wall_seconds": 0.1}, scores=scores)


@pytest.fixture
def study(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "study.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture(autouse=True)
def fresh_study(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mtdlab.training.inputs.check_inputs", lambda *_: {})


@pytest.fixture
def objective(monkeypatch: pytest.MonkeyPatch) -> Callable[[Objective], None]:
    def replace(function: Objective) -> None:
        monkeypatch.setattr(
            trainer,
            "train_trial",
            lambda watch: (function(watch.settings, watch), None),
        )

    replace(score)
    return replace


def sweep(path: Path, url: str, **options: Any) -> runs.SweepResult:
    return runs.sweep(read_study(path), url, jobs=1, **options)


def settings_done(url: str, name: str = "small") -> list[tuple[float, int, int]]:
    trials = load_study(name, url).trials
    done = trials[trials["state"] == "COMPLETE"]
    return sorted(zip(done["ema_decay"], done["queue_size"], done["seed"], strict=True))


ALL = sorted((eta, size, seed) for eta in (0.5, 0.75) for size in (8, 16) for seed in (0, 1))


@pytest.mark.usefixtures("objective")
def test_a_sweep_does_every_setting_once_with_every_seed(study, url) -> None:
    result = sweep(study(GRID), url)
    assert (result.ran, result.counts, result.exit_code) == (8, {"COMPLETE": 8}, 0)
    assert settings_done(url) == ALL


@pytest.mark.usefixtures("objective")
def test_a_complete_study_has_nothing_left_to_run(study, url) -> None:
    sweep(study(GRID), url)
    again = sweep(study(GRID), url)
    assert (again.ran, again.counts) == (0, {"COMPLETE": 8})


@pytest.mark.usefixtures("objective")
def test_what_a_grid_skips_may_become_less_but_not_more(study, url) -> None:
    skip = "skip: [{ema_decay: 0.75, queue_size: 2}]\n"
    assert sweep(study(GRID + skip), url).counts == {"COMPLETE": 6}
    assert (0.75, 16, 0) not in settings_done(url)
    more = "skip: [{ema_decay: 0.75}]\n"
    with pytest.raises(MtdlabError, match=r"holds 2 trials that the file no longer has"):
        sweep(study(GRID + more), url)
    assert sweep(study(GRID), url).ran == 2
    assert settings_done(url) == ALL
    with pytest.raises(MtdlabError, match=r"holds 2 trials that the file no longer has"):
        sweep(study(GRID + skip), url)


@pytest.mark.usefixtures("objective")
def test_a_profile_is_a_study_of_its_own(study, url) -> None:
    path = study(GRID + "profiles: {small: {search: {ema_decay: [0.5]}, seeds: [0]}}\n")
    assert runs.sweep(read_study(path, (), "small"), url, jobs=1).counts == {"COMPLETE": 2}
    assert sweep(path, url).counts == {"COMPLETE": 8}
    assert settings_done(url, "small-small") == [(0.5, 8, 0), (0.5, 16, 0)]


@pytest.mark.usefixtures("objective")
def test_optuna_opens_the_study_and_finds_the_words_in_its_trials(study, url) -> None:
    sweep(study(GRID), url)
    opened = optuna.load_study(study_name="small", storage=url)
    assert len(opened.trials) == 8
    assert opened.best_value == pytest.approx(7.5 + 0.08 + 1 + 20 - 0.8)
    scores = {"select_by": "sts_dev", "metric": "sts_test"}
    assert opened.user_attrs == scores | {"folder": str(study(GRID).parent)}
    attributes = opened.best_trial.user_attrs
    expected = {"ema_decay": 0.75, "queue_size": 8, "batch_size": 8, "seed": 1, "mtd": 5.0}
    assert attributes.items() >= expected.items()
    assert attributes["sts_test"] == pytest.approx(7.5 + 0.08 + 1)
    assert opened.best_trial.params == {
        "ema_decay": 0.75,
        "queue_size/batch_size": 1,
        "initial_queue_size": 0,
    }


def test_a_failed_trial_is_recorded_with_its_reason_and_the_sweep_goes_on(
    study, url, objective
) -> None:
    def fails_once(settings: TrainerSettings, watch: Any) -> Result:
        if settings.ema_decay == 0.75 and settings.queue_size == 8 and settings.seed == 1:
            return Result("FAIL", "the loss is nan at step 3")
        return score(settings, watch)

    objective(fails_once)
    result = sweep(study(GRID), url)
    assert (result.counts, result.exit_code) == ({"COMPLETE": 7, "FAIL": 1}, 3)
    trials = load_study("small", url).trials
    assert trials.loc[trials["state"] == "FAIL", "reason"].tolist() == ["the loss is nan at step 3"]
    recorded = optuna.load_study(study_name="small", storage=url).trials
    failed = [trial for trial in recorded if trial.value is None]
    assert [t.user_attrs["reason"] for t in failed] == ["the loss is nan at step 3"]

    objective(score)
    assert sweep(study(GRID), url).ran == 0
    retried = sweep(study(GRID), url, retry_failed=True)
    assert (retried.ran, retried.counts, retried.exit_code) == (1, {"COMPLETE": 8}, 0)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TrialError("the loss is inf at step 2"), "the loss is inf at step 2"),
        (MemoryError(), "oom: out of memory"),
        (RuntimeError("CUDA out of memory. Tried"), "oom: out of memory"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
    ],
)
def test_what_breaks_in_training_is_a_failed_trial(
    study, url, monkeypatch, error: Exception, reason: str
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr(trainer, "load_inputs", broken)
    result = sweep(study(GRID), url)
    assert result.counts == {"FAIL": 8}
    assert set(load_study("small", url).trials["reason"]) == {reason}


def test_a_sweep_ends_when_too_many_trials_have_failed(study, url, objective) -> None:
    def fails_with_seed_0(settings: TrainerSettings, watch: Any) -> Result:
        if settings.seed == 0:
            return Result("FAIL", "the loss is nan at step 3", reason_code="nan_loss")
        return score(settings, watch)

    objective(fails_with_seed_0)
    for ran in (2, 0):
        ended = sweep(study(GRID), url, max_failed=2)
        assert (ended.ran, ended.exit_code, ended.too_many_failed) == (ran, 1, True)
        assert ended.counts == {"FAIL": 2, "WAITING": 6}
    assert [row.reason_code for row in ended.failures] == ["nan_loss"] * 2
    assert sweep(study(GRID), url, max_failed=5).exit_code == 3
    codes = load_study("small", url).trials.groupby("state")["reason_code"].unique()
    assert (list(codes["FAIL"]), list(codes["COMPLETE"])) == (["nan_loss"], [""])


def test_an_interrupted_trial_goes_back_to_waiting_and_is_taken_again(
    study, url, objective
) -> None:
    calls = []

    def interrupted_third(settings: TrainerSettings, watch: Any) -> Result:
        calls.append(settings)
        if len(calls) == 3:
            watch.run.stop.request()
            raise Interrupted
        return score(settings, watch)

    objective(interrupted_third)
    stopped = sweep(study(GRID), url)
    assert (stopped.ran, stopped.exit_code) == (2, 130)
    assert stopped.counts == {"COMPLETE": 2, "WAITING": 6}
    states = [t.state.name for t in optuna.load_study(study_name="small", storage=url).trials]
    assert states == ["COMPLETE", "COMPLETE"]
    assert sweep(study(GRID), url).counts == {"COMPLETE": 8}
    assert settings_done(url) == ALL
    assert len(optuna.load_study(study_name="small", storage=url).trials) == 8


def test_an_error_that_ends_a_sweep_releases_its_trial(study, url, objective) -> None:
    """The process may live on, as that of a notebook."""

    def locked(_settings: TrainerSettings, _watch: Any) -> Result:
        raise StorageError("the database is locked")

    objective(locked)
    with pytest.raises(StorageError, match="is locked"):
        sweep(study(GRID), url)
    objective(score)
    assert sweep(study(GRID), url).counts == {"COMPLETE": 8}


@pytest.mark.parametrize("killed_after", ["claim", "begin", "finish"])
@pytest.mark.usefixtures("objective")
def test_what_a_killed_worker_left_is_repaired(study, url, killed_after: str) -> None:
    """A process that ends between any two transactions costs nothing but its own trial."""
    spec = read_study(study(GRID))
    dead = owners.this_process() | {"started": "0"}
    store = open_study(spec, url, "")
    claim = store.claim(dead)
    assert claim is not None
    if killed_after in ("begin", "finish"):
        store.begin(claim, claim.parameters or {}, {"steps": 4}, 3.0)
    if killed_after == "finish":
        scores = {"sts_dev": 70.0, "sts_test": 9.0}
        ended = Result("COMPLETE", values={"score": 9.0}, scores=scores)
        assert store.finish(claim, ended)

    assert sweep(study(GRID), url).counts == {"COMPLETE": 8}
    if killed_after == "finish":
        best = optuna.load_study(study_name="small", storage=url).best_trial
        assert (best.value, best.user_attrs["sts_test"]) == (70.0, 9.0)
    assert settings_done(url) == ALL or killed_after == "finish"
    trials = optuna.load_study(study_name="small", storage=url).trials
    assert sum(t.state.name == "COMPLETE" for t in trials) == 8
    assert len(trials) == 8


@pytest.mark.usefixtures("objective")
def test_a_killed_export_is_removed_and_the_earlier_model_put_back(study, url, tmp_path) -> None:
    """A process that is killed between the two renames of a replacement leaves both folders."""
    models = tmp_path / "models"
    for name in (".small.building-a", ".small.building-b-old"):
        (models / name / "mtdlab").mkdir(parents=True)
        (models / name / "mtdlab" / "run.json").write_text(name)
    assert sweep(study(GRID), url).exit_code == 0
    assert (models / "small" / "mtdlab" / "run.json").read_text() == ".small.building-b-old"
    assert sorted(path.name for path in models.iterdir()) == [".small.lock", "small"]


@pytest.mark.usefixtures("objective")
def test_a_live_owners_trial_is_left_alone(study, url) -> None:
    spec = read_study(study(GRID))
    store = open_study(spec, url, "")
    assert store.claim(owners.this_process()) is not None
    assert sweep(study(GRID), url).counts == {"COMPLETE": 7, "RUNNING": 1}


def test_a_worker_that_lost_its_trial_discards_its_result(study, url, objective) -> None:
    thief = {"host": "elsewhere"}

    def robbed(settings: TrainerSettings, watch: Any) -> Result:
        if settings.queue_size == 8 and settings.seed == 0 and settings.ema_decay == 0.5:
            assert watch.run.study.store.release(watch.run.claim)
            assert watch.run.study.store.claim(thief) is not None
        return score(settings, watch)

    objective(robbed)
    assert sweep(study(GRID), url).counts == {"COMPLETE": 7, "RUNNING": 1}


@pytest.mark.parametrize("sampler", ["random", "tpe", "qmc"])
@pytest.mark.usefixtures("objective")
def test_a_sampled_study_draws_once_for_all_seeds(study, url, sampler: str) -> None:
    path = study(SAMPLED.replace("SAMPLER", sampler))
    assert sweep(path, url).counts == {"COMPLETE": 10}
    trials = load_study("drawn", url).trials
    pairs = trials.groupby("seed")[["ema_decay", "queue_size"]]
    first, second = (group.reset_index(drop=True) for _, group in pairs)
    assert first.equals(second)
    assert first["ema_decay"].nunique() == 5
    assert first["ema_decay"].between(0.5, 0.9).all()


@pytest.mark.parametrize(
    "text", [GRID, SAMPLED.replace("SAMPLER", "random")], ids=["grid", "drawn"]
)
@pytest.mark.usefixtures("objective")
def test_the_attributes_of_a_trial_are_recorded_in_one_statement(study, url, text: str) -> None:
    written: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO trial_user_attributes"):
            written.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        result = sweep(study(text), url)
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(written) == result.ran > 0


@pytest.mark.usefixtures("objective")
def test_random_draws_do_not_depend_on_who_draws(study, tmp_path) -> None:
    path = study(SAMPLED.replace("SAMPLER", "random"))
    drawn = []
    for name in ("one.db", "two.db"):
        url = f"sqlite:///{tmp_path / name}"
        sweep(path, url)
        workers.open_in_process.cache_clear()
        drawn.append(load_study("drawn", url).trials["ema_decay"].tolist())
    assert drawn[0] == drawn[1]


@pytest.mark.usefixtures("objective")
def test_a_drawn_setting_that_cannot_be_trained_fails_with_the_rule(study, url) -> None:
    text = SAMPLED.replace("SAMPLER", "random").replace(
        "initial_queue_size: 0", "initial_queue_size: 128"
    )
    result = sweep(study(text), url)
    assert result.counts == {"FAIL": 10}
    reasons = load_study("drawn", url).trials["reason"]
    assert reasons.str.contains("initial_queue_size 128 exceeds queue_size").all()


def test_a_pruned_trial_is_recorded_as_pruned(study, url, objective) -> None:
    text = GRID + "pruner: median\n"

    def prunes(settings: TrainerSettings, watch: Any) -> Result:
        return Result("PRUNED", "pruned at step 2") if settings.seed else score(settings, watch)

    objective(prunes)
    assert sweep(study(text), url).counts == {"COMPLETE": 4, "PRUNED": 4}


@pytest.mark.usefixtures("objective")
def test_trials_may_be_added_but_other_settings_are_refused(study, url) -> None:
    sweep(study(GRID), url)
    more = GRID.replace("[0, 1]", "[0, 1, 2]").replace("values: [1, 2]", "values: [1, 2, 4]")
    assert sweep(study(more), url).counts == {"COMPLETE": 18}
    with pytest.raises(MtdlabError, match="holds 10 trials that the file no longer has"):
        sweep(study(GRID), url)
    with pytest.raises(MtdlabError, match=r"trainer.steps: was 4, now 5"):
        sweep(study(more.replace("steps: 4", "steps: 5")), url)
    assert len(settings_done(url)) == 18


@pytest.mark.usefixtures("objective")
def test_a_setting_that_is_newer_than_the_study_has_its_default(study, url) -> None:
    path = study(GRID)
    sweep(path, url)
    spec = read_study(path)
    store = open_store(url, spec.name)
    identity = spec.identity()
    del identity["trainer"]["in_batch_negatives"]
    store.write_study(study_row(spec.name, metric=spec.metric, identity=identity))
    assert sweep(path, url).counts == {"COMPLETE": 8}
    store.write_study(study_row(spec.name, metric=spec.metric, identity=identity))
    other = GRID.replace("steps: 4", "steps: 4, in_batch_negatives: false")
    with pytest.raises(MtdlabError, match="in_batch_negatives: was True, now False"):
        sweep(study(other), url)


@pytest.mark.usefixtures("objective")
def test_a_study_deleted_through_optuna_is_written_there_again(study, url) -> None:
    sweep(study(GRID), url)
    before = optuna.load_study(study_name="small", storage=url)
    optuna.delete_study(study_name="small", storage=url)
    again = sweep(study(GRID), url)
    assert (again.ran, again.counts) == (0, {"COMPLETE": 8})
    after = optuna.load_study(study_name="small", storage=url)
    for first, second in zip(before.trials, after.trials, strict=True):
        assert (first.number, first.values, first.params) == (
            second.number,
            second.values,
            second.params,
        )
        assert (first.user_attrs, first.intermediate_values) == (
            second.user_attrs,
            second.intermediate_values,
        )


def outcome_of(scores: list[TaskScore]) -> Outcome:
    """A finished run: dev score 42, test score 40, its tasks' scores as given; 10 before."""
    dev, test = Evaluation(42.0, 0.1, -2.0, 0.2), Evaluation(40.0, 0.1, -2.0, 0.2)
    earlier = tuple(TaskScore(each.task, 10.0) for each in scores)
    before, after = (EncoderScores(dev, test, np.ones(3), each) for each in (earlier, (*scores,)))
    return Outcome(3, before, after, {}, {}, 1.0)


def test_the_score_of_a_trial_is_the_metric_of_its_study(study) -> None:
    tasks = [TaskScore(task, 50.0 + place) for place, task in enumerate(STS)]
    for metric, expected in (("sts_test", 40), ("STS13", 51), ("sts_average", 53)):
        spec = read_study(study(f"metric: {metric}\ntrainer: {{tasks: sts}}\nstudy: s\n"))
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


def test_a_score_that_is_not_finite_is_missing_never_zero(study, url, objective) -> None:
    objective(lambda _settings, _watch: Result("FAIL", "collapsed", values={"score": math.nan}))
    sweep(study(GRID), url)
    assert load_study("small", url).trials["score"].isna().all()


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"hello, I am a text file", "is not a SQLite database")],
)
def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(
    study, tmp_path: Path, monkeypatch, content: bytes, message: str
) -> None:
    """At once where it is old: nobody is creating it."""
    path = tmp_path / "wrong.db"
    path.write_bytes(content)
    os.utime(path, (0, 0))
    monkeypatch.setattr(database.time, "sleep", lambda _: pytest.fail("waited"))
    with pytest.raises(StorageError, match=message):
        sweep(study(GRID), f"sqlite:///{path}")
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
    study: Callable[[str], Path], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading the texts takes seconds, in which another sweep may take all that waits."""
    path = study(GRID)

    def claim_all(*_: Any) -> dict[str, str]:
        other = open_study(read_study(path), url, "")
        while other.claim(owners.this_process()):
            pass
        return {}

    monkeypatch.setattr("mtdlab.training.inputs.check_inputs", claim_all)
    result = sweep(path, url)
    assert (result.ran, result.exit_code) == (0, 0)
    assert result.counts == {"RUNNING": 8}
