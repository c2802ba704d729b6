"""This module knows which names of studies are taken, or differ from a taken one in case only."""

from collections.abc import Set

from sqlalchemy import select
from sqlalchemy.orm import Session

from mtdlab.errors import StorageError
from mtdlab.store.database import inspecting, reading
from mtdlab.store.optuna_copy import STUDIES, has_foreign, has_tables
from mtdlab.store.tables import PlanRow, StudyRow
from mtdlab.store.urls import mask, storage_url


def study_names(storage: str | None = None) -> list[str]:
    """Read the sorted names of the studies of a database. Raises StorageError."""
    with reading(storage_url(storage)) as session:
        return list(session.scalars(select(StudyRow.name).order_by(StudyRow.name)))


def planned_names(url: str) -> list[str]:
    """Read the names of studies of which a plan is recorded, but no trial. Raises StorageError."""
    with reading(url) as session:
        begun = select(StudyRow.name)
        plans = select(PlanRow.study).where(PlanRow.study.not_in(begun)).distinct()
        return list(session.scalars(plans.order_by(PlanRow.study)))


def names_in(url: str) -> set[str]:
    """Read the names of all studies, mtdlab's and Optuna's. Raises StorageError."""
    with reading(url) as session:
        return _find_names(session)


def _find_names(session: Session) -> set[str]:
    names = set(session.scalars(select(StudyRow.name)))
    if has_tables(session.connection()):
        names |= set(session.scalars(select(STUDIES.c.study_name)))
    return names


def refuse_foreign(url: str, name: str) -> None:
    """Raise StorageError where Optuna's tables have a study of this name that is not mtdlab's."""
    with inspecting(url) as connection:
        is_foreign = connection is not None and has_foreign(connection, name)
    if is_foreign:
        raise StorageError(
            f"{mask(url)} has a study {name} in Optuna's tables that mtdlab did not write and does "
            "not change; choose another name or another --storage, or delete that study: "
            f"optuna delete-study --study-name {name}"
        )


def conflict_in(session: Session, name: str, url: str, renamed: str = "") -> str:
    """Say why a new study cannot have this name, as a part of a sentence; empty if it can.

    The name is that of a study, of a recorded plan, or differs in case only from that of a study
    other than `renamed`, which gets the name.
    """
    names = _find_names(session)
    if name in names:
        return f"{mask(url)} has a study {name} already"
    if session.scalar(select(PlanRow.study).where(PlanRow.study == name).limit(1)) is not None:
        return (
            f"{mask(url)} has a plan of study {name}, which would be lost "
            f"(mtdlab delete {name} deletes it)"
        )
    return find_twin(name, names - {renamed}, url)


def find_twin(name: str, names: Set[str], url: str) -> str:
    """Say which study has a new name but for its case, as a part of a sentence; empty for none.

    The two would share the folders of models, checkpoints and pages on some file systems.
    """
    twins = [other for other in names if other != name and other.casefold() == name.casefold()]
    if name in names or not twins:
        return ""
    return (
        f"{mask(url)} has a study {twins[0]}, with which {name} would share its folders on file "
        "systems that ignore case"
    )
