"""Optuna's tables, created by Optuna, in which `optuna_copy` writes."""

import time

import optuna
from optuna.storages import RDBStorage
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

from mtdlab.store.database import (
    creation_lock,
    engine_arguments,
    lock_writers,
    translate_errors,
    writing_engine,
)

_ATTEMPTS = 20
_INDEX = "CREATE INDEX IF NOT EXISTS ix_mtdlab_copies ON trials (study_id, number)"


def create_tables(url: str) -> None:
    """Create Optuna's tables where they are missing, with an index of numbers.

    By it the copy of a trial is found among 100,000. Raises StorageError.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with translate_errors(url):
        _create(url)
    engine = writing_engine(url)
    with translate_errors(url), engine.begin() as connection:
        lock_writers(connection)
        connection.execute(text(_INDEX))
    engine.dispose()


def _create(url: str) -> None:
    """Let Optuna create its tables, again where two processes do so at once."""
    # a template for Optuna, which replaces {SCHEMA_VERSION}
    template = url.replace("{", "{{").replace("}", "}}")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with creation_lock(url):
                RDBStorage(template, engine_kwargs=engine_arguments(url)).engine.dispose()
            return
        except (IntegrityError, OperationalError, ProgrammingError) as error:
            created = isinstance(error, IntegrityError) or "already exists" in str(error)
            if not created or attempt == _ATTEMPTS:
                raise
            time.sleep(0.1)
