"""A trial's checkpoints: a stopped trial continues and ends with the same bits."""

from pathlib import Path

import numpy as np
import pytest
import torch

from mtdlab.methods.mocose import MoCoSESettings
from mtdlab.sweep import checkpoints as module
from mtdlab.sweep.checkpoints import TrialCheckpoints, describe_run
from mtdlab.sweep.model_folders import remove_checkpoints_of
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import Outcome, start, train

STEPS = 8


@pytest.fixture(scope="module")
def settings(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> MoCoSESettings:
    return MoCoSESettings(
        encoder=str(tiny_encoder),
        corpus=str(tiny_corpus),
        evaluation=str(tiny_pairs),
        batch_size=4,
        queue_size=10,
        initial_queue_size=3,
        fgsm_epsilon=1e-3,
        steps=STEPS,
        evaluate_every=4,
    )


@pytest.fixture(scope="module")
def inputs(settings: MoCoSESettings) -> RunInputs:
    return load_inputs(settings)


@pytest.fixture(scope="module")
def whole(settings: MoCoSESettings, inputs: RunInputs) -> Outcome:
    return train(settings, inputs, lambda *_: None)


class Stopped(Exception):
    """Stands for a signal."""


def stop_at(folder: Path, settings: MoCoSESettings, inputs: RunInputs, last: int) -> None:
    state = start(settings, inputs)
    saved = TrialCheckpoints(folder)

    def on_step(step: int, _evaluation: object) -> None:
        if step == last:
            saved.save()
            raise Stopped

    with pytest.raises(Stopped), saved.continued(state, describe_run(settings, inputs)):
        train(settings, inputs, on_step, state)


def finish(saved: TrialCheckpoints, settings: MoCoSESettings, inputs: RunInputs) -> Outcome:
    torch.manual_seed(99)
    state = start(settings, inputs)
    with saved.continued(state, describe_run(settings, inputs)):
        return train(settings, inputs, lambda *_: None, state)


@pytest.mark.parametrize("last", [1, 4, 7])
def test_a_stopped_trial_ends_as_one_that_was_not(
    last: int, tmp_path: Path, settings: MoCoSESettings, inputs: RunInputs, whole: Outcome
) -> None:
    folder = tmp_path / "models" / "study" / "trial"
    stop_at(folder, settings, inputs, last)
    saved = TrialCheckpoints(folder)
    again = finish(saved, settings, inputs)
    assert saved.notes == [f"resumed after step {last}"]
    for name, column in whole.curve.items():
        np.testing.assert_array_equal(column, again.curve[name])
    assert whole.all_scores() == again.all_scores()
    assert all(torch.equal(whole.weights[name], one) for name, one in again.weights.items())
    assert again.wall_seconds > 0
    remove_checkpoints_of(folder)
    assert not folder.exists()
    assert not (tmp_path / "models").exists()


def test_a_damaged_checkpoint_is_noted_and_the_one_before_continues(
    tmp_path: Path, settings: MoCoSESettings, inputs: RunInputs, whole: Outcome
) -> None:
    for last in (2, 5):
        stop_at(tmp_path, settings, inputs, last)
    (tmp_path / "step-0000000005" / "values.json").write_text("{}")
    saved = TrialCheckpoints(tmp_path)
    again = finish(saved, settings, inputs)
    assert "checkpoint step-0000000005 is damaged" in saved.notes[0]
    assert saved.notes[1:] == ["resumed after step 2"]
    assert whole.all_scores() == again.all_scores()


def test_a_checkpoint_of_other_settings_is_not_used(
    tmp_path: Path, settings: MoCoSESettings, inputs: RunInputs
) -> None:
    stop_at(tmp_path, settings, inputs, 2)
    other = settings.model_copy(update={"learning_rate": 1e-5})
    saved = TrialCheckpoints(tmp_path)
    state = start(other, inputs)
    with saved.continued(state, describe_run(other, inputs)):
        assert state.step == 0
    assert saved.notes == [
        "checkpoint of step 2 was not used: it was saved with different settings"
    ]


def test_threads_are_those_of_the_checkpoint_and_another_processor_is_noted(
    tmp_path: Path, settings: MoCoSESettings, inputs: RunInputs
) -> None:
    state = start(settings, inputs)
    facts = describe_run(settings, inputs)
    now = torch.get_num_threads()
    save_checkpoint(
        tmp_path, 0, state.state_dict(), facts | {"threads": "3", "processor": "another"}
    )
    saved = TrialCheckpoints(tmp_path)
    with saved.continued(state, facts):
        assert torch.get_num_threads() == 3
        saved.save()
    assert torch.get_num_threads() == now
    assert saved.notes == [
        "resumed after step 0 with other processor: its numbers may differ in the last bits"
    ]
    found = find_checkpoint(tmp_path).checkpoint
    assert found is not None
    assert found.facts["threads"] == "3"


def test_a_full_disk_is_noted_once_and_does_not_end_the_trial(
    tmp_path: Path, settings: MoCoSESettings, inputs: RunInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "save_checkpoint", full)
    saved = TrialCheckpoints(tmp_path)
    state = start(settings, inputs)
    with saved.continued(state, describe_run(settings, inputs)):
        saved.save()
        saved.save()
    assert len(saved.notes) == 1
    assert saved.notes[0].startswith("checkpoint not saved: ")
    assert "No space left on device" in saved.notes[0]


def test_checkpoints_take_a_small_share_of_the_time(
    tmp_path: Path, settings: MoCoSESettings, inputs: RunInputs, monkeypatch: pytest.MonkeyPatch
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
    state = start(settings, inputs)
    with saved.continued(state, describe_run(settings, inputs)):
        while now < 3600:
            now += 1
            if saved.due():
                saved.save()
    assert taken[0] == 30
    assert 3600 * 0.02 < 6 * len(taken[1:]) <= 3600 * 0.03
