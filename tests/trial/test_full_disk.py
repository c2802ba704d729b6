"""A disk that is full at each write of a checkpoint, a model or a result: the earlier one stays."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from full_disk import Operations, size_limit

from mtdlab.files import remove_leftovers
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.trial.results import load_result, save_result
from tests.trial.test_interrupted_writes import RESULTS, files_of, save_numbered

__all__ = ["save_numbered"]
MESSAGE = r"\] (No space left on device|File too large): about [\d.]+ MB are needed, .* MB are free"
CHECKPOINT_SIZES, MODEL_SIZES = (0, 1, 100, 300), (0, 60, 600, 4_000)
"""Limits of the size of a file, below that of the largest one."""
EVERY = 9
"""Of the operations of a model's export, those that the quick test tries."""


@dataclass(frozen=True)
class Kept:
    """What is saved twice to a folder, and how it is read."""

    save: Callable[[Path, int], None]
    read: Callable[[Path], Any]


def save_step(folder: Path, step: int) -> None:
    """Save a checkpoint of a few numbers."""
    save_checkpoint(folder / "trial", step, {"queue": torch.full((99,), float(step))}, {})


def read_step(folder: Path) -> Any:
    """What is found of the checkpoints, and the names that are there."""
    found = find_checkpoint(folder / "trial")
    step = found.checkpoint and found.checkpoint.step
    return step, found.damaged, sorted(path.name for path in (folder / "trial").iterdir())


def read_model(folder: Path) -> dict[str, bytes]:
    """The files of a model, after the next sweep has removed what failed."""
    remove_leftovers(folder / "model")
    return files_of(folder / "model")


@pytest.fixture(scope="session")
def kept_model(save_numbered: Callable[[Path, int], None]) -> Kept:
    return Kept(lambda folder, number: save_numbered(folder / "model", number), read_model)


CHECKPOINT = Kept(save_step, read_step)


def full_disks(
    kept: Kept, place: Path, sizes: tuple[int, ...], every: int
) -> Iterator[AbstractContextManager[None]]:
    """Disks that are full at each `every`-th operation of the second save, and at these sizes."""
    counted = Operations()
    kept.save(place, 1)
    with counted.watching():
        kept.save(place, 2)
    assert counted.count > 5
    for last in range(0, counted.count, every):
        yield Operations(last).watching()
    for size in sizes:
        yield size_limit(size)


def assert_earlier_stays(kept: Kept, place: Path, sizes: tuple[int, ...], every: int = 1) -> None:
    """The first is read where the second could not be written; the second is saved with space."""
    first, copy = place / "first", place / "copy"
    kept.save(first, 1)
    for disk in full_disks(kept, place / "count", sizes, every):
        shutil.copytree(first, copy)
        with disk, pytest.raises(OSError, match=MESSAGE):
            kept.save(copy, 2)
        found = kept.read(copy)
        kept.save(copy, 2)
        second = kept.read(copy)
        assert found in (kept.read(first), second), f"what was saved first is damaged: {found}"
        assert found != second or kept.read(first) != second
        shutil.rmtree(copy)


def test_checkpoints_on_a_full_disk(tmp_path: Path) -> None:
    assert_earlier_stays(CHECKPOINT, tmp_path, CHECKPOINT_SIZES)


@pytest.mark.slow
def test_models_on_a_full_disk(tmp_path: Path, kept_model: Kept) -> None:
    assert_earlier_stays(kept_model, tmp_path, MODEL_SIZES, EVERY)


@pytest.mark.slow
def test_models_on_a_disk_that_is_full_at_any_write(tmp_path: Path, kept_model: Kept) -> None:
    assert_earlier_stays(kept_model, tmp_path, MODEL_SIZES)


@pytest.mark.parametrize(
    "disk",
    [*(Operations(last).watching() for last in range(0, 12, 2)), size_limit(0), size_limit(300)],
)
def test_a_result_that_cannot_be_kept_is_no_error(
    tmp_path: Path, disk: AbstractContextManager[None]
) -> None:
    """The database is told next; a result is whole or missing."""
    with disk:
        save_result(tmp_path, RESULTS["first"], "first")
    kept = load_result(tmp_path, "first")
    assert kept is None or kept.scores == RESULTS["first"].scores
    assert not list(tmp_path.glob(".*"))
    save_result(tmp_path, RESULTS["first"], "first")
    assert load_result(tmp_path, "first") is not None
