"""Arrays that take long to simulate, kept in files between processes.

A file holds the SHA-256 of its contents; one that is damaged, or cannot be read or written, is
simulated again. It is written beside its place and moved, so that processes may share the folder.
"""

import hashlib
import io
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np

from mtdlab.analysis.data.defaults import cache_folder
from mtdlab.analysis.measures import Floats

_VERSION = 9
"""A part of every key; it is raised when what is simulated, or how, changes."""
_DIGEST = hashlib.sha256().digest_size


def keep(name: str, definition: tuple[object, ...], compute: Callable[[], Floats]) -> Floats:
    """The array that `compute` returns, from its file if it was computed before.

    The values are the same bit for bit with and without the file. `definition` is all that they
    depend on, as numbers, texts and arrays; NumPy's version is part of the key, as it decides the
    random numbers.
    """
    key = hashlib.sha256(f"{_VERSION} {np.__version__} {name}".encode())
    for part in definition:
        if isinstance(part, np.ndarray):
            key.update(f"{part.dtype} {part.shape}".encode() + part.tobytes())
        else:
            key.update(f" {part!r} ".encode())
    path = cache_folder() / "simulated" / f"{name}-{key.hexdigest()[:32]}"
    with suppress(OSError):
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            return np.asarray(np.load(io.BytesIO(content[_DIGEST:])), dtype=np.float64)
    table, buffer = np.asarray(compute(), dtype=np.float64), io.BytesIO()
    np.save(buffer, table)
    values = buffer.getvalue()
    with suppress(OSError):
        write_whole(path, hashlib.sha256(values).digest() + values)
    return table


def write_whole(path: Path, content: bytes) -> None:
    """Write a file; a reader sees the old one or the new one, never a part. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
