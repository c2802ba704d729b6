"""This module opens study databases; every query of mtdlab runs in a block of its `Database`.

SQLite has a rollback journal and synchronous=FULL, and every transaction of a database that was
opened for writing begins with BEGIN IMMEDIATE, since a deferred transaction reads before it has the
lock and two workers could claim the same trial. A crash loses at most the transaction that it
interrupts. Commands that only read open the file read-only and never create one; they read the last
committed state, after the transaction of a killed process is rolled back.

On PostgreSQL every transaction has a connection of its own, so that a connection that is cut
between two transactions is not noticed, and idle workers hold none. Tables are created under an
advisory lock. It waits for a lock as long as SQLite does.
"""

import os
import sqlite3
import time
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    NullPool,
    create_engine,
    event,
    exc,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.orm import Session

from mtdlab.errors import ConnectionLost, StorageError, reason_of
from mtdlab.files import free_space, network_kind
from mtdlab.store import optuna_copy
from mtdlab.store.facts import DIGEST, read_fact, record_fact
from mtdlab.store.restarts import outlast_restarts
from mtdlab.store.tables import SCHEMA_VERSION, Base, Schema, StudyRow
from mtdlab.store.urls import mask, parse_url, sqlite_file
from mtdlab.terminal import warn

LOCK_TIMEOUT_SECONDS = 60.0
CONNECT_SECONDS = 10
"""Time to wait for a database server to answer."""
CREATION_SECONDS = 2.0
"""Time to wait for content in an empty file, which another process may be creating."""
CREATION_LOCK = 0x6D74646C6162
"""Key of PostgreSQL's advisory lock for `lock_writers` ("mtdlab" in ASCII)."""
PACKAGES = ("optuna", "sqlalchemy")
"""The packages that create tables and write rows."""
RESTORE = "restore it from a backup, or name another storage"
"""What to do about a database that cannot be read."""
_CREATIONS = 20
"""Attempts to create Optuna's tables, which another process may create at the same time."""
_INDEX = "CREATE INDEX IF NOT EXISTS ix_mtdlab_copies ON trials (study_id, number)"
_UNEXPECTED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a record of another shape than ours may raise."""


class Database:
    """A database is a URL and the engine of its transactions. Blocks may raise StorageError."""

    def __init__(self, url: str, engine: Engine) -> None:
        self.url, self.engine = url, engine

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a block a session that reads. Raises StorageError for a record of another shape."""
        with _translate_errors(self.url), Session(self.engine) as session:
            try:
                yield session
            except _UNEXPECTED:
                if problem := _find_damage(session, self.url):
                    raise _damaged(self.url, f"was changed or is damaged: {problem}") from None
                raise

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Give a block a session that is one transaction, rolled back where the block raises."""
        with _translate_errors(self.url), Session(self.engine) as session, session.begin():
            yield session

    @contextmanager
    def adding(self) -> Iterator[Session]:
        """Give one block at a time a session as `writing` does, to read rows, then add some."""
        with self.writing() as session:
            lock_writers(session)
            yield session

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


@contextmanager
def reading(url: str) -> Iterator[Session]:
    """Give a block a session that cannot write (`open_to_read`, `Database.reading`)."""
    with closing(open_to_read(url)) as database, database.reading() as session:
        yield session


@contextmanager
def adding(url: str) -> Iterator[Session]:
    """Give a block a session that is one transaction of one at a time (`Database.adding`)."""
    with closing(open_to_write(url)) as database, database.adding() as session:
        yield session


def read_at_one_moment(session: Session) -> None:
    """Let what a session of `open_to_read` reads from here on be of one moment."""
    if session.get_bind().dialect.name == "sqlite":
        # the driver begins no transaction for a query
        session.connection().exec_driver_sql("BEGIN")
    else:
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        session.connection(execution_options=options)


def _find_damage(session: Session, url: str) -> str:
    """Describe the first record of another shape; empty without one."""
    # imported here: an error that is none of the database does without it
    from mtdlab.store.records import check_records, records_of

    # what cannot be decoded at all is explained by the error itself
    with suppress(*_UNEXPECTED):
        for name in session.scalars(select(StudyRow.name)).all():
            try:
                check_records(records_of(session, name, url))
            except StorageError as error:
                return str(error)
    return ""


def _damaged(url: str, problem: str) -> StorageError:
    return StorageError(f"{mask(url)} {problem}; {RESTORE}")


def engine_arguments(url: str) -> dict[str, Any]:
    """Return the arguments of mtdlab's engine, and of that which creates Optuna's tables."""
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return {"connect_args": {"timeout": LOCK_TIMEOUT_SECONDS}}
    # the URL's own options are kept, such as the schema of the tables
    given = parsed.query.get("options", "")
    options = f"{given} -c lock_timeout={LOCK_TIMEOUT_SECONDS:.0f}s".strip()
    connect = {"connect_timeout": CONNECT_SECONDS, "options": options}
    return {"connect_args": connect, "poolclass": NullPool}


def _open_engine(url: str, target: URL) -> Engine:
    """Return an engine on `target`, the database of `url`, that waits while a server restarts."""
    engine = create_engine(target, **engine_arguments(url))
    if engine.dialect.name == "postgresql":
        outlast_restarts(engine, url)
    return engine


def _open_existing(url: str) -> Engine | None:
    """Return an engine that cannot write, on a database of any tables; None for a missing file."""
    path = sqlite_file(url)
    if path is not None:
        if not path.exists():
            return None
        check_file(path)
    with _translate_errors(url):
        return _open_engine(url, parse_url(url) if path is None else _read_only(path))


def lock_writers(session: Session) -> None:
    """Let one transaction at a time, as on SQLite, create tables or add rows, until it ends."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text(f"SELECT pg_advisory_xact_lock({CREATION_LOCK})"))


def open_to_write(url: str) -> Database:
    """Open a database of this schema; it and mtdlab's tables are created where they are missing.

    Raises StorageError for a file that is empty or not a database, and for another schema.
    """
    path = sqlite_file(url)
    new_file = path if path is not None and not path.exists() else None
    if path is not None:
        check_file(path)
    with _translate_errors(url), _leaving_no_empty(new_file):
        engine = _open_engine(url, parse_url(url))
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _begin_by_hand)
            event.listen(engine, "begin", lambda link: link.exec_driver_sql("BEGIN IMMEDIATE"))
        with Session(engine) as session, session.begin():
            lock_writers(session)
            version = schema_version(session.connection())
            if version is None:
                Base.metadata.create_all(session.connection())
                session.execute(insert(Schema).values(id=1, version=SCHEMA_VERSION))
            else:
                _refuse_other_schema(version, url)
                if read_fact(session.connection(), DIGEST):
                    # of the rows of an export, which may be changed now
                    record_fact(session.connection(), DIGEST, "")
    return Database(url, engine)


@contextmanager
def _leaving_no_empty(path: Path | None) -> Iterator[None]:
    """Remove a SQLite file that a block created and could not write, unless it is locked."""
    try:
        yield
    except exc.DBAPIError as error:
        is_empty = path is not None and path.exists() and path.stat().st_size == 0
        if path is not None and is_empty and "locked" not in str(error):
            path.unlink()
        raise


def _begin_by_hand(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")


def open_to_read(url: str) -> Database:
    """Open a database to read. Raises StorageError for none of mtdlab's, or another schema."""
    if (engine := _open_existing(url)) is None:
        path = sqlite_file(url)
        raise StorageError(
            f"no database at {path}; run mtdlab sweep first, or name another with --storage"
        )
    with _translate_errors(url), engine.connect() as connection:
        version = schema_version(connection)
    if version is None:
        raise StorageError(
            f"{mask(url)} contains no mtdlab study; name another database with --storage"
        )
    _refuse_other_schema(version, url)
    return Database(url, engine)


def warn_of_network(url: str) -> None:
    """Print a sentence where a SQLite file is still to be created on a network file system."""
    path = sqlite_file(url)
    if path is not None and not path.exists() and (kind := network_kind(path)):
        warn(
            f"{path} is on a network file system ({kind}), which does not lock it reliably: "
            "trials may be lost; use PostgreSQL, --storage postgresql+psycopg://USER@HOST/NAME, or "
            "a file on a local disk"
        )


def create_tables(url: str, study: str = "") -> None:
    """Create the tables of mtdlab and of Optuna where they are missing. Raises StorageError.

    mtdlab's come first, so that a file that is no database is refused before Optuna opens it. Where
    Optuna's tables have a copy of `study`, they are there, and Optuna is not imported.
    """
    with closing(open_to_write(url)) as database:
        with database.reading() as session:
            if study and optuna_copy.find_copy(session, study) is not None:
                return
        with _translate_errors(url):
            _create_optuna_tables(database)
        with database.adding() as session:
            # by it the copy of a trial is found among 100,000
            session.execute(text(_INDEX))


def _create_optuna_tables(database: Database) -> None:
    """Let Optuna create its tables, again where two processes do so at once."""
    # imported here: a study that has its copy does without
    import optuna
    from optuna.storages import RDBStorage

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = database.url
    # a template for Optuna, which replaces {SCHEMA_VERSION}
    template = url.replace("{", "{{").replace("}", "}}")
    for attempt in range(1, _CREATIONS + 1):
        try:
            # on a server the lock is waited for before Optuna's first connection, which would not
            # wait; on a file there is none, and the session takes no connection
            with Session(database.engine) as session, session.begin():
                lock_writers(session)
                RDBStorage(template, engine_kwargs=engine_arguments(url)).engine.dispose()
            return
        except (exc.IntegrityError, exc.OperationalError, exc.ProgrammingError) as error:
            created = isinstance(error, exc.IntegrityError) or "already exists" in str(error)
            if not created or attempt == _CREATIONS:
                raise
            time.sleep(0.1)


def _refuse_other_schema(version: int, url: str) -> None:
    if version != SCHEMA_VERSION:
        raise StorageError(
            f"{mask(url)} has schema {version}, this version of mtdlab supports {SCHEMA_VERSION}; "
            "install the version of mtdlab that wrote it"
        )


def schema_version(connection: Connection) -> int | None:
    """Read the schema version of mtdlab's tables in a database; None if it has none."""
    if not inspect(connection).has_table(Schema.__tablename__):
        return None
    return connection.scalar(select(Schema.version))


def _read_only(path: Path) -> URL:
    """Return the URL of read-only connections to a SQLite file, its journal undone before."""
    uri = path.resolve().as_uri()
    journal = path.with_name(f"{path.name}-journal")
    # what a killed process left there: a read-only connection cannot undo it, and would fail
    if journal.exists() and os.access(path, os.W_OK):
        recovering = sqlite3.connect(f"{uri}?mode=rw", uri=True, timeout=LOCK_TIMEOUT_SECONDS)
        with closing(recovering) as connection:
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
    return URL.create("sqlite", database=uri, query={"mode": "ro", "uri": "true"})


def check_file(path: Path, advice: str = RESTORE) -> None:
    """Raise StorageError, with `advice`, for no SQLite file and where none can be created."""
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a database file inside it")
    if not path.exists():
        if not path.absolute().parent.is_dir():
            raise StorageError(f"{path.parent}: no such folder; create it, or name another storage")
        return
    try:
        while True:
            with path.open("rb") as file:
                beginning = file.read(16)
            # an older one that is empty is not being created
            if beginning or abs(time.time() - path.stat().st_mtime) >= CREATION_SECONDS:
                break
            time.sleep(0.05)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {reason_of(error)}") from None
    if not beginning:
        what = "is empty (0 bytes): remove it if no study was recorded in it, else"
        raise StorageError(f"{path} {what} {advice}")
    if beginning != b"SQLite format 3\x00":
        raise StorageError(f"{path} is not a SQLite database; {advice}")


@contextmanager
def _translate_errors(url: str) -> Iterator[None]:
    """Convert errors of the database and its driver to a StorageError with one sentence."""
    try:
        yield
    except (ModuleNotFoundError, exc.NoSuchModuleError) as error:
        raise StorageError(f"{mask(url)}: {error}{_driver_hint(error)}") from None
    except (exc.DBAPIError, sqlite3.Error) as error:
        cause = getattr(error, "orig", None) or error
        reason = str(cause).splitlines()[0] if str(cause) else type(cause).__name__
        hint = ""
        if "lock" in reason and ("locked" in reason or "timeout" in reason):
            hint = f" after {LOCK_TIMEOUT_SECONDS:.0f} s; stop the process that has the lock"
        path = sqlite_file(url)
        if "is full" in reason and path is not None:
            hint = f"; {free_space(path.absolute().parent)}; free some, then rerun the sweep"
        if "readonly" in reason and path is not None and not path.exists():
            hint = "; the file was moved or removed while it was in use"
        if "malformed" in reason:
            raise _damaged(url, f"is damaged: {reason}") from None
        is_lost = isinstance(error, exc.DBAPIError) and error.connection_invalidated
        kind = ConnectionLost if is_lost else StorageError
        raise kind(f"{mask(url)}: {reason}{hint}") from None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        if not _is_of_decoding(error):
            raise
        reason = " ".join(str(error).split())[:200]
        raise _damaged(url, f"is damaged: a record cannot be read ({reason})") from None


def _is_of_decoding(error: Exception) -> bool:
    """Return whether an error was raised while a column's value was converted."""
    if isinstance(error, UnicodeDecodeError):
        return True
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    module = str(frame.f_globals.get("__name__"))
    return module.split(".")[0] in ("json", "sqlalchemy") or module == "mtdlab.store.tables"


def _driver_hint(error: Exception) -> str:
    """Say how a URL names the driver for PostgreSQL, and how it is installed."""
    missing = getattr(error, "name", None) or str(error)
    if "psycopg2" in missing:
        return "; write postgresql+psycopg://..., the URL of the driver that mtdlab uses, psycopg 3"
    return "; install it with pip install 'mtdlab[postgresql]'" if "psycopg" in missing else ""


@contextmanager
def inspecting(url: str) -> Iterator[Connection | None]:
    """Give a block a connection that cannot write, to any database; None for a missing file."""
    if (engine := _open_existing(url)) is None:
        yield None
        return
    with _translate_errors(url), closing(Database(url, engine)), engine.connect() as connection:
        yield connection


def refuse_damaged(url: str) -> None:
    """Raise StorageError where tables or pages are damaged; a missing file is not damaged."""
    with inspecting(url) as connection:
        if connection is not None and (problem := _problem(connection)):
            raise _damaged(url, f"is damaged: {problem}")


def _problem(connection: Connection) -> str:
    """Describe the first damage, as a part of a sentence; empty without any."""
    if connection.dialect.name == "sqlite":
        damage = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if damage != "ok":
            return " ".join(str(damage).split())
    present = set(inspect(connection).get_table_names())
    ours = set(Base.metadata.tables)
    if not present & ours:
        return ""
    if Schema.__tablename__ not in present or (version := schema_version(connection)) is None:
        return "it has no schema version"
    needed = ours if version == SCHEMA_VERSION else {Schema.__tablename__, StudyRow.__tablename__}
    if StudyRow.__tablename__ in present and connection.scalar(
        select(func.count()).select_from(StudyRow)
    ):
        needed |= {table.name for table in optuna_copy.TABLES}
    missing = sorted(needed - present)
    return f"table {missing[0]} is missing" if missing else ""
