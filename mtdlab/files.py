"""Atomic creation of folders: written to a temporary folder, then renamed."""

import errno
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_BUILDING = ".building-"
"""The mark between a target's name and a random ending, in the name of a temporary folder."""
_OLD = "-old"
"""The ending of the name of an earlier folder while it is replaced."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The numbers of the errors of a full disk, and of a limit on the size of files."""
_unfinished: set[Path] = set()
"""The temporary folders that this process is writing."""
MOUNTS = Path("/proc/self/mounts")
_NETWORK = ("nfs", "cifs", "smb", "afs", "fuse.sshfs")
"""How the kinds of file systems begin whose locks do not hold between machines."""


@contextmanager
def new_folder(target: Path, *, replace: bool = False, needed: int = 0) -> Iterator[Path]:
    """A temporary folder beside `target`, renamed to it when the block ends without an error.

    Its files are synced to the disk before the rename and the rename after it: a power failure
    leaves the new folder with its contents, or the earlier one, which `replace` removes just before
    the rename. Raises OSError if writing fails, with the bytes `needed` of a full disk, or if
    `target` contains files and `replace` is False.
    """
    with _naming_space(target.parent, needed):
        make_folder(target.parent)
        building = Path(tempfile.mkdtemp(prefix=f".{target.name}{_BUILDING}", dir=target.parent))
        _unfinished.add(building)
        try:
            yield building
            for path in (*building.rglob("*"), building):
                sync(path)
            if replace:
                replace_folder(target, building)
            else:
                building.rename(target)
                sync(target.parent)
        finally:
            shutil.rmtree(building, ignore_errors=True)
            _unfinished.discard(building)


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, each synced to the disk. Raises OSError if that fails."""
    while not folder.is_dir():
        make_folder(folder.parent)
        # a process whose trial has ended removes the folders above it that are empty
        with suppress(FileNotFoundError):
            folder.mkdir(exist_ok=True)
            sync(folder.parent)


def remove_unfinished() -> None:
    """Remove the temporary folders that this process is writing; call it just before its end."""
    for building in tuple(_unfinished):
        shutil.rmtree(building, ignore_errors=True)


def temporary_folders(parent: Path, name: str = "", end: str = "") -> Iterator[Path]:
    """The temporary folders of `new_folder` in `parent`, for the target `name` or for any."""
    return parent.glob(f".{glob.escape(name) or '*'}{_BUILDING}*{end}")


def remove_leftovers(target: Path) -> None:
    """Remove temporary folders that killed processes left; no other process may be writing one.

    An earlier `target` that a process moved away before it was killed is moved back.
    """
    for old in temporary_folders(target.parent, target.name, _OLD):
        if not target.exists():
            old.rename(target)
    for stale in temporary_folders(target.parent, target.name):
        shutil.rmtree(stale, ignore_errors=True)


def free_bytes(folder: Path) -> int:
    """The free space on the disk of a folder, which need not exist yet."""
    whole = folder.absolute()
    return shutil.disk_usage(next(path for path in (whole, *whole.parents) if path.exists())).free


def free_space(folder: Path) -> str:
    """The free space on the disk of a folder, in words."""
    return f"{free_bytes(folder) / 1e6:.1f} MB are free in {folder}"


@contextmanager
def _naming_space(folder: Path, needed: int) -> Iterator[None]:
    """Raise an OSError of a full disk with the space that is needed and free."""
    try:
        yield
    except Exception as error:
        # that of safetensors is none of Python's own, and the light install does without
        if not isinstance(error, OSError) and type(error).__name__ != "SafetensorError":
            raise
        match = re.search(r"\(os error (\d+)\)", str(error))
        number = int(match[1]) if match else getattr(error, "errno", None)
        if number in _FULL:
            wanted = f"about {needed / 1e6:.1f} MB are needed, " if needed else ""
            reason = f"{os.strerror(number)}: {wanted}{free_space(folder)}"
            raise OSError(number, reason) from error
        if not isinstance(error, OSError):
            raise OSError(str(error)) from error
        raise


def sync(path: Path) -> None:
    """Write a file's contents, or a folder's entries, from the system's cache to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_folder(target: Path, building: Path) -> None:
    """Replace a folder by another of the same file system, which has been synced.

    Not atomic: between the renames `target` does not exist.
    """
    old = building.with_name(building.name + _OLD)
    if target.exists():
        target.rename(old)
    building.rename(target)
    # first, else a power failure could leave the earlier folder under its name without its files
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def network_kind(path: Path) -> str:
    """The kind of the network file system of a path, such as nfs4; empty for a local one."""
    real, found, longest = Path(os.path.realpath(path)), "", 0
    with suppress(OSError):
        for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
            _, mount, kind, *_ = (*line.split(" "), "", "", "")
            point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), mount)
            # of two on one point the later is seen
            if len(point) >= longest and point and real.is_relative_to(point):
                found, longest = kind, len(point)
    return found if found.startswith(_NETWORK) else ""
