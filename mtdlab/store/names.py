"""The names of studies: which are taken, and which would share their folders with another study."""

from collections.abc import Set

from sqlalchemy import select
from sqlalchemy.orm import Session

from mtdlab.errors import StorageError
from mtdlab.store.database import inspecting
from mtdlab.store.optuna_copy import STUDIES, has_foreign, has_tables
from mtdlab.store.reading import reading
from mtdlab.store.tables import PlanRow, StudyRow
from mtdlab.store.urls import mask


def names_in(url: str) -> set[str]:
    """The names of all studies, mtdlab's and Optuna's. Raises StorageError."""
    with reading(url) as session:
        return find_names(session)


def find_names(session: Session) -> set[str]:
    """The names of all studies, mtdlab's and Optuna's."""
    names = set(session.scalars(select(StudyRow.name)))
    if has_tables(session.connection()):
        names |= set(session.scalars(select(STUDIES.c.study_name)))
    return names


def refuse_foreign(url: str, name: str) -> None:
    """Raise StorageError where Optuna's tables have a study of this name that mtdlab did not write.

    Writes nothing.
    """
    with inspecting(url) as connection:
        is_foreign = connection is not None and has_foreign(connection, name)
    if is_foreign:
        raise StorageError(
            f"{mask(url)} has a study {name} in Optuna's tables that mtdlab did not write and does "
            "not change; choose another name or another --storage, or delete that study: "
            f"optuna delete-study --study-name {name}"
        )


def has_plan(session: Session, name: str) -> bool:
    """Whether a plan of this name is recorded, also without a study."""
    return session.scalar(select(PlanRow.study).where(PlanRow.study == name).limit(1)) is not None


def conflict_in(session: Session, name: str, url: str, renamed: str = "") -> str:
    """Why a new study cannot have this name, as a part of a sentence; empty if it can.

    The name is that of a study, of a recorded plan, or differs in case only from that of a study
    other than `renamed`, which gets the name.
    """
    names = find_names(session)
    if name in names:
        return f"{mask(url)} has a study {name} already"
    if has_plan(session, name):
        return (
            f"{mask(url)} has a plan of study {name}, which would be lost "
            f"(mtdlab delete {name} deletes it)"
        )
    return find_twin(name, names - {renamed}, url)


def find_twin(name: str, names: Set[str], url: str) -> str:
    """As `conflict_in` for a new name that differs from another study's in case only.

    The two would share the folders of models, checkpoints and pages on some file systems.
    """
    twins = [each for each in names if each != name and each.casefold() == name.casefold()]
    if name in names or not twins:
        return ""
    return (
        f"{mask(url)} has a study {twins[0]}, with which {name} would share its folders on file "
        "systems that ignore case"
    )
