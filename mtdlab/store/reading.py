"""Sessions for commands that only read."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sqlalchemy import select
from sqlalchemy.orm import Session

from mtdlab.errors import StorageError
from mtdlab.store.database import reading_engine, translate_errors
from mtdlab.store.tables import StudyRow
from mtdlab.store.urls import mask

UNEXPECTED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What reading a record of another shape than ours may raise."""


@contextmanager
def reading(url: str) -> Iterator[Session]:
    """A session that cannot write.

    An error of the block is one of the database where a record in it has another shape than
    mtdlab's. Raises StorageError, also where there is no such database.
    """
    with translate_errors(url), Session(reading_engine(url)) as session:
        try:
            yield session
        except UNEXPECTED:
            if problem := _find_damage(session, url):
                raise StorageError(
                    f"{mask(url)} was changed or is damaged: {problem}; restore it from a backup, "
                    "or name another storage"
                ) from None
            raise


def _find_damage(session: Session, url: str) -> str:
    """The first record of another shape; empty without one."""
    # imported here: it imports pandas, which starting a worker does without
    from mtdlab.store.imported import check_records, records_of

    # what cannot be decoded at all is explained by the error itself
    with suppress(*UNEXPECTED):
        for name in session.scalars(select(StudyRow.name)).all():
            try:
                check_records(records_of(session, name, url))
            except StorageError as error:
                return str(error)
    return ""


def read_at_one_moment(session: Session) -> None:
    """Let what a session reads from here on be of one moment."""
    if session.get_bind().dialect.name == "sqlite":
        # the driver begins no transaction for a query
        session.connection().exec_driver_sql("BEGIN")
    else:
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        session.connection(execution_options=options)
