"""Connections to a database server that is started again while a study runs."""

import time
from typing import Any

from sqlalchemy import Dialect, Engine, event

RESTART_SECONDS = 60.0
"""Time to wait for a server that answered before."""
RETRY_SECONDS = 0.5


def outlast_restarts(engine: Engine) -> None:
    """Let an engine that has connected once wait for a server that does not answer any more.

    Every transaction on a server has a connection of its own: one that begins while the server
    restarts waits for it. One that the restart interrupts fails, since whether it was committed is
    not known then. A first connection does not wait: its URL may be wrong.
    """
    if engine.dialect.name != "postgresql":
        return

    @event.listens_for(engine, "do_connect")
    def _connect(
        dialect: Dialect, _record: object, arguments: list[Any], options: dict[str, Any]
    ) -> Any:
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                return dialect.connect(*arguments, **options)
            except dialect.loaded_dbapi.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(RETRY_SECONDS)
