"""A trial's checkpoints: a stopped trial continues, also elsewhere, and ends with the same bits.

A machine is a folder of models of its own; what they share is a place of another kind.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from mtdlab.settings import TrainerSettings
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import Outcome, start, train
from mtdlab.training.state import RunState
from mtdlab.trial import checkpoints as module
from mtdlab.trial.artifacts import Artifacts
from mtdlab.trial.checkpoints import SharedCheckpoints, TrialCheckpoints, describe_run
from mtdlab.trial.model_folders import remove_checkpoints_of

STEPS = 8
TRIAL = Path(".checkpoints", "0f", "study", "setting-0")
FOLDER, SHARED = Path("0f/study/setting-0"), "study/checkpoints/0f/setting-0"


@pytest.fixture(scope="module")
def settings(settings_of: Callable[..., TrainerSettings]) -> TrainerSettings:
    queue = {"batch_size": 4, "queue_size": 10, "initial_queue_size": 3}
    return settings_of(steps=STEPS, fgsm_epsilon=1e-3, **queue)


@pytest.fixture(scope="module")
def inputs(settings: TrainerSettings) -> RunInputs:
    return load_inputs(settings)


@pytest.fixture(scope="module")
def whole(settings: TrainerSettings, inputs: RunInputs) -> Outcome:
    return train(settings, inputs, lambda *_: None)


@pytest.fixture
def state(settings: TrainerSettings, inputs: RunInputs) -> RunState:
    return start(settings, inputs)


@pytest.fixture
def facts(settings: TrainerSettings, inputs: RunInputs) -> dict[str, str]:
    return describe_run(settings, inputs)


class Stopped(Exception):
    """Stands for a signal."""


@dataclass
class Ended:
    """A trial after its time on a machine; without an outcome where it was stopped."""

    checkpoints: TrialCheckpoints
    outcome: Any

    @property
    def notes(self) -> list[str]:
        return self.checkpoints.notes


Host = Callable[..., Ended]


@pytest.fixture
def host(
    tmp_path: Path, settings: TrainerSettings, inputs: RunInputs, facts: dict[str, str]
) -> Host:
    """Trains on a machine from where the trial is, to its end or to a step."""

    def run(
        name: str, url: str | None = None, last: int = STEPS, saved: tuple[int, ...] = ()
    ) -> Ended:
        folder = tmp_path / name / TRIAL
        shared = None if url is None else SharedCheckpoints(Artifacts(url), folder)
        checkpoints = TrialCheckpoints(folder, shared)
        torch.manual_seed(ord(name[0]) + last)
        state = start(settings, inputs)

        def on_step(step: int, _evaluation: object) -> None:
            if step in saved or step == last < STEPS:
                checkpoints.save()
            if step == last < STEPS:
                raise Stopped

        with checkpoints.continued(state, facts):
            outcome = None
            with suppress(Stopped):
                outcome = train(settings, inputs, on_step, state)
        return Ended(checkpoints, outcome)

    return run


def check_equal(one: Outcome, other: Outcome) -> None:
    for name, column in one.curve.items():
        np.testing.assert_array_equal(column, other.curve[name])
    assert one.after.by_name() == other.after.by_name()
    assert all(torch.equal(one.weights[name], weights) for name, weights in other.weights.items())


@pytest.mark.parametrize("last", [1, 4, 7])
def test_a_stopped_trial_ends_as_one_that_was_not(
    last: int, host: Host, whole: Outcome, tmp_path: Path
) -> None:
    host("a", last=last)
    again = host("a")
    assert again.notes == [f"resumed after step {last}"]
    check_equal(whole, again.outcome)
    assert again.outcome.wall_seconds > 0
    remove_checkpoints_of(tmp_path / "a" / TRIAL)
    assert not (tmp_path / "a" / ".checkpoints").exists()


def test_a_damaged_checkpoint_is_noted_and_the_one_before_continues(
    host: Host, whole: Outcome, tmp_path: Path
) -> None:
    host("a", last=5, saved=(2,))
    (tmp_path / "a" / TRIAL / "step-0000000005" / "values.json").write_text("{}")
    again = host("a")
    assert "checkpoint step-0000000005 is damaged" in again.notes[0]
    assert again.notes[1:] == ["resumed after step 2"]
    check_equal(whole, again.outcome)


def test_a_checkpoint_of_other_settings_is_not_used(
    host: Host, tmp_path: Path, settings: TrainerSettings, inputs: RunInputs
) -> None:
    host("a", last=2)
    other = settings.model_copy(update={"learning_rate": 1e-5})
    saved = TrialCheckpoints(tmp_path / "a" / TRIAL)
    state = start(other, inputs)
    with saved.continued(state, describe_run(other, inputs)):
        assert state.step == 0
    assert saved.notes == [
        "checkpoint of step 2 was not used: it was saved with different settings"
    ]


def test_threads_are_those_of_the_checkpoint_and_another_processor_is_noted(
    tmp_path: Path, state: RunState, facts: dict[str, str]
) -> None:
    now = torch.get_num_threads()
    elsewhere = facts | {"threads": "3", "processor": "another"}
    save_checkpoint(tmp_path, 0, state.state_dict(), elsewhere)
    saved = TrialCheckpoints(tmp_path)
    with saved.continued(state, facts):
        assert torch.get_num_threads() == 3
        saved.save()
    assert torch.get_num_threads() == now
    assert saved.notes == [
        "resumed after step 0 with other processor: its numbers may differ in the last bits"
    ]
    assert find_checkpoint(tmp_path).checkpoint.facts["threads"] == "3"


def test_a_full_disk_is_noted_once_and_does_not_end_the_trial(
    tmp_path: Path, state: RunState, facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_checkpoint", full)
    saved = TrialCheckpoints(tmp_path)
    with saved.continued(state, facts):
        saved.save()
        saved.save()
    [note] = saved.notes
    assert note.startswith("checkpoint not saved: ")
    assert "No space left on device" in note


def test_checkpoints_take_a_small_share_of_the_time(
    tmp_path: Path, state: RunState, facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    taken: list[float] = []

    def save(*_: object) -> None:
        nonlocal now
        taken.append(now)
        now += 6

    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    monkeypatch.setattr(module, "save_checkpoint", save)
    saved = TrialCheckpoints(tmp_path)
    with saved.continued(state, facts):
        while now < 3600:
            now += 1
            if saved.due():
                saved.save()
    assert taken[0] == 30
    assert 3600 * 0.02 < 6 * len(taken[1:]) <= 3600 * 0.03


def test_a_trial_stopped_on_one_machine_ends_on_another_with_the_same_bits(
    host: Host, shared_url: str, whole: Outcome
) -> None:
    assert host("a", shared_url, last=5).notes == []
    resumed = host("b", shared_url)
    assert resumed.notes == ["resumed after step 5"]
    check_equal(whole, resumed.outcome)
    assert resumed.checkpoints.remove_shared() == []
    assert Artifacts(shared_url).files("") == []


def test_the_two_newest_checkpoints_are_kept(host: Host, shared_url: str) -> None:
    host("a", shared_url, last=6, saved=(1, 3))
    artifacts = Artifacts(shared_url)
    steps = {file.split("/")[0] for file in artifacts.files(SHARED)}
    assert steps == {"step-0000000003", "step-0000000006"}
    assert SharedCheckpoints(artifacts, FOLDER).steps() == [6, 3]


@pytest.mark.parametrize(("first", "second"), [(2, 5), (5, 2)])
def test_the_checkpoint_that_is_further_continues_wherever_it_is(
    host: Host, shared_url: str, whole: Outcome, first: int, second: int
) -> None:
    host("a", last=first)
    host("b", shared_url, last=second)
    resumed = host("a", shared_url)
    assert resumed.notes == ["resumed after step 5"]
    check_equal(whole, resumed.outcome)


def test_a_checkpoint_that_was_uploaded_in_part_is_ignored_and_later_removed(
    host: Host, shared_url: str, whole: Outcome, tmp_path: Path
) -> None:
    host("a", shared_url, last=2)
    host("dead", last=5)
    half = tmp_path / "dead" / TRIAL / "step-0000000005"
    (half / "manifest.json").unlink()
    artifacts = Artifacts(shared_url)
    artifacts.upload(half, f"{SHARED}/{half.name}", last="tensors.safetensors")
    resumed = host("b", shared_url, saved=(7,))
    assert resumed.notes == ["resumed after step 2"]
    check_equal(whole, resumed.outcome)
    steps = {file.split("/")[0] for file in artifacts.files(SHARED)}
    assert steps == {"step-0000000002", "step-0000000007"}


def test_a_damaged_shared_checkpoint_is_noted_and_the_one_before_continues(
    host: Host, shared_url: str, whole: Outcome, tmp_path: Path
) -> None:
    host("a", shared_url, last=5, saved=(2,))
    newest = tmp_path / "a" / TRIAL / "step-0000000005"
    (newest / "values.json").write_text("{}")
    Artifacts(shared_url).upload(newest, f"{SHARED}/{newest.name}", last="manifest.json")
    resumed = host("b", shared_url)
    assert "checkpoint step-0000000005 is damaged" in resumed.notes[0]
    assert resumed.notes[1:] == ["resumed after step 2"]
    check_equal(whole, resumed.outcome)


def test_a_place_that_fails_is_noted_once_and_does_not_end_the_trial(
    host: Host, tmp_path: Path, whole: Outcome, fail: Callable[..., None]
) -> None:
    fail(PermissionError(13, "Access Denied"), "put_file")
    ended = host("a", f"file://{tmp_path / 'shared'}", saved=(2, 4))
    [note] = ended.notes
    assert note.startswith("checkpoint not shared: shared place file://")
    assert note.endswith("cannot be written to (PermissionError: [Errno 13] Access Denied)")
    check_equal(whole, ended.outcome)
    # they are still on this machine
    assert len(list((tmp_path / "a" / TRIAL).glob("step-*"))) == 2


def test_a_place_that_cannot_be_read_is_noted_and_the_local_checkpoint_continues(
    host: Host, tmp_path: Path, whole: Outcome, fail: Callable[..., None]
) -> None:
    url = f"file://{tmp_path / 'shared'}"
    host("a", url, last=3)
    fail(TimeoutError("no answer"), "find")
    resumed = host("a", url)
    assert resumed.notes[0].startswith("shared checkpoints not read: shared place file://")
    assert resumed.notes[1:] == ["resumed after step 3"]
    check_equal(whole, resumed.outcome)
    fail(TimeoutError("no answer"), "rm")
    [note] = resumed.checkpoints.remove_shared()
    assert note.startswith("shared checkpoints not removed: shared place")


def test_an_upload_counts_as_the_cost_of_a_checkpoint(
    tmp_path: Path, state: RunState, facts: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0

    class Slow(SharedCheckpoints):
        def upload(self, checkpoint: Path) -> None:
            nonlocal now
            assert (checkpoint / "manifest.json").exists()
            now += 6

    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    saved = TrialCheckpoints(tmp_path, Slow(Artifacts("memory://slow"), FOLDER))
    with saved.continued(state, facts):
        saved.save()
        now += 199
        assert not saved.due()
        now += 2
        assert saved.due()


def test_other_files_in_the_place_are_no_checkpoints(tmp_path: Path) -> None:
    artifacts = Artifacts(f"file://{tmp_path / 'shared'}")
    place = tmp_path / "shared" / SHARED
    for name in ("step-5", "notes", "step-0000000001"):
        (place / name).mkdir(parents=True)
        (place / name / "manifest.json").write_text("{}")
    (place / "step-0000000009").mkdir()
    (place / "step-0000000009" / "values.json").write_text("{}")
    assert SharedCheckpoints(artifacts, FOLDER).steps() == [1]
    save_checkpoint(tmp_path / "a", 3, {}, {})
    SharedCheckpoints(artifacts, FOLDER).upload(tmp_path / "a" / "step-0000000003")
    assert SharedCheckpoints(artifacts, FOLDER).steps() == [3, 1]
