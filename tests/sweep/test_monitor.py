"""What is recorded between the steps of a trial."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mtdlab.config import make_settings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.sweep import monitor as monitors
from mtdlab.sweep.checkpoints import TrialCheckpoints
from mtdlab.sweep.monitor import ClaimLost, TrialMonitor

EVALUATION = Evaluation(40.0, 0.1, -2.0, 0.2)


class Recorder:
    """A store that keeps the steps of heartbeats."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.owned = True

    def heartbeat(self, _claim: object, _owner: object, step: int) -> bool:
        self.steps.append(step)
        return self.owned


def watch(monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float]) -> tuple[Any, Recorder]:
    """A run of 10 steps, evaluated every 5: each step takes a second, step n what is given."""
    store, clock = Recorder(), SimpleNamespace(now=0.0)
    monkeypatch.setattr(monitors.time, "monotonic", lambda: clock.now)
    trial = SimpleNamespace(_trial_id=1, report=lambda *_: None, should_prune=lambda: False)
    recorded = SimpleNamespace(intermediate_values={})
    storage = SimpleNamespace(get_trial=lambda _: recorded)
    study = SimpleNamespace(store=store, owner={}, optuna=SimpleNamespace(storage=storage))
    settings = make_settings(steps=10, evaluate_every=5)
    stop = SimpleNamespace(requested=lambda: False)
    arguments = [cast(Any, each) for each in (study, None, trial, stop)]
    monitor = TrialMonitor(*arguments, settings, TrialCheckpoints(Path("unused")))

    def run() -> None:
        for step in range(1, 11):
            clock.now += seconds.get(step, 1.0)
            monitor(step, EVALUATION if step % 5 == 0 else None)

    return run, store


def test_a_long_evaluation_is_recorded_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    run, store = watch(monkeypatch, {5: 60.0, 10: 60.0})
    run()
    # every third second, and the steps of both evaluations before they end
    assert store.steps == [3, 5, 6, 9, 10]


def test_short_evaluations_are_not_recorded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run, store = watch(monkeypatch, dict.fromkeys(range(1, 11), 0.1))
    run()
    # the first, whose duration is not known yet
    assert store.steps == [5]


def test_a_trial_that_another_worker_has_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    run, store = watch(monkeypatch, {})
    store.owned = False
    with pytest.raises(ClaimLost, match=r"^$"):
        run()
