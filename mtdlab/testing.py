"""Checks that a training method keeps its contract, for methods from anywhere.

    from mtdlab.testing import check_method
    check_method(MyMethod)

Each check trains for a few steps with the built-in encoder and text, or with what `settings` name,
and raises AssertionError with a sentence. `method_checks` gives them one by one, for pytest's
parametrize.
"""

import copy
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mtdlab.device import choose_device
from mtdlab.encoders.loading import load_encoder
from mtdlab.evaluation.sts import Evaluation
from mtdlab.methods.base import Method, Step, Tokens
from mtdlab.methods.registry import is_builtin, register
from mtdlab.settings import TrainerSettings
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.training.export import save_model
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import start, train
from mtdlab.training.outcome import Outcome
from mtdlab.training.state import RunState

Check = Callable[[TrainerSettings, RunInputs], None]

STEPS, STOP = 6, 3
_BRIEF = {
    "batch_size": 8,
    "steps": STEPS,
    "evaluate_every": 2,
    "max_length": 16,
    "learning_rate": 1e-3,
    "precision": "float32",
    "device": "cpu",
}


class _Stopped(Exception):
    """Raised by a step callback to interrupt a run."""


def check_method(method: type[Method[Any]], **settings: Any) -> None:
    """Hold a method against every check; the first that fails raises AssertionError.

    settings   of the runs, instead of a few short steps on the built-in data.
    """
    for check in method_checks():
        run_check(check, method, **settings)


def method_checks() -> tuple[Check, ...]:
    """The checks, by the names of the functions."""
    return (
        check_declared,
        check_trains,
        check_state_round_trip,
        check_resume,
        check_failed_loss,
        check_keys_follow_the_loss,
        check_probe,
        check_export,
    )


def run_check(check: Check, method: type[Method[Any]], **settings: Any) -> None:
    """Run one check of a method. Registers the method under its name where it is not ours."""
    if not is_builtin(method.name):
        register(method)
    made = method.Settings(**{"method": method.name, **_BRIEF, **settings})
    check(made, load_inputs(made))


def check_declared(settings: TrainerSettings, inputs: RunInputs) -> None:
    """Name, title, source and a sentence for the model card; every own setting is described."""
    method = start(settings, inputs).method
    for name in ("name", "title", "source"):
        value = getattr(method, name)
        assert isinstance(value, str), f"{name} is {value!r}; it must be a text"
        assert value.strip(), f"{name} is empty"
    sentence = type(method).describe(settings)
    assert sentence.strip().endswith("."), f"describe() gives {sentence!r}; write a sentence"
    missing = [name for name, field in type(settings).model_fields.items() if not field.description]
    assert not missing, f"settings without a description: {', '.join(missing)}"
    assert settings.mtd is None or settings.mtd > 0, f"mtd is {settings.mtd}; None or above 0"
    assert "encoder" in method.parts(), "parts() lacks the encoder"


def check_trains(settings: TrainerSettings, inputs: RunInputs) -> None:
    """A run ends with finite losses and changed weights, and leaves the loaded encoder alone."""
    before = _copied(inputs.encoder.model.state_dict())
    outcome = train(settings, inputs, _ignore)
    assert torch.isfinite(torch.from_numpy(outcome.curve["loss"])).all(), "a loss is not finite"
    changed = [name for name in before if not torch.equal(before[name], outcome.weights[name])]
    assert changed, "training changed no weight of the encoder"
    after = inputs.encoder.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before), (
        "training changed the loaded encoder: train the copy that the constructor receives"
    )


def check_state_round_trip(settings: TrainerSettings, inputs: RunInputs) -> None:
    """A state that is saved as a checkpoint and loaded is the same state."""
    state = _stopped_at(settings, inputs, STOP)
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder), STOP, state.state_dict(), {})
        checkpoint = find_checkpoint(Path(folder)).checkpoint
    assert checkpoint is not None, "the checkpoint that was just saved is damaged"
    other = start(settings, inputs)
    other.load_state_dict(checkpoint.state)
    _assert_equal(state.state_dict(), other.state_dict(), "state")


def check_resume(settings: TrainerSettings, inputs: RunInputs) -> None:
    """A run that is stopped and resumed from its state ends with the same bits."""
    whole = train(settings, inputs, _ignore)
    for stop in (1, STOP, settings.steps - 1):
        saved = copy.deepcopy(_stopped_at(settings, inputs, stop).state_dict())
        # anything that the state lacks would now differ
        torch.manual_seed(987_654)
        resumed = start(settings, inputs)
        resumed.load_state_dict(saved)
        again = train(settings, inputs, _ignore, resumed)
        _assert_same_run(whole, again, f"resumed at step {stop}")


def check_failed_loss(settings: TrainerSettings, inputs: RunInputs) -> None:
    """A forward pass that raises leaves the queue as it was."""
    state = _stopped_at(settings, inputs, STOP)
    queue = state.method.parts().get("queue")
    if queue is None:
        return
    before = _copied(queue.state_dict())
    broken = [(ids.new_full(ids.shape, -1), mask) for ids, mask in next(state.batches)]
    try:
        state.method(STOP, broken)
    except Exception as error:
        # token ids that no table has: whatever the method raises
        del error
    else:
        raise AssertionError("a batch of impossible token ids gave a loss")
    _assert_equal(before, queue.state_dict(), "the queue after a loss that raised")


def check_keys_follow_the_loss(settings: TrainerSettings, inputs: RunInputs) -> None:
    """The forward pass leaves the queue alone; update enqueues its keys, detached."""
    state = start(settings, inputs)
    queue = state.method.parts().get("queue")
    before = {} if queue is None else _copied(queue.state_dict())
    result: Step = state.method(0, _views(state))
    if queue is None:
        assert result.keys is None, "a method without a part `queue` returns keys to enqueue"
        return
    assert result.keys is not None, "a method with a queue returns no keys to enqueue"
    assert not result.keys.requires_grad, "the keys to enqueue carry a gradient; detach them"
    _assert_equal(before, queue.state_dict(), "the queue after the forward pass")
    result.loss.backward()
    state.method.update(0, result)
    after = queue.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before), (
        "update() did not enqueue the keys"
    )


def check_probe(settings: TrainerSettings, inputs: RunInputs) -> None:
    """`keys` gives unit vectors and leaves the run as it is: the same bits with and without."""
    state = _stopped_at(settings, inputs, STOP)
    views, before = _views(state), copy.deepcopy(state.state_dict())
    keys = state.method.keys(*views[-1])
    _assert_equal(before, state.state_dict(), "the state after keys()")
    assert len(keys) == settings.batch_size, f"keys() gives {len(keys)} rows of a batch"
    assert not keys.requires_grad, "keys() carry a gradient"
    lengths = keys.norm(dim=1)
    assert torch.allclose(lengths, torch.ones_like(lengths)), "keys() gives no unit vectors"
    if "queue" in state.method.parts():
        assert type(state.method).keys is not Method.keys, (
            "a method with a queue overrides keys(): by default it gives the encoder's vectors"
        )
    without, probed = (
        train(settings.model_copy(update={"probe_every": every}), inputs, _ignore)
        for every in (0, 1)
    )
    _assert_same_run(without, probed, "probed at every step")


def check_export(settings: TrainerSettings, inputs: RunInputs) -> None:
    """An exported checkpoint, loaded again, scores the same on the dev pairs."""
    outcome = train(settings, inputs, _ignore)
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "model"
        save_model(folder, settings, inputs, outcome, {})
        encoder = load_encoder(str(folder), settings.dropout)
        device = choose_device(settings)
        vectors = inputs.dev.embed(encoder.model, settings.pooling, device)
        score = inputs.dev.evaluate(vectors).score
    assert abs(score - outcome.after.dev.score) < 0.01, (
        f"the exported model scores {score:.2f} on dev, the trained one "
        f"{outcome.after.dev.score:.2f}"
    )


def _ignore(_step: int, _evaluation: Evaluation | None) -> None:
    """Nothing to do after a step."""


def _stopped_at(settings: TrainerSettings, inputs: RunInputs, steps: int) -> RunState:
    """The state of a run after some steps."""

    def stop(step: int, _evaluation: Evaluation | None) -> None:
        if step == steps:
            raise _Stopped

    state = start(settings, inputs)
    try:
        train(settings, inputs, stop, state)
    except _Stopped:
        return state
    raise AssertionError(f"the run ended before step {steps}")


def _views(state: RunState) -> Sequence[Tokens]:
    views: Sequence[Tokens] = next(state.batches)
    return views


def _copied(state: dict[str, Any]) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in state.items()}


def _assert_same_run(whole: Outcome, other: Outcome, how: str) -> None:
    for name, column in whole.curve.items():
        same = torch.equal(
            torch.nan_to_num(torch.from_numpy(column)),
            torch.nan_to_num(torch.from_numpy(other.curve[name])),
        )
        assert same, f"{how}, the curve {name!r} differs"
    _assert_equal(whole.states, other.states, f"the checkpoint of a run {how}")
    assert whole.all_scores() == other.all_scores(), f"{how}, scores differ"


def _assert_equal(first: Any, second: Any, what: str) -> None:
    """Nested mappings and lists of tensors and numbers that are the same bit for bit."""
    if isinstance(first, Tensor):
        same = first.dtype == second.dtype and torch.equal(
            torch.nan_to_num(first), torch.nan_to_num(second)
        )
        assert same, f"{what} differs"
    elif isinstance(first, dict):
        assert first.keys() == second.keys(), f"{what} has other entries"
        for name, value in first.items():
            _assert_equal(value, second[name], f"{what}: {name}")
    elif isinstance(first, list | tuple):
        assert len(first) == len(second), f"{what} has another length"
        for one, other in zip(first, second, strict=True):
            _assert_equal(one, other, what)
    else:
        assert first == second, f"{what} differs: {first} and {second}"
