"""Atomic creation of folders: written to a temporary folder, then renamed."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """A temporary folder beside `target`, renamed to it when the block ends without an error.

    replace  remove an earlier `target` just before the rename.

    Raises OSError if writing fails, or if `target` contains files and `replace` is False.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=_prefix(target), dir=target.parent))
    try:
        yield building
        if replace:
            _swap(target, building)
        else:
            building.rename(target)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def remove_leftovers(target: Path) -> None:
    """Remove temporary folders that killed processes left; no other process may be writing one."""
    for stale in target.parent.glob(f"{_prefix(target)}*"):
        shutil.rmtree(stale, ignore_errors=True)


def _prefix(target: Path) -> str:
    return f".{target.name}.building-"


def _swap(target: Path, building: Path) -> None:
    """Replace a folder by another. Not atomic: between the renames `target` does not exist."""
    old = building.with_name(building.name + "-old")
    if target.exists():
        target.rename(old)
    building.rename(target)
    shutil.rmtree(old, ignore_errors=True)
