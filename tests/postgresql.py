"""A PostgreSQL server for the tests: one per test session, a new database per test.

The server listens on a free port of the loopback interface and accepts any password. It refuses to
run as root, so that root starts it as Debian's user `postgres`. Without an installed server the
tests that need one are skipped.
"""

import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import port_for
import psycopg
import pytest
from optuna.storages import RDBStorage
from pytest_postgresql.executors import PostgreSQLExecutor
from pytest_postgresql.janitor import DatabaseJanitor
from sqlalchemy import URL, create_engine, make_url
from sqlalchemy.exc import OperationalError

from mtdlab.store.database import create_tables, engine_arguments

USER, PASSWORD = "postgres", "pass-w0rd"
TEMPLATE = "with_tables"
_numbers = itertools.count()


def find_pg_ctl() -> Path | None:
    """The newest installed pg_ctl, which Debian does not put on the PATH."""
    versions = Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")
    newest = max(versions, key=lambda path: int(path.parts[-3]), default=None)
    found = shutil.which("pg_ctl")
    return newest or (Path(found) if found else None)


def _wrapped(pg_ctl: Path, folder: Path) -> Path:
    """A script that runs pg_ctl as the user postgres, who becomes the owner of `folder`."""
    shutil.chown(folder, USER)
    script = folder / "pg_ctl"
    script.write_text(f'#!/bin/sh\ncd "{folder}"\nexec runuser -u {USER} -- {pg_ctl} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQLExecutor]:
    """A running server; may be stopped and started by a test."""
    pg_ctl = find_pg_ctl()
    if pg_ctl is None:
        pytest.skip("no PostgreSQL server is installed")
    folder = Path(tempfile.mkdtemp(prefix="mtdlab-postgresql-"))
    try:
        if os.geteuid() == 0:
            if shutil.which("runuser") is None:
                pytest.skip("PostgreSQL does not run as root, and there is no runuser")
            pg_ctl = _wrapped(pg_ctl, folder)
        server = PostgreSQLExecutor(
            str(pg_ctl),
            host="127.0.0.1",
            port=port_for.select_random(),
            datadir=str(folder / "data"),
            unixsocketdir=str(folder),
            logfile=str(folder / "log"),
            startparams="-w",
            dbname=TEMPLATE,
            user=USER,
            # no test cuts the power of the machine
            postgres_options="-c max_connections=60 -c fsync=off",
        )
        with server:
            yield server
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def url_of(server: PostgreSQLExecutor, database: str) -> str:
    """The storage URL of a database, with its password."""
    url = URL.create("postgresql+psycopg", USER, PASSWORD, server.host, server.port, database)
    return url.render_as_string(hide_password=False)


def wait_until_ready(url: str, seconds: float = 60) -> None:
    """Wait until a server that was started answers: it refuses connections while it recovers."""
    engine, deadline = create_engine(url), time.monotonic() + seconds
    while True:
        try:
            engine.connect().close()
            break
        except OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    engine.dispose()


def cut_connections(url: str) -> int:
    """End all other connections to a database; returns their number."""
    with psycopg.connect(make_url(url).set(drivername="postgresql").render_as_string(False)) as raw:
        ended = raw.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return len(ended.fetchall())


def optuna_storage(url: str) -> RDBStorage:
    """Optuna's storage on a database; on a server no connection of it stays open."""
    return RDBStorage(url, engine_kwargs=engine_arguments(url))


def janitor(
    server: PostgreSQLExecutor, database: str, template: str | None = None
) -> DatabaseJanitor:
    """Creates a database on entry and drops it on exit, with its connections."""
    return DatabaseJanitor(
        user=USER,
        host=server.host,
        port=server.port,
        dbname=database,
        template_dbname=template,
    )


@pytest.fixture(scope="session")
def postgresql_template(postgresql_server: PostgreSQLExecutor) -> Iterator[str]:
    """The name of a database with all tables and no study, which is copied for each test."""
    with janitor(postgresql_server, TEMPLATE):
        url = url_of(postgresql_server, TEMPLATE)
        create_tables(url)
        yield TEMPLATE


@pytest.fixture
def postgresql_url(
    postgresql_server: PostgreSQLExecutor, postgresql_template: str
) -> Iterator[str]:
    """The URL of a database with all tables and no study."""
    name = f"test_{next(_numbers)}"
    with janitor(postgresql_server, name, postgresql_template):
        yield url_of(postgresql_server, name)


@pytest.fixture
def empty_postgresql_url(postgresql_server: PostgreSQLExecutor) -> Iterator[str]:
    """The URL of a database without tables."""
    name = f"empty_{next(_numbers)}"
    with janitor(postgresql_server, name):
        yield url_of(postgresql_server, name)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A storage URL of each kind of database, without a study."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'studies.db'}"
    return str(request.getfixturevalue("postgresql_url"))
