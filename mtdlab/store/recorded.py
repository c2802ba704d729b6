"""The recorded definition of a study and settings of its trials, for running more trials."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mtdlab.errors import NothingToReport
from mtdlab.store.database import explained, reading_engine, shown
from mtdlab.store.setting_names import present_settings
from mtdlab.store.tables import StudyRow, TrialRow


@dataclass(frozen=True)
class RecordedStudy:
    """A study's file, metric, resolved precision and imported modules.

    largest_seed  of its planned trials; settings: of the requested trials, by number.
    """

    text: str
    metric: str
    precision: str | None
    imports: dict[str, str]
    largest_seed: int
    settings: dict[int, dict[str, Any]]


def read_states(url: str, study: str) -> dict[tuple[str, int], str]:
    """The state of each planned trial by configuration and seed; none for a study that is not
    there. Raises StorageError where there is no such database.
    """
    with explained(url), Session(reading_engine(url)) as session:
        columns = select(TrialRow.setting, TrialRow.seed, TrialRow.state).join(StudyRow)
        rows = session.execute(columns.where(StudyRow.name == study))
        return {(setting, seed): state for setting, seed, state in rows}


def read_recorded(url: str, study: str, numbers: Collection[int] = ()) -> RecordedStudy:
    """Read a study. Raises StorageError, and NothingToReport if there is no such study."""
    with explained(url), Session(reading_engine(url)) as session:
        row = session.scalars(select(StudyRow).where(StudyRow.name == study)).first()
        if row is None:
            raise NothingToReport(f"no study {study} in {shown(url)}")
        mine = TrialRow.study_id == row.id
        chosen = session.scalars(select(TrialRow).where(mine, TrialRow.number.in_(numbers)))
        settings = {each.number or 0: present_settings(each.settings or {}) for each in chosen}
        largest = session.scalar(select(func.max(TrialRow.seed)).where(mine))
        return RecordedStudy(
            row.file_text, row.metric, row.precision, row.imports, largest or 0, settings
        )
