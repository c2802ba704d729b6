"""What the test of resumed runs finds where a part of the state is not saved."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from mtdlab.methods.mocose import MoCoSE
from mtdlab.methods.queue import KeyQueue
from mtdlab.settings import TrainerSettings
from mtdlab.training.state import RunState
from tests.training.test_resume import QUEUES, SCHEDULE, assert_resumes

DIFFERS = r"resumed at step 7, the curve '\w+' differs"


def forget_step(patch: pytest.MonkeyPatch) -> None:
    """The schedule of the EMA's decay begins anew."""
    begun, load, decay_at = 0, RunState.load_state_dict, MoCoSE.decay

    def forget(state: RunState, saved: Mapping[str, Any]) -> None:
        nonlocal begun
        load(state, saved)
        begun = state.step

    patch.setattr(RunState, "load_state_dict", forget)
    patch.setattr(MoCoSE, "decay", lambda method, step: decay_at(method, step - begun))


def forget_fill(patch: pytest.MonkeyPatch) -> None:
    def forget(queue: KeyQueue, state: Tensor) -> None:
        queue._cursor = int(state[0])

    patch.setattr(KeyQueue, "set_extra_state", forget)


def forget_part(name: str, patch: pytest.MonkeyPatch) -> None:
    load = RunState.load_state_dict

    def forget(state: RunState, saved: Mapping[str, Any]) -> None:
        load(state, {**saved, name: state.state_dict()[name]})

    patch.setattr(RunState, "load_state_dict", forget)


@pytest.mark.parametrize(
    ("forget", "message"),
    [
        (forget_step, DIFFERS),
        (forget_fill, DIFFERS),
        (partial(forget_part, "optimizer"), DIFFERS),
        (partial(forget_part, "batches"), "the batch after step 7 differs"),
    ],
    ids=["step of the EMA", "fill of the queue", "optimizer", "batches"],
)
def test_without_a_part_of_the_state_a_resumed_run_differs(
    settings_of: Callable[..., TrainerSettings],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forget: Callable[[pytest.MonkeyPatch], None],
    message: str,
) -> None:
    settings = settings_of(steps=12, evaluate_every=6, **SCHEDULE, **QUEUES["full"])
    forget(monkeypatch)
    with pytest.raises(AssertionError, match=message):
        assert_resumes(settings, [7], tmp_path)
