"""The record of a study and of its trials, for running more trials."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from analysis.data.environment import Environment
from mtdlab.errors import NothingToReport
from mtdlab.store.reading import reading
from mtdlab.store.store import find_study
from mtdlab.store.tables import Array, ArrayRow, LookRow, ScoreRow, StudyRow, TrialRow


def read_states(url: str, study: str) -> dict[tuple[str, int], str]:
    """The state of each planned trial by configuration and seed; none for a study that is not
    there. Raises StorageError where there is no such database.
    """
    with reading(url) as session:
        columns = select(TrialRow.setting, TrialRow.seed, TrialRow.state).join(StudyRow)
        rows = session.execute(columns.where(StudyRow.name == study))
        return {(setting, seed): state for setting, seed, state in rows}


def read_last_decision(url: str, study: str) -> str:
    """The decision of a study's last look; empty before the first. Raises as `read_states`."""
    with reading(url) as session:
        looks = select(LookRow.decision).join(StudyRow).where(StudyRow.name == study)
        return session.scalar(looks.order_by(LookRow.look.desc()).limit(1)) or ""


def read_recorded(url: str, study: str) -> StudyRow:
    """A study's record. Raises StorageError, and NothingToReport if there is no such study."""
    with reading(url) as session:
        return find_study(session, study, url)


@dataclass(frozen=True)
class RecordedTrial:
    """One trial as it is recorded, every score (x 100) by name, and its loss (steps,), if any."""

    row: TrialRow
    scores: Mapping[str, float]
    loss: Array | None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The values of the searched settings."""
        return self.row.parameters or {}

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings but the seed; none before it began."""
        return self.row.settings or {}

    @property
    def environment(self) -> Environment:
        """What it ran with; nothing before it ended."""
        return self.row.environment or Environment()


def read_trial(url: str, study: str, number: int) -> RecordedTrial:
    """Read one trial by its number. Raises StorageError, and NothingToReport if it is missing."""
    with reading(url) as session:
        mine = TrialRow.study_id == find_study(session, study, url).id
        row = session.scalars(select(TrialRow).where(mine, TrialRow.number == number)).first()
        if row is None:
            last = session.scalar(select(func.max(TrialRow.number)).where(mine))
            known = "none has begun" if last is None else f"trials are numbered from 0 to {last}"
            raise NothingToReport(f"study {study} has no trial {number}; {known}")
        scores = session.scalars(select(ScoreRow).where(ScoreRow.trial_id == row.id))
        found = {each.task: each.score for each in scores if each.score is not None}
        loss = session.get(ArrayRow, (row.id, "curve/loss"))
        return RecordedTrial(row, found, None if loss is None else loss.values)
