"""Detection of a damaged database before a sweep writes to it.

Optuna and mtdlab create the tables that are missing. In a database that has studies a missing table
is damage: created anew, it would be empty, and recorded results would appear to be deleted.
"""

from sqlalchemy import Connection, create_engine, func, inspect, select

from mtdlab.errors import StorageError
from mtdlab.store.database import check_file, engine_arguments, explained, read_only
from mtdlab.store.migrations import schema_version
from mtdlab.store.tables import SCHEMA_VERSION, Base, Schema, StudyRow
from mtdlab.store.urls import shown, sqlite_file

_OPTUNA_TABLES = ("studies", "trials", "study_directions", "trial_values", "trial_params")
_ADVICE = "restore it from a backup, or name another storage"


def refuse_damaged(url: str) -> None:
    """Raise StorageError for a database in which tables or pages are damaged; writes nothing.

    A SQLite file is read as a whole (`PRAGMA quick_check`). A missing file is not damaged.
    """
    path = sqlite_file(url)
    if path is not None and not path.exists():
        return
    if path is not None:
        check_file(path)
    with explained(url):
        target = url if path is None else read_only(path)
        engine = create_engine(target, **engine_arguments(url))
        with engine.connect() as connection:
            problem = _problem(connection)
        engine.dispose()
    if problem:
        raise StorageError(f"{shown(url)} is damaged: {problem}; {_ADVICE}")


def _problem(connection: Connection) -> str:
    if connection.dialect.name == "sqlite":
        found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if found != "ok":
            return " ".join(str(found).split())
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
        needed |= set(_OPTUNA_TABLES)
    missing = sorted(needed - present)
    return f"table {missing[0]} is missing" if missing else ""
