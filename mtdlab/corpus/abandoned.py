"""Temporary folders of the token cache that killed processes left: found and removed.

Several processes may prepare tokens at once. Each locks the folder that it writes; the system
releases the lock when the process ends, however it ends.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mtdlab.files import temporary_folders

YOUNG_SECONDS = 60.0
"""A younger folder may be one that its process has not locked yet."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Lock a folder until the block ends, where its file system has locks."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders of `new_folder` in a folder that no process holds."""
    for folder in temporary_folders(parent):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > YOUNG_SECONDS and _is_free(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_free(folder: Path) -> bool:
    """Whether no process holds a folder; raises OSError where that cannot be known."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
