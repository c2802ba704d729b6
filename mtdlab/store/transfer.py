"""A study's rows: copied to another database, renamed, deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import column, delete, inspect, select, table, update
from sqlalchemy.orm import DeclarativeBase, Session

from mtdlab.errors import StorageError
from mtdlab.store.database import explained, lock_writers, reading_engine, writing_engine
from mtdlab.store.store import find_study
from mtdlab.store.tables import ArrayRow, LookRow, PlanRow, ScoreRow, StudyRow, TrialRow
from mtdlab.store.urls import shown

Record = dict[str, Any]
_OPTUNA = table("studies", column("study_name"), column("study_id"))


@dataclass(frozen=True)
class StudyRecords:
    """All rows of a study as dictionaries by column."""

    study: Record
    trials: list[Record]
    scores: list[Record]
    arrays: list[Record]
    looks: list[Record]
    plans: list[Record]


def read_records(url: str, name: str) -> StudyRecords:
    """Read a study. Raises StorageError, and NothingToReport if there is no such study."""
    with explained(url), Session(reading_engine(url)) as session:
        row = find_study(session, name, url)
        mine = TrialRow.study_id == row.id
        of_study = select(TrialRow.id).where(mine)
        return StudyRecords(
            _record(row),
            _records(session, TrialRow, mine),
            _records(session, ScoreRow, ScoreRow.trial_id.in_(of_study)),
            _records(session, ArrayRow, ArrayRow.trial_id.in_(of_study)),
            _records(session, LookRow, LookRow.study_id == row.id),
            _records(session, PlanRow, PlanRow.study == name),
        )


def write_records(
    url: str, records: StudyRecords, name: str, study_id: int, optuna_ids: Mapping[int, int]
) -> None:
    """Write a study under `name` in one transaction.

    study_id    Optuna's in this database; optuna_ids: Optuna's trial ids by the recorded ones.

    A trial that was running waits. Raises StorageError.
    """
    with explained(url), Session(writing_engine(url)) as session, session.begin():
        lock_writers(session.connection())
        session.add(StudyRow(**records.study | {"id": study_id, "name": name}))
        session.flush()
        trials = {
            record["id"]: TrialRow(**_moved(record, study_id, optuna_ids))
            for record in records.trials
        }
        session.add_all(trials.values())
        session.flush()
        for kind, each in ((ScoreRow, records.scores), (ArrayRow, records.arrays)):
            session.add_all(kind(**row | {"trial_id": trials[row["trial_id"]].id}) for row in each)
        session.add_all(LookRow(**row | {"study_id": study_id}) for row in records.looks)
        session.execute(delete(PlanRow).where(PlanRow.study == name))
        session.add_all(PlanRow(**row | {"study": name}) for row in records.plans)


def delete_records(url: str, name: str) -> None:
    """Delete a study's rows of mtdlab's tables, and its plans. Raises StorageError."""
    with explained(url), Session(writing_engine(url)) as session, session.begin():
        session.execute(delete(StudyRow).where(StudyRow.name == name))
        session.execute(delete(PlanRow).where(PlanRow.study == name))


def rename_records(url: str, old: str, new: str, command: str) -> None:
    """Rename a study in mtdlab's and Optuna's tables in one transaction.

    command  recorded as the command that resumes it. Raises StorageError if `new` exists.
    """
    with explained(url), Session(writing_engine(url)) as session, session.begin():
        lock_writers(session.connection())
        if new in _names(session):
            raise StorageError(f"{shown(url)} has a study {new} already; choose another name")
        session.execute(
            update(StudyRow).where(StudyRow.name == old).values(name=new, command=command)
        )
        session.execute(delete(PlanRow).where(PlanRow.study == new))
        session.execute(update(PlanRow).where(PlanRow.study == old).values(study=new))
        renamed = update(_OPTUNA).where(_OPTUNA.c.study_name == old)
        session.execute(renamed.values(study_name=new))


def names_in(url: str) -> set[str]:
    """The names of all studies, mtdlab's and Optuna's. Raises StorageError."""
    with explained(url), Session(reading_engine(url)) as session:
        return _names(session)


def _names(session: Session) -> set[str]:
    names = set(session.scalars(select(StudyRow.name)))
    if inspect(session.connection()).has_table("studies"):
        names |= set(session.scalars(select(_OPTUNA.c.study_name)))
    return names


def _moved(record: Record, study_id: int, optuna_ids: Mapping[int, int]) -> Record:
    """A trial's record for another database, which assigns its id."""
    optuna_id = optuna_ids.get(record["optuna_id"])
    moved = {name: value for name, value in record.items() if name != "id"}
    moved |= {"study_id": study_id, "optuna_id": optuna_id}
    if record["state"] == "RUNNING":
        moved |= {"state": "WAITING", "owner": None, "heartbeat": None, "step": 0}
    return moved


def _records(session: Session, kind: type[DeclarativeBase], condition: Any) -> list[Record]:
    rows: Sequence[Any] = session.scalars(select(kind).where(condition)).all()
    keys = [str(each.key) for each in kind.__mapper__.primary_key]
    return [_record(row) for row in sorted(rows, key=lambda r: [getattr(r, key) for key in keys])]


def _record(row: DeclarativeBase) -> Record:
    return {name: getattr(row, name) for name in row.__mapper__.column_attrs.keys()}  # noqa: SIM118
