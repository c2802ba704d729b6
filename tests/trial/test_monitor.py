"""What is recorded between the steps of a trial, and in its heartbeats."""

import threading
import time
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from mtdlab.errors import StorageError
from mtdlab.evaluation.suite import Evaluation
from mtdlab.methods.registry import make_settings
from mtdlab.trial import heartbeat as heartbeats
from mtdlab.trial.heartbeat import ClaimLost, Heartbeat
from mtdlab.trial.monitor import TrialMonitor
from mtdlab.trial.signals import Interrupted, StopRequest
from mtdlab.trial.study import TrialRun

EVALUATION = Evaluation(40.0, 0.1, -2.0, 0.2)


class Recorder:
    """A store that keeps the steps of heartbeats."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.owned = True
        self.locked = 0
        self.twice = threading.Event()
        self.reset_deaths = Mock()

    def heartbeat(self, _claim: object, step: int, _phase: str) -> bool:
        if self.locked:
            self.locked -= 1
            raise StorageError("database is locked")
        self.steps.append(step)
        if len(self.steps) > 1:
            self.twice.set()
        return self.owned


def watch() -> tuple[TrialMonitor, Recorder, Mock]:
    """The monitor of a run of 10 steps, evaluated every 5; a checkpoint is due every second one."""
    store, checkpoints = Recorder(), Mock()
    checkpoints.due.side_effect = [False, True] * 5
    checkpoints.save.return_value = False
    study: Any = SimpleNamespace(store=store, owner={}, spec=SimpleNamespace(pruner="none"))
    run = TrialRun(
        study, Mock(reports={}, deaths=1), StopRequest(), Heartbeat(cast(Any, store), Mock())
    )
    settings = make_settings(steps=10, evaluate_every=5)
    return TrialMonitor(run, settings, checkpoints), store, checkpoints


def test_an_evaluation_is_reported_when_it_begins() -> None:
    monitor, _, _ = watch()
    phases = []
    for step in range(1, 11):
        monitor(step, EVALUATION if step % 5 == 0 else None)
        assert monitor.run.heartbeat.step == step
        phases.append(monitor.run.heartbeat.phase)
    training, evaluating = ["training"], ["evaluating"]
    assert phases == 3 * training + evaluating + 4 * training + 2 * evaluating


def test_a_checkpoint_is_saved_when_it_is_due_and_before_a_stop() -> None:
    monitor, store, checkpoints = watch()
    for step in range(1, 4):
        monitor(step, None)
    assert checkpoints.save.call_count == 1
    # before it, since another worker may have claimed the trial
    assert store.steps == [2]
    monitor.run.stop.request()
    with pytest.raises(Interrupted, match=r"^$"):
        monitor(4, None)
    assert checkpoints.save.call_count == 2


def test_deaths_are_counted_anew_once_and_not_with_every_checkpoint() -> None:
    monitor, store, checkpoints = watch()
    checkpoints.save.return_value = True
    for step in range(1, 9):
        monitor(step, None)
    assert (checkpoints.save.call_count, store.reset_deaths.call_count) == (4, 1)


def test_a_trial_that_another_worker_has_is_left_without_a_checkpoint() -> None:
    monitor, store, checkpoints = watch()
    store.owned = False
    monitor.run.stop.request()
    with pytest.raises(ClaimLost, match="only the process that claimed a trial"):
        monitor(1, None)
    with pytest.raises(ClaimLost, match="only the process that claimed a trial"):
        monitor(2, None)
    assert checkpoints.save.call_count == 0


def test_heartbeats_go_on_while_no_step_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """While texts are loaded or tasks scored, and after a database that was locked."""
    monkeypatch.setattr(heartbeats, "HEARTBEAT_SECONDS", 0.01)
    store = Recorder()
    store.locked = 2
    with Heartbeat(cast(Any, store), Mock()) as beat:
        beat.step = 7
        assert store.twice.wait(10)
    beat.check()
    count = len(store.steps)
    assert store.steps[-1] == 7
    time.sleep(0.05)
    assert len(store.steps) == count
