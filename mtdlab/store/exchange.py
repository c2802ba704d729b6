"""This module copies a study's rows to another database, renames and deletes them."""

from sqlalchemy import delete, update

from mtdlab.analysis.data.invocation import Invocation
from mtdlab.errors import MtdlabError
from mtdlab.store.database import adding, create_tables, read_at_one_moment, reading
from mtdlab.store.facts import DIGEST, compute_digest, record_fact
from mtdlab.store.optuna_copy import STUDIES, delete_copy, find_copy, repair_copy
from mtdlab.store.recorded import conflict_in
from mtdlab.store.records import Records, Row, records_of
from mtdlab.store.tables import (
    IMPORTED,
    ArrayRow,
    ItemsRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
)


def read_records(url: str, name: str) -> Records:
    """Read a study as it is at one moment, without a lock that would keep others from writing.

    On SQLite writers wait with their commits until it is read. Raises StorageError, and
    NothingToReport if there is no such study.
    """
    with reading(url) as session:
        read_at_one_moment(session)
        return records_of(session, name, url)


def write_records(url: str, records: Records, name: str, *, with_digest: bool = False) -> None:
    """Write a study under `name`, with its copy in Optuna's tables, in one transaction.

    `with_digest`: the digest of all rows is recorded, as that of an exported file. A trial that was
    running waits. Checkpoints and models are not shared with the study that it is copied from: each
    of the two would remove the other's, and those on this machine stay that study's until a trial
    is claimed here. Raises StorageError, and MtdlabError for a name that is taken.
    """
    create_tables(url)
    with adding(url) as session:
        if conflict := conflict_in(session, name, url):
            raise MtdlabError(f"{conflict}; import it under another name with --name")
        study = StudyRow(**records[StudyRow][0] | {"id": None, "name": name, "artifacts": None})
        session.add(study)
        session.flush()
        trials = {row["id"]: TrialRow(**_moved(row, study.id)) for row in records[TrialRow]}
        session.add_all(trials.values())
        session.flush()
        for kind in (ScoreRow, ArrayRow):
            for row in records[kind]:
                session.add(kind(**row | {"trial_id": trials[row["trial_id"]].id}))
        session.add_all(ItemsRow(**row | {"study_id": study.id}) for row in records[ItemsRow])
        session.add_all(LookRow(**row | {"study_id": study.id}) for row in records[LookRow])
        session.add_all(PlanRow(**row | {"study": name}) for row in records[PlanRow])
        session.flush()
        repair_copy(session, study)
        if with_digest:
            session.flush()
            record_fact(session.connection(), DIGEST, compute_digest(session.connection()))


def delete_records(url: str, name: str) -> None:
    """Delete a study, its copy in Optuna's tables, and its plans. Raises StorageError."""
    with adding(url) as session:
        delete_copy(session, name)
        session.execute(delete(StudyRow).where(StudyRow.name == name))
        session.execute(delete(PlanRow).where(PlanRow.study == name))


def rename_records(url: str, old: str, new: str, invocation: Invocation) -> None:
    """Rename a study, which `invocation` resumes. Raises MtdlabError if `new` is taken."""
    with adding(url) as session:
        if conflict := conflict_in(session, new, url, renamed=old):
            raise MtdlabError(f"{conflict}; choose another name")
        session.execute(
            update(StudyRow).where(StudyRow.name == old).values(name=new, invocation=invocation)
        )
        session.execute(update(PlanRow).where(PlanRow.study == old).values(study=new))
        if (copy := find_copy(session, old)) is not None:
            copied = STUDIES.c.study_id == copy
            session.execute(update(STUDIES).where(copied).values(study_name=new))


def _moved(record: Row, study_id: int) -> Row:
    """Return a trial's record for another database, which assigns its id."""
    moved = record | {"id": None, "study_id": study_id, "sweep": IMPORTED}
    if record["state"] == "RUNNING":
        moved |= {"state": "WAITING", "owner": None, "heartbeat": None, "step": 0}
        moved |= {"reports": None, "attributes": None}
    return moved
