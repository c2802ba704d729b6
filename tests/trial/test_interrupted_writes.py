"""A process that is killed, or a power failure, at every operation on files of a trial.

A trial saves checkpoints, keeps its result and saves its model, while each state of its folder is
recorded; each is then restored as a kill or a power failure would leave it, and read.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from disk_recorder import KILLED, LOSSES, Moment, Recorder

from mtdlab.files import remove_leftovers
from mtdlab.settings import TrainerSettings
from mtdlab.store.claims import Result
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.training.export import locked, save_model
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from mtdlab.trial.model_folders import remove_checkpoints_of
from mtdlab.trial.results import load_result, save_result

STEPS = (2, 4, 6)
RESULTS = {
    name: Result("COMPLETE", scores={"sts_dev": score}, arrays={"loss": np.full(99, score)})
    for name, score in (("first", 41.0), ("second", 42.0))
}
CHECKPOINTS = Path("models", ".checkpoints", "study", "trial")
MODEL = Path("models", "study")
Save = Callable[[int], None]


def record_trial(folder: Path) -> list[Moment]:
    """The moments of a trial that saves checkpoints, keeps two results and ends."""
    recorder, trial = Recorder(folder), folder / CHECKPOINTS
    with recorder.recording():
        for step in STEPS:
            save_checkpoint(trial, step, {"queue": torch.full((9,), float(step))}, {})
            recorder.complete(f"step {step}")
        for name, result in RESULTS.items():
            recorder.complete(f"begin of {name}")
            save_result(trial, result, name)
            recorder.complete(name)
        recorder.complete("trial")
        remove_checkpoints_of(trial)
    return recorder.moments


def assert_trial_is_kept(moments: Sequence[Moment], loss: str, place: Path) -> None:
    """The last complete checkpoint or the next one is read, and the result that was kept."""
    assert [moment.completed for moment in moments][-1][-1] == "trial"
    for moment in moments:
        if "trial" in moment.completed:
            continue
        trial = moment.restore(place, loss) / CHECKPOINTS
        found = find_checkpoint(trial)
        assert found.damaged == (), moment.operation
        done = [0, *(step for step in STEPS if f"step {step}" in moment.completed)][-1]
        following = [step for step in STEPS if step > done][:1]
        step = found.checkpoint.step if found.checkpoint else 0
        assert step in (done, *following), f"{moment.operation}: step {step}, {done} was saved"
        if found.checkpoint:
            assert found.checkpoint.state["queue"].tolist() == [float(step)] * 9
        for name, result in RESULTS.items():
            kept = load_result(trial, name)
            if kept is not None:
                assert kept.scores == result.scores
                np.testing.assert_array_equal(kept.arrays["loss"], result.arrays["loss"])
        # while it is replaced by that of other settings, the first is not needed any more
        newest = moment.completed[-1] if moment.completed else ""
        if newest in RESULTS:
            assert load_result(trial, newest) is not None, f"{moment.operation}: it is not kept"


def record_models(folder: Path, save: Save) -> list[Moment]:
    """The moments of a model that is saved and replaced by a better one."""
    recorder = Recorder(folder)
    with recorder.recording():
        for number in (1, 2):
            with locked(folder / MODEL):
                save(number)
            recorder.complete(f"model {number}")
    return recorder.moments


def files_of(folder: Path) -> dict[str, bytes]:
    """The contents of a folder's files."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_models_are_whole(moments: Sequence[Moment], loss: str, place: Path) -> None:
    """The model is one of the two, whole; it is missing only before the first was saved."""
    whole: dict[str, dict[str, bytes]] = {}
    for moment in moments:
        for name in moment.completed[-1:]:
            if name not in whole:
                whole[name] = files_of(moment.restore(place, KILLED) / MODEL)
    assert len(whole["model 1"]) > 8
    assert whole["model 1"] != whole["model 2"]
    for moment in moments:
        model = moment.restore(place, loss) / MODEL
        # as the next sweep does
        remove_leftovers(model)
        expected = [whole["model 2"]]
        if "model 2" not in moment.completed:
            expected.append(whole["model 1"])
        if "model 1" not in moment.completed:
            expected.append({})
        assert files_of(model) in expected, f"{moment.operation}: the model is damaged"
        assert not list(model.parent.glob("*.building-*")), moment.operation


@pytest.fixture(scope="session")
def save_numbered(settings_of: Callable[..., TrainerSettings]) -> Callable[[Path, int], None]:
    """Save the model of a short run with a number, by which two saved models differ."""
    settings = settings_of(steps=2, evaluate_every=2)
    inputs = load_inputs(settings)
    outcome = train(settings, inputs, lambda *_: None)

    def save(folder: Path, number: int) -> None:
        save_model(folder, settings, inputs, outcome, {"trial": number})

    return save


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> list[Moment]:
    return record_trial(tmp_path_factory.mktemp("trial"))


@pytest.fixture(scope="module")
def models(
    tmp_path_factory: pytest.TempPathFactory, save_numbered: Callable[[Path, int], None]
) -> list[Moment]:
    folder = tmp_path_factory.mktemp("models")
    return record_models(folder, lambda number: save_numbered(folder / MODEL, number))


@pytest.mark.parametrize("loss", [KILLED, *LOSSES])
def test_checkpoints_and_results_survive(trial: list[Moment], loss: str, tmp_path: Path) -> None:
    assert len(trial) > 80
    assert_trial_is_kept(trial, loss, tmp_path / "restored")


@pytest.mark.parametrize("loss", [KILLED, *LOSSES])
def test_models_are_whole_or_missing(models: list[Moment], loss: str, tmp_path: Path) -> None:
    assert len(models) > 80
    assert_models_are_whole(models, loss, tmp_path / "restored")
