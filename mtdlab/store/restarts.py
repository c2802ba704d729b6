"""This module outlasts a server that is started again, or ends connections, during a study."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from sqlalchemy import Dialect, Engine, event

from mtdlab.errors import ConnectionLost, StorageError

RESTART_SECONDS = 60.0
"""Time to wait for a server that answered before, from its first connection that fails."""
RETRY_SECONDS = 0.5
MOST_ATTEMPTS = 5
"""Connections lost in succession after which a function, or a worker, fails."""

T = TypeVar("T")

_answered: set[str] = set()
_silent_since: dict[str, float] = {}
_waits: ContextVar[bool] = ContextVar("waits", default=True)


def expect_server(url: str) -> None:
    """Let also the first connection of this process wait: that which started it has connected."""
    _answered.add(url)


@contextmanager
def without_waiting() -> Iterator[None]:
    """Let connections in this block fail at once, such as those of heartbeats."""
    token = _waits.set(False)
    try:
        yield
    finally:
        _waits.reset(token)


def outlast_restarts(engine: Engine, url: str) -> None:
    """Let an engine wait for a server that has answered this process, and does not any more.

    Every transaction on a server has a connection of its own: one that begins while the server
    restarts waits for it. One that the restart interrupts fails, since whether it was committed is
    not known then. A first connection does not wait: its URL may be wrong.
    """

    @event.listens_for(engine, "do_connect")
    def _connect(
        dialect: Dialect, _record: object, arguments: list[Any], options: dict[str, Any]
    ) -> Any:
        while True:
            try:
                connection = dialect.connect(*arguments, **options)
            except dialect.loaded_dbapi.OperationalError:
                silent = time.monotonic() - _silent_since.setdefault(url, time.monotonic())
                if url not in _answered or silent > RESTART_SECONDS or not _waits.get():
                    raise
                time.sleep(RETRY_SECONDS)
            else:
                _answered.add(url)
                _silent_since.pop(url, None)
                return connection


def retry_lost(function: Callable[[], T]) -> T:
    """Call a function, which may be done twice, until its connection holds. Raises StorageError."""
    reason = ""
    for _ in range(MOST_ATTEMPTS):
        try:
            return function()
        except ConnectionLost as error:
            reason = str(error)
    raise StorageError(reason)
