"""What the test of resumed runs finds where a part of the state is not saved."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from mtdlab.config import TrainerSettings
from mtdlab.methods import mocose
from mtdlab.methods.queue import KeyQueue
from mtdlab.training.state import RunState
from tests.training.test_resume import QUEUES, SCHEDULE, assert_resumes

DIFFERS = r"resumed at step 7, the curve '\w+' differs"


@pytest.fixture
def settings(settings_of: Callable[..., TrainerSettings]) -> TrainerSettings:
    return settings_of(steps=12, evaluate_every=6, **SCHEDULE, **QUEUES["full"])


def test_without_the_step_of_the_ema_a_resumed_run_differs(
    settings: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schedule of its decay begins anew."""
    begun, load, decay_at = 0, RunState.load_state_dict, mocose.ema_decay_at

    def forget(state: RunState, saved: Mapping[str, Any]) -> None:
        nonlocal begun
        load(state, saved)
        begun = state.step

    monkeypatch.setattr(RunState, "load_state_dict", forget)
    monkeypatch.setattr(mocose, "ema_decay_at", lambda step, known: decay_at(step - begun, known))
    with pytest.raises(AssertionError, match=DIFFERS):
        assert_resumes(settings, [7], tmp_path)


def test_without_the_fill_of_the_queue_a_resumed_run_differs(
    settings: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(queue: KeyQueue, state: Tensor) -> None:
        queue._cursor = int(state[0])

    monkeypatch.setattr(KeyQueue, "set_extra_state", forget)
    with pytest.raises(AssertionError, match=DIFFERS):
        assert_resumes(settings, [7], tmp_path)


@pytest.mark.parametrize(
    ("left_out", "message"),
    [("optimizer", DIFFERS), ("batches", "the batch after step 7 differs")],
    ids=["optimizer", "batches"],
)
def test_without_a_part_of_the_state_a_resumed_run_differs(
    settings: TrainerSettings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    left_out: str,
    message: str,
) -> None:
    load = RunState.load_state_dict

    def forget(state: RunState, saved: Mapping[str, Any]) -> None:
        load(state, {**saved, left_out: state.state_dict()[left_out]})

    monkeypatch.setattr(RunState, "load_state_dict", forget)
    with pytest.raises(AssertionError, match=message):
        assert_resumes(settings, [7], tmp_path)
