"""Records a folder at every operation on its files, and what of it a power failure would leave.

A killed process leaves the folder as it is at that moment. A power failure leaves what was synced:
of a file the contents at its last fsync, of a folder the entries at its last fsync. What was not
synced may be lost or not, so there are several outcomes (`LOSSES`). Writes that are not made by
Python, such as those of safetensors, are seen at the next operation.
"""

import builtins
import io
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

Node = bytes | Mapping[str, int]
"""The contents of a file, or the inodes of a folder's entries by their names."""
Nodes = Mapping[int, Node]
Before = Callable[[str, tuple[Any, ...]], None]

KILLED = "killed"
LOSSES = tuple(
    pytest.param(loss, marks=pytest.mark.slow)
    for loss in ("all", "contents", "part 1", "part 2", "part 3")
)
"""All that was not synced is lost; contents are lost, but names are not; a part is, by chance."""
OPERATIONS = ("mkdir", "rename", "replace", "fsync", "unlink", "remove", "rmdir")


@contextmanager
def watched(before: Before, after: Callable[[str, tuple[Any, ...]], None]) -> Iterator[None]:
    """Call functions before and after each operation on files in Python, with its arguments."""

    def wrapped(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            before(name, arguments)
            result = original(*arguments, **named)
            after(name, arguments)
            return result

        return call

    patches = [patch.object(os, name, wrapped(name, getattr(os, name))) for name in OPERATIONS]
    opened = wrapped("open", io.open)
    patches += [patch.object(module, "open", opened) for module in (io, builtins)]
    for replaced in patches:
        replaced.start()
    try:
        yield
    finally:
        for replaced in patches:
            replaced.stop()


@dataclass(frozen=True)
class Moment:
    """A folder after an operation: what it holds, what of it is synced, what was completed."""

    operation: str
    root: int
    live: Nodes
    synced: Nodes
    completed: tuple[str, ...]

    def restore(self, target: Path, loss: str) -> Path:
        """Write the folder as a killed process or a power failure leaves it to `target`."""
        shutil.rmtree(target, ignore_errors=True)
        self._write(target, self.root, loss, random.Random(f"{self.operation} {loss}"))
        return target

    def _write(self, path: Path, inode: int, loss: str, rng: random.Random) -> None:
        node = self._node(inode, loss, rng)
        if isinstance(node, bytes):
            path.write_bytes(node)
            return
        path.mkdir()
        for name, entry in node.items():
            self._write(path / name, entry, loss, rng)

    def _node(self, inode: int, loss: str, rng: random.Random) -> Node:
        live = self.live.get(inode)
        if live is not None and loss == KILLED:
            return live
        known = live if live is not None else self.synced[inode]
        lost: Node = b"" if isinstance(known, bytes) else {}
        synced = self.synced.get(inode, lost)
        if live is None or live == synced or loss == "all":
            return synced
        if isinstance(live, bytes):
            part = live[: rng.randrange(len(live) + 1)]
            return rng.choice((synced, live, part)) if loss.startswith("part") else synced
        return rng.choice((synced, live)) if loss.startswith("part") else live


class Recorder:
    """Records the moments of one folder, all of which counts as synced at first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.moments = folder, list[Moment]()
        self._completed: tuple[str, ...] = ()
        self._contents: dict[bytes, bytes] = {}
        self._held: dict[int, int] = {}
        self._synced: dict[int, Node] = dict(self._snapshot())

    def complete(self, what: str) -> None:
        """Note that something was completed before the moments that follow."""
        self._completed = (*self._completed, what)
        self._record(f"{what} is completed")

    @contextmanager
    def recording(self) -> Iterator["Recorder"]:
        """Record every operation of the block."""
        try:
            with watched(self._before, self._after):
                yield self
        finally:
            for descriptor in self._held.values():
                os.close(descriptor)
            self._held.clear()

    def _before(self, name: str, _arguments: tuple[Any, ...]) -> None:
        self._record(f"before {name}")

    def _after(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name == "fsync":
            inode, live = os.fstat(arguments[0]).st_ino, self._snapshot()
            if inode in live:
                self._synced[inode] = live[inode]
        self._record(name)

    def _record(self, operation: str) -> None:
        name, root = f"{len(self.moments)}: {operation}", self.folder.stat().st_ino
        moment = Moment(name, root, self._snapshot(), dict(self._synced), self._completed)
        if not self.moments or replace(self.moments[-1], operation=name) != moment:
            self.moments.append(moment)

    def _snapshot(self) -> dict[int, Node]:
        nodes: dict[int, Node] = {}
        self._add(str(self.folder), nodes)
        return nodes

    def _add(self, path: str, nodes: dict[int, Node]) -> int:
        """Add a file or folder and what is in it; its inode."""
        descriptor = os.open(path, os.O_RDONLY)
        status = os.fstat(descriptor)
        # held open, so that the number is not given to another file after this one is removed
        if self._held.setdefault(status.st_ino, descriptor) != descriptor:
            os.close(descriptor)
        if stat.S_ISDIR(status.st_mode):
            entries = {}
            for name in sorted(os.listdir(path)):  # noqa: PTH208
                with suppress(FileNotFoundError):
                    entries[name] = self._add(f"{path}/{name}", nodes)
            nodes[status.st_ino] = entries
        else:
            content = os.pread(self._held[status.st_ino], status.st_size, 0)
            nodes[status.st_ino] = self._contents.setdefault(content, content)
        return status.st_ino
