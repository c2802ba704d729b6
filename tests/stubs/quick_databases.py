"""Tests do not wait for the disk; what each of their databases would compile is made once."""

import os
import sqlite3
from contextlib import nullcontext, suppress
from typing import Any

from optuna.storages._rdb.storage import _VersionManager
from sqlalchemy import Connection, Engine, MetaData, event
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement
from sqlalchemy.util import LRUCache


def install() -> None:
    """For this process and its forks. Call it before an engine is created."""
    # nothing syncs, since no test cuts the power of the machine; a wrong descriptor is still one
    os.fsync = os.fstat
    event.listen(Engine, "connect", _relax)
    read, found = _VersionManager._create_alembic_script, list[Any]()

    def once(manager: _VersionManager) -> Any:
        # a storage that is opened would import the twenty migrations up to three times
        if not found:
            found.append(read(manager))
        return found[0]

    _VersionManager._create_alembic_script = once
    _compile_statements_once()
    _compile_tables_once()


def _compile_statements_once() -> None:
    """Engines of one kind of database share their compiled statements.

    Each test opens databases of its own, and compiling takes a third of a short sweep.
    """
    DefaultDialect.__eq__ = lambda dialect, other: type(dialect) is type(other)
    DefaultDialect.__hash__ = lambda dialect: hash(type(dialect))
    create, compiled = Engine.__init__, LRUCache(1000)

    def share(engine: Engine, *given: Any, **named: Any) -> None:
        create(engine, *given, **named)
        engine._compiled_cache = compiled

    Engine.__init__ = share


def _compile_tables_once() -> None:
    """Where a SQLite file has none of the tables, create them all by statements that are kept."""
    create, compiled = MetaData.create_all, dict[MetaData, list[str]]()

    def create_all(tables: MetaData, bind: Any, **given: Any) -> None:
        with bind.begin() if isinstance(bind, Engine) else nullcontext(bind) as connection:
            if connection.dialect.name != "sqlite" or _has_one(connection, tables):
                create(tables, connection, **given)
                return
            if tables not in compiled:
                made: list[ExecutableDDLElement] = list(map(CreateTable, tables.sorted_tables))
                made += [CreateIndex(i) for table in tables.sorted_tables for i in table.indexes]
                compiled[tables] = [
                    str(statement.compile(dialect=connection.dialect)) for statement in made
                ]
            for statement in compiled[tables]:
                connection.exec_driver_sql(statement)

    MetaData.create_all = create_all


def _has_one(connection: Connection, tables: MetaData) -> bool:
    present = connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars()
    return not tables.tables.keys().isdisjoint(present)


def _relax(connection: Any, _record: object) -> None:
    """SQLite does not sync either."""
    # the first statement is also the first to find that a file is no database
    with suppress(sqlite3.DatabaseError):
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")
