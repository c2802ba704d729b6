"""Conformance checks for training methods, including methods outside this package.

    from mtdlab.testing import check_method
    check_method(MyMethod)

Each check trains for a few steps on the built-in data, or with other `settings`, and raises
AssertionError with a sentence. `method_checks` returns the single checks, for pytest's parametrize.
"""

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mtdlab.errors import TrialError
from mtdlab.evaluation.suite import Evaluation
from mtdlab.methods.base import Method, Step
from mtdlab.methods.registry import BUILTIN, register
from mtdlab.settings import TrainerSettings
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.training.export import save_model
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import Outcome, start, train
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
UNSAVED = (
    "; is a tensor, a count or a random generator missing from the state? A tensor is saved with "
    "register_buffer, keys with a KeyQueue, anything else with get_extra_state"
)
"""Likely reasons for a difference of a resumed run, as the end of the message."""


class _Stopped(Exception):
    """Raised by a step callback to interrupt a run."""


def check_method(method: type[Method[Any]], **settings: Any) -> None:
    """Run every check on a method; the first that fails raises AssertionError."""
    for check in method_checks():
        run_check(check, method, **settings)


def method_checks() -> tuple[Check, ...]:
    """All checks, in the order in which `check_method` runs them."""
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
    """Run one check on a method. Registers the method if it is not built in."""
    if method.name not in BUILTIN:
        register(method)
    made = method.Settings(**{"method": method.name, **_BRIEF, **settings})
    check(made, load_inputs(made))


def check_declared(settings: TrainerSettings, inputs: RunInputs) -> None:
    """Name, title, source and the sentence for the model card exist; settings have descriptions."""
    method = start(settings, inputs).method
    for name in ("name", "title", "source"):
        value = getattr(method, name)
        told = isinstance(value, str) and value.strip()
        assert told, f"{name} is {value!r}; it must be a string that is not empty"
    sentence = type(method).describe(settings)
    assert sentence.strip().endswith("."), f"describe() returns {sentence!r}; it must be a sentence"
    missing = [name for name, field in type(settings).model_fields.items() if not field.description]
    assert not missing, f"settings without a description: {', '.join(missing)}"
    assert settings.mtd is None or settings.mtd > 0, (
        f"mtd is {settings.mtd}; it must be None or > 0"
    )
    assert "encoder" in method.parts(), "parts() lacks the encoder"


def check_trains(settings: TrainerSettings, inputs: RunInputs) -> None:
    """Losses are finite, weights change, and the encoder that was loaded is not modified."""
    before = copy.deepcopy(inputs.encoder.model.state_dict())
    outcome = train(settings, inputs)
    assert torch.isfinite(torch.from_numpy(outcome.curve["loss"])).all(), "a loss is not finite"
    assert _differ(before, outcome.weights), "training changed no weight of the encoder"
    assert not _differ(before, inputs.encoder.model.state_dict()), (
        "training modified the loaded encoder; train the copy that the constructor receives"
    )


def check_state_round_trip(settings: TrainerSettings, inputs: RunInputs) -> None:
    """Saving a state as a checkpoint and loading it gives an equal state."""
    state = _stop_at(settings, inputs, STOP)
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder), STOP, state.state_dict(), {})
        checkpoint = find_checkpoint(Path(folder)).checkpoint
    assert checkpoint is not None, "the checkpoint that was just saved is damaged"
    other = start(settings, inputs)
    other.load_state_dict(checkpoint.state)
    _assert_equal(state.state_dict(), other.state_dict(), "state")


def check_resume(settings: TrainerSettings, inputs: RunInputs) -> None:
    """A run that is stopped and resumed from its state gives bit-identical results."""
    saved: dict[int, dict[str, Any]] = {stop: {} for stop in (1, STOP, settings.steps - 1)}

    def save(step: int, _evaluation: Evaluation | None) -> None:
        if step in saved:
            saved[step] = copy.deepcopy(state.state_dict())

    state = start(settings, inputs)
    whole = train(settings, inputs, save, state)
    for stop, values in saved.items():
        # a random draw that is not restored from the state would now differ
        torch.manual_seed(987_654)
        resumed = start(settings, inputs)
        resumed.load_state_dict(values)
        again = train(settings, inputs, state=resumed)
        _assert_same_run(whole, again, f"resumed at step {stop}", UNSAVED)


def check_failed_loss(settings: TrainerSettings, inputs: RunInputs) -> None:
    """A forward pass that raises an error does not modify the queue."""
    state = _stop_at(settings, inputs, STOP)
    queue = state.method.parts().get("queue")
    if queue is None:
        return
    before = copy.deepcopy(queue.state_dict())
    broken = [(ids.new_full(ids.shape, -1), mask) for ids, mask in next(state.batches)]
    try:
        state.method(STOP, broken)
    except Exception as error:
        # the type of the error for an invalid token id depends on the method
        del error
    else:
        raise AssertionError("a batch of invalid token ids gave a loss")
    _assert_equal(before, queue.state_dict(), "the queue after a loss that raised")


def check_keys_follow_the_loss(settings: TrainerSettings, inputs: RunInputs) -> None:
    """The forward pass does not modify the queue; update() enqueues the detached keys."""
    state = start(settings, inputs)
    queue = state.method.parts().get("queue")
    before = {} if queue is None else copy.deepcopy(queue.state_dict())
    result: Step = state.method(0, next(state.batches))
    if queue is None:
        assert result.keys is None, "a method without a part `queue` returns keys to enqueue"
        return
    assert result.keys is not None, "a method with a queue returns no keys to enqueue"
    assert not result.keys.requires_grad, "the keys to enqueue require a gradient; detach them"
    _assert_equal(before, queue.state_dict(), "the queue after the forward pass")
    result.loss.backward()
    state.method.update(0, result)
    assert _differ(before, queue.state_dict()), "update() did not enqueue the keys"


def check_probe(settings: TrainerSettings, inputs: RunInputs) -> None:
    """keys() returns unit vectors, and probing does not change a run (bit-identical results)."""
    state = _stop_at(settings, inputs, STOP)
    views, before = next(state.batches), copy.deepcopy(state.state_dict())
    keys, online = state.method.keys(*views[-1]), state.method.online_keys(*views[-1])
    _assert_equal(before, state.state_dict(), "the state after keys() and online_keys()")
    assert keys.shape == online.shape, "keys() and online_keys() differ in shape"
    assert len(keys) == settings.batch_size, (
        f"keys() returns {len(keys)} rows for {settings.batch_size} sentences"
    )
    assert not keys.requires_grad, "the result of keys() requires a gradient"
    lengths = keys.norm(dim=1)
    assert torch.allclose(lengths, torch.ones_like(lengths)), "keys() does not return unit vectors"
    if "queue" in state.method.parts():
        assert type(state.method).keys is not Method.keys, (
            "a method with a queue must override keys(), which by default returns the encoder's "
            "vectors"
        )
    without, probed = (
        train(settings.model_copy(update={"probe_every": every}), inputs) for every in (0, 1)
    )
    _assert_same_run(without, probed, "probed at every step")


def check_export(settings: TrainerSettings, inputs: RunInputs) -> None:
    """An exported checkpoint that is loaded again has the same score on the dev pairs."""
    outcome = train(settings, inputs)
    with tempfile.TemporaryDirectory() as parent:
        try:
            # which loads and scores what it has written
            save_model(Path(parent) / "model", settings, inputs, outcome, {})
        except TrialError as error:
            raise AssertionError(str(error)) from error


def _stop_at(settings: TrainerSettings, inputs: RunInputs, steps: int) -> RunState:
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


def _differ(before: dict[str, Any], after: dict[str, Any]) -> bool:
    return any(not torch.equal(value, after[name]) for name, value in before.items())


def _assert_same_run(whole: Outcome, other: Outcome, how: str, hint: str = "") -> None:
    for name, column in whole.curve.items():
        _assert_equal(column, other.curve[name], f"{how}, the curve {name!r}", hint)
    _assert_equal(whole.states, other.states, f"the checkpoint of a run {how}")
    _assert_equal(whole.after.by_name(), other.after.by_name(), f"{how}, a score")


def _assert_equal(first: Any, second: Any, what: str, hint: str = "") -> None:
    """Assert that nested mappings and lists of arrays and numbers are bit-identical; NaN is NaN."""
    torch.testing.assert_close(
        first,
        second,
        rtol=0,
        atol=0,
        equal_nan=True,
        msg=lambda detail: f"{what} differs{hint}: {detail}",
    )
