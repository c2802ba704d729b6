"""Databases of tests do not wait for the disk, and Optuna's migrations are read once."""

import sqlite3
from contextlib import suppress
from typing import Any

from optuna.storages._rdb.storage import _VersionManager
from sqlalchemy import Engine, event


def install() -> None:
    """For this process and its forks. Call it before an engine is created."""
    event.listen(Engine, "connect", _relax)
    read, found = _VersionManager._create_alembic_script, list[Any]()

    def once(manager: _VersionManager) -> Any:
        # a storage that is opened would import the twenty migrations up to three times
        if not found:
            found.append(read(manager))
        return found[0]

    _VersionManager._create_alembic_script = once


def _relax(connection: Any, _record: object) -> None:
    """SQLite does not sync: no test cuts the power of the machine."""
    # the first statement is also the first to find that a file is no database
    with suppress(sqlite3.DatabaseError):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")
