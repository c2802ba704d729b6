"""A study's rows: copied to another database, renamed, deleted."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select, update
from sqlalchemy.orm import DeclarativeBase, Session

from mtdlab.errors import StorageError
from mtdlab.store.database import explained, lock_writers, writing_engine
from mtdlab.store.imported import Records, as_record
from mtdlab.store.names import OPTUNA_STUDIES, conflict_in
from mtdlab.store.optuna_rows import read_optuna_rows, write_optuna_rows
from mtdlab.store.reading import reading
from mtdlab.store.store import find_study
from mtdlab.store.tables import ArrayRow, ItemsRow, LookRow, PlanRow, ScoreRow, StudyRow, TrialRow

Record = dict[str, Any]


def read_records(url: str, name: str) -> Records:
    """Read a study as it is at one moment, without a lock that would keep others from writing.

    On SQLite they wait with their commits until it is read. Raises StorageError, and
    NothingToReport if there is no such study.
    """
    with reading(url) as session:
        if session.get_bind().dialect.name == "sqlite":
            # the driver begins no transaction for a query
            session.connection().exec_driver_sql("BEGIN")
        else:
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
            session.connection(execution_options=options)
        return records_of(session, name, url)


def records_of(session: Session, name: str, url: str) -> Records:
    """The rows of a study. Raises NothingToReport if there is no such study."""
    row = find_study(session, name, url)
    mine = TrialRow.study_id == row.id
    of_study = select(TrialRow.id).where(mine)
    return Records(
        as_record(row),
        _records(session, TrialRow, mine),
        _records(session, ScoreRow, ScoreRow.trial_id.in_(of_study)),
        _records(session, ArrayRow, ArrayRow.trial_id.in_(of_study)),
        _records(session, ItemsRow, ItemsRow.study_id == row.id),
        _records(session, LookRow, LookRow.study_id == row.id),
        _records(session, PlanRow, PlanRow.study == name),
        read_optuna_rows(session.connection(), row.id),
    )


def write_records(url: str, records: Records, name: str) -> None:
    """Write a study under `name`, with its rows of Optuna's tables, in one transaction.

    A trial that was running waits. Checkpoints and models are not shared with the study that it is
    copied from: each of the two would remove the other's. Rows of a study that was deleted through
    Optuna, whose id is used again, are removed. Raises StorageError, also where the name is taken.
    """
    engine = writing_engine(url)
    with explained(url), Session(engine) as session, session.begin():
        lock_writers(session.connection())
        if conflict := conflict_in(session, name, url):
            raise StorageError(f"{conflict}; choose another name")
        study_id, ids = write_optuna_rows(session.connection(), records.optuna, name)
        session.execute(delete(StudyRow).where(StudyRow.id == study_id))
        changed = {"id": study_id, "name": name, "artifacts": None}
        session.add(StudyRow(**records.study | changed))
        session.flush()
        trials = {
            record["id"]: TrialRow(**_moved(record, study_id, ids)) for record in records.trials
        }
        session.add_all(trials.values())
        session.flush()
        for kind, each in ((ScoreRow, records.scores), (ArrayRow, records.arrays)):
            session.add_all(kind(**row | {"trial_id": trials[row["trial_id"]].id}) for row in each)
        session.add_all(ItemsRow(**row | {"study_id": study_id}) for row in records.items)
        session.add_all(LookRow(**row | {"study_id": study_id}) for row in records.looks)
        session.add_all(PlanRow(**row | {"study": name}) for row in records.plans)
    engine.dispose()


def delete_records(url: str, name: str) -> None:
    """Delete a study's rows of mtdlab's tables, and its plans. Raises StorageError."""
    with explained(url), Session(writing_engine(url)) as session, session.begin():
        session.execute(delete(StudyRow).where(StudyRow.name == name))
        session.execute(delete(PlanRow).where(PlanRow.study == name))


def rename_records(url: str, old: str, new: str, command: str) -> None:
    """Rename a study in mtdlab's and Optuna's tables in one transaction.

    command  recorded as the command that resumes it. Raises StorageError if `new` is taken.
    """
    with explained(url), Session(writing_engine(url)) as session, session.begin():
        lock_writers(session.connection())
        if conflict := conflict_in(session, new, url, renamed=old):
            raise StorageError(f"{conflict}; choose another name")
        session.execute(
            update(StudyRow).where(StudyRow.name == old).values(name=new, command=command)
        )
        session.execute(update(PlanRow).where(PlanRow.study == old).values(study=new))
        renamed = update(OPTUNA_STUDIES).where(OPTUNA_STUDIES.c.study_name == old)
        session.execute(renamed.values(study_name=new))


def _moved(record: Record, study_id: int, optuna_ids: Mapping[int, int]) -> Record:
    """A trial's record for another database, which assigns its id."""
    optuna_id = optuna_ids.get(record["optuna_id"])
    moved = {name: value for name, value in record.items() if name != "id"}
    moved |= {"study_id": study_id, "optuna_id": optuna_id}
    if record["state"] == "RUNNING":
        moved |= {"state": "WAITING", "owner": None, "heartbeat": None, "step": 0}
    return moved


def _records(session: Session, kind: type[DeclarativeBase], condition: Any) -> list[Record]:
    rows = select(kind).where(condition).order_by(*kind.__mapper__.primary_key)
    return [as_record(row) for row in session.scalars(rows)]
