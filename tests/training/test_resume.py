"""A run of 20 steps that is stopped and resumed from its checkpoint: every bit is the same."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from mtdlab.settings import TrainerSettings
from mtdlab.testing import _assert_equal, _assert_same_run, _stop_at
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import start, train
from mtdlab.training.state import RunState
from tests.conftest import Settings

STEPS = 20
STOPS = (1, 7, 9, 10, 19)
SCHEDULE = {"ema_decay": 0.5, "ema_decay_end": 0.95, "fgsm_epsilon": 1e-3}
QUEUES = {
    # full from the third step on, and no multiple of the batch
    "full": {"queue_size": 20, "initial_queue_size": 3},
    "not full": {"queue_size": 1000, "initial_queue_size": 3},
}


def saved_and_loaded(
    settings: TrainerSettings, inputs: RunInputs, state: RunState, folder: Path
) -> RunState:
    """The state of a run that continues from a checkpoint of `state`, as in a new process."""
    save_checkpoint(folder, state.step, state.state_dict(), {})
    checkpoint = find_checkpoint(folder).checkpoint
    assert checkpoint is not None
    assert checkpoint.step == state.step
    torch.manual_seed(987_654)
    other = start(settings, inputs)
    other.load_state_dict(checkpoint.state)
    return other


def without_time(state: RunState) -> dict[str, Any]:
    """Everything of a state but its seconds."""
    return {name: value for name, value in state.state_dict().items() if name != "seconds"}


def assert_resumes(settings: TrainerSettings, stops: Sequence[int], folder: Path) -> None:
    """Losses, scores, the end's state and the next batch are those of an uninterrupted run."""
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    whole = train(settings, inputs, state=state)
    # now, since the state of torch's global generator is a part of it
    end = copy.deepcopy(without_time(state))
    for stop in stops:
        stopped = _stop_at(settings, inputs, stop)
        continued = saved_and_loaded(settings, inputs, stopped, folder / str(stop))
        following = next(copy.deepcopy(continued.batches))
        _assert_equal(next(stopped.batches), following, f"the batch after step {stop}")
        again = train(settings, inputs, state=continued)
        _assert_same_run(whole, again, f"resumed at step {stop}")
        _assert_equal(end, without_time(continued), f"the end after step {stop}")


@pytest.mark.parametrize("queue", ["full", pytest.param("not full", marks=pytest.mark.slow)])
def test_a_resumed_run_has_the_same_bits(settings_of: Settings, tmp_path: Path, queue: str) -> None:
    settings = settings_of(steps=STEPS, evaluate_every=5, **SCHEDULE, **QUEUES[queue])
    assert_resumes(settings, STOPS, tmp_path)
