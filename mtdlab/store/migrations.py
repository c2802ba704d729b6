"""Migration of older schema versions, each to the next, and the backup made before.

A migration runs in one transaction. It defines the tables that it needs instead of importing them
from `tables.py`, which has the present version only.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Connection,
    Double,
    Engine,
    ForeignKey,
    Integer,
    LargeBinary,
    StaticPool,
    String,
    column,
    create_engine,
    false,
    inspect,
    select,
    table,
    text,
    update,
)

from mtdlab.errors import StorageError
from mtdlab.files import sync
from mtdlab.store.tables import SCHEMA_VERSION, Schema
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from alembic.operations import Operations

Migration = Callable[["Operations"], None]


def _to_version_2(operations: "Operations") -> None:
    """Notes on trials; a study's description, methods, imported modules, resolved precision."""
    operations.add_column(
        "mtdlab_trials", Column("note", String, nullable=False, server_default="")
    )
    for added in (
        Column("description", String, nullable=False, server_default=""),
        Column("imports", JSON, nullable=False, server_default=text("'{}'")),
        Column("methods", JSON, nullable=False, server_default=text("'{}'")),
        Column("precision", String),
    ):
        operations.add_column("mtdlab_studies", added)
    # in version 1 errors while saving the model of a completed trial were recorded as `reason`
    operations.execute(
        "UPDATE mtdlab_trials SET note = reason, reason = '' WHERE state = 'COMPLETE'"
    )
    _record_precision(operations.get_bind())


def _record_precision(connection: Connection) -> None:
    """Record the precision that `auto` was resolved to in each study's first trial."""
    trials = table(
        "mtdlab_trials",
        column("study_id"),
        column("number"),
        column("settings", JSON),
        column("environment", JSON),
    )
    rows = connection.execute(
        select(trials.c.study_id, trials.c.settings, trials.c.environment)
        .where(trials.c.number.is_not(None), trials.c.environment.is_not(None))
        .order_by(trials.c.number)
    )
    precisions: dict[int, str] = {}
    for study_id, settings, environment in rows:
        device = (environment or {}).get("device", "")
        if (settings or {}).get("precision") == "auto" and device:
            precisions.setdefault(study_id, "bfloat16" if "bfloat16" in device else "float32")
    studies = table("mtdlab_studies", column("id"), column("precision"))
    for study_id, precision in precisions.items():
        connection.execute(
            update(studies).where(studies.c.id == study_id).values(precision=precision)
        )


def _add_looks_and_plans(operations: "Operations") -> None:
    """Tables of interim looks and of plans."""
    operations.create_table(
        "mtdlab_looks",
        Column(
            "study_id",
            Integer,
            ForeignKey("mtdlab_studies.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        Column("look", Integer, primary_key=True, autoincrement=False),
        Column("seeds", Integer, nullable=False),
        Column("trials", JSON, nullable=False),
        Column("alpha", Double, nullable=False),
        Column("spent", Double, nullable=False),
        Column("p_value", Double),
        Column("verdict", String, nullable=False),
        Column("decision", String, nullable=False),
        Column("added", JSON, nullable=False),
    )
    operations.create_table(
        "mtdlab_plans",
        Column("study", String, primary_key=True),
        Column("position", Integer, primary_key=True, autoincrement=False),
        Column("trials", Integer, nullable=False),
        Column("plan", JSON, nullable=False),
        Column("sha256", String, nullable=False),
    )


def _add_tracebacks(operations: "Operations") -> None:
    """The traceback of a failed trial."""
    operations.add_column(
        "mtdlab_trials", Column("traceback", String, nullable=False, server_default="")
    )


def _to_version_5(operations: "Operations") -> None:
    """A code for each failure, found from its reason, deaths of workers, an index for claims."""
    operations.create_index(
        "ix_mtdlab_trials_next", "mtdlab_trials", ["study_id", "state", "position"]
    )
    for added in (
        Column("reason_code", String, nullable=False, server_default=""),
        Column("deaths", Integer, nullable=False, server_default="0"),
    ):
        operations.add_column("mtdlab_trials", added)
    operations.execute(
        "UPDATE mtdlab_trials SET reason_code = CASE "
        "WHEN reason LIKE 'oom:%' THEN 'oom' "
        "WHEN reason LIKE '%collapsed:%' THEN 'collapsed' "
        "WHEN reason LIKE 'the loss is %' OR reason LIKE '%are not finite' THEN 'nan_loss' "
        "ELSE 'error' END WHERE state = 'FAIL'"
    )


def _to_version_6(operations: "Operations") -> None:
    """The sweeps that run, and where the best trial's model was saved."""
    operations.create_table(
        "mtdlab_sweeps",
        Column("id", Integer, primary_key=True),
        Column(
            "study_id",
            Integer,
            ForeignKey("mtdlab_studies.id", ondelete="CASCADE"),
            nullable=False,
        ),
        Column("owner", JSON, nullable=False),
        Column("heartbeat", Double, nullable=False),
    )
    operations.create_index("ix_mtdlab_sweeps_study_id", "mtdlab_sweeps", ["study_id"])
    operations.add_column("mtdlab_studies", Column("model", JSON))


def _to_version_7(operations: "Operations") -> None:
    """The peak memory of a trial."""
    operations.add_column("mtdlab_trials", Column("peak_memory", Double))


def _to_version_8(operations: "Operations") -> None:
    """What processes on other machines need: a study's definition, inputs, artifacts; stops."""
    for added in (
        Column("definition", JSON),
        Column("inputs", JSON),
        Column("artifacts", String),
    ):
        operations.add_column("mtdlab_studies", added)
    operations.add_column(
        "mtdlab_sweeps", Column("stop", Boolean, nullable=False, server_default=false())
    )


def _to_version_9(operations: "Operations") -> None:
    """The items that scores were computed from."""
    operations.create_table(
        "mtdlab_items",
        Column(
            "study_id",
            Integer,
            ForeignKey("mtdlab_studies.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        Column("task", String, primary_key=True),
        Column("digest", String, primary_key=True),
        Column("kind", String, nullable=False),
        Column("count", Integer, nullable=False),
        Column("gold", LargeBinary),
    )


MIGRATIONS: tuple[Migration, ...] = (
    _to_version_2,
    _add_looks_and_plans,
    _add_tracebacks,
    _to_version_5,
    _to_version_6,
    _to_version_7,
    _to_version_8,
    _to_version_9,
)
"""Migration i (from 0) migrates version i + 1 to version i + 2."""


def migrate(connection: Connection, version: int) -> None:
    """Migrate mtdlab's tables from `version` to the present one, in the open transaction."""
    # imported here, since few databases need it
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext

    operations = Operations(MigrationContext.configure(connection))
    for migration in MIGRATIONS[version - 1 :]:
        migration(operations)
    connection.execute(update(Schema).values(version=SCHEMA_VERSION))


def copy_and_migrate(
    connection: Connection, version: int, path: Path | None, shown_url: str
) -> None:
    """Copy a database file and migrate the database; prints a message on standard error.

    The connection must have the write lock and must not have written yet, so that the copy is equal
    to the database before migration and only one process makes it. path: None for a database that
    is not a SQLite file, which is not copied. Raises StorageError if the copy fails; then nothing
    is migrated.
    """
    copied = "no copy was made"
    if path is not None:
        try:
            copied = f"a copy of the old file is {_copy(path, version)}"
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"{path} has schema {version} and must be migrated to {SCHEMA_VERSION}, but it "
                f"cannot be copied first ({error}); free disk space in its folder, or name a copy "
                "of it with --storage"
            ) from None
    migrate(connection, version)
    print_text(
        f"mtdlab: {shown_url}: migrated from schema {version} to {SCHEMA_VERSION}; {copied}",
        file=sys.stderr,
    )


def _copy(path: Path, version: int) -> Path:
    """Copy a SQLite file to an unused name in the same folder and flush it to the disk."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.copying-", dir=path.parent)
    os.close(handle)
    building = Path(name)
    try:
        with closing(_opened(path)) as source, closing(sqlite3.connect(building)) as target:
            source.backup(target)
        shutil.copymode(path, building)
        sync(building)
        target_path = _free_name(path, version)
        building.rename(target_path)
        sync(path.parent)
    finally:
        building.unlink(missing_ok=True)
    return target_path


def _free_name(path: Path, version: int) -> Path:
    # copies of earlier, interrupted attempts are kept
    candidate, attempt = path.with_name(f"{path.name}.schema-{version}.bak"), 1
    while candidate.exists():
        attempt += 1
        candidate = path.with_name(f"{path.name}.schema-{version}-{attempt}.bak")
    return candidate


def migrated_copy(path: Path, version: int) -> Engine:
    """An engine on a migrated in-memory copy of an older SQLite file, which is not modified."""
    memory = sqlite3.connect(":memory:", check_same_thread=False)
    with closing(_opened(path)) as source:
        source.backup(memory)
    engine = create_engine("sqlite://", creator=lambda: memory, poolclass=StaticPool)
    with engine.begin() as connection:
        migrate(connection, version)
    return engine


def _opened(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=60)


def schema_version(connection: Connection) -> int | None:
    """The schema version of mtdlab's tables in a database; None if it has none."""
    if not inspect(connection).has_table(Schema.__tablename__):
        return None
    return connection.scalar(select(Schema.version))
