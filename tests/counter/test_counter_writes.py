"""What `test_interrupted_writes` finds where files are not synced, or folders are not renamed."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from disk_recorder import KILLED, LOSSES

from mtdlab import files
from mtdlab.training import checkpoint, export
from mtdlab.trial import results
from tests.trial.test_full_disk import (
    CHECKPOINT,
    CHECKPOINT_SIZES,
    EVERY,
    Kept,
    assert_earlier_stays,
    kept_model,
)
from tests.trial.test_interrupted_writes import (
    MODEL,
    assert_models_are_whole,
    assert_trial_is_kept,
    record_models,
    record_trial,
    save_numbered,
)

__all__ = ["kept_model", "save_numbered"]
NumberedSave = Callable[[Path, int], None]


@pytest.fixture
def unsynced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is synced to the disk."""
    monkeypatch.setattr(files, "sync", lambda _path: None)


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are written under their own names."""

    @contextmanager
    def write(target: Path, *, replace: bool = False, needed: int = 0) -> Iterator[Path]:
        with files._naming_space(target.parent, needed):
            if replace:
                shutil.rmtree(target, ignore_errors=True)
            target.mkdir(parents=True)
            yield target
            for path in (*target.rglob("*"), target):
                files.sync(path)

    for module in (checkpoint, export, results):
        monkeypatch.setattr(module, "new_folder", write)


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_power_failure_damages_a_trial_that_is_not_synced(tmp_path: Path, loss: str) -> None:
    (tmp_path / "trial").mkdir()
    moments = record_trial(tmp_path / "trial")
    with pytest.raises(AssertionError, match=r"step 0, 2 was saved|damaged"):
        assert_trial_is_kept(moments, loss, tmp_path / "restored")
    # a killed process leaves what the system has not written yet
    assert_trial_is_kept(moments, KILLED, tmp_path / "restored")


@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_power_failure_damages_a_model_that_is_not_synced(
    tmp_path: Path, loss: str, save_numbered: NumberedSave
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    moments = record_models(folder, lambda number: save_numbered(folder / MODEL, number))
    with pytest.raises(AssertionError, match="the model is damaged"):
        assert_models_are_whole(moments, loss, tmp_path / "restored")


@pytest.mark.usefixtures("in_place")
def test_a_kill_damages_a_checkpoint_that_is_written_in_place(tmp_path: Path) -> None:
    (tmp_path / "trial").mkdir()
    moments = record_trial(tmp_path / "trial")
    with pytest.raises(AssertionError, match="checkpoint step-0000000002 is damaged"):
        assert_trial_is_kept(moments, KILLED, tmp_path / "restored")


@pytest.mark.usefixtures("in_place")
def test_a_kill_damages_a_model_that_is_written_in_place(
    tmp_path: Path, save_numbered: NumberedSave
) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    moments = record_models(folder, lambda number: save_numbered(folder / MODEL, number))
    with pytest.raises(AssertionError, match="the model is damaged"):
        assert_models_are_whole(moments, KILLED, tmp_path / "restored")


@pytest.mark.usefixtures("in_place")
def test_a_full_disk_damages_a_checkpoint_that_is_written_in_place(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"what was saved first is damaged: .*step-0000000002"):
        assert_earlier_stays(CHECKPOINT, tmp_path, CHECKPOINT_SIZES)


@pytest.mark.usefixtures("in_place")
def test_a_full_disk_damages_a_model_that_is_written_in_place(
    tmp_path: Path, kept_model: Kept
) -> None:
    with pytest.raises(AssertionError, match="what was saved first is damaged"):
        assert_earlier_stays(kept_model, tmp_path, (), EVERY)
