"""Disks on which writing fails: at one of the operations of Python, or at a size of a file."""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from disk_recorder import watched

NEED_SPACE = ("mkdir", "rename", "replace", "fsync")
"""Operations that fail on a full disk, with the opening of a file to be written."""


class Operations:
    """Counts the operations that need space; those from number `last` on fail."""

    def __init__(self, last: float = float("inf")) -> None:
        self.count, self._last = 0, last

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count, and fail, in the block."""
        with watched(self._before, lambda *_: None):
            yield

    def _before(self, name: str, arguments: tuple[Any, ...]) -> None:
        writes = name == "open" and len(arguments) > 1 and set(str(arguments[1])) & set("wax")
        if name in NEED_SPACE or writes:
            self.count += 1
            if self.count > self._last:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def size_limit(size: int) -> Iterator[None]:
    """Let the system refuse to write more than `size` bytes to a file, also where Rust writes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
