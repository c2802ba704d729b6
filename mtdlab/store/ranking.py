"""This module reads the trials that have ended, and says which of them is the best."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from mtdlab.settings.roles import SEARCH
from mtdlab.store.tables import FINISHED, ScoreRow, StudyRow, TrialRow


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial has columns of `TrialRow`, and the score that ranks it, as far as known."""

    number: int
    seed: int
    parameters: dict[str, Any]
    state: str
    reason: str = ""
    mtd: float | None = None
    score: float | None = None
    ranking: float | None = None
    wall_seconds: float | None = None
    note: str = ""
    reason_code: str = ""
    row: int = 0
    role: str = SEARCH
    ended: float | None = None


def find_best(session: Session, study_id: int) -> FinishedTrial | None:
    """Read the first of the complete trials of a search with the highest ranking score."""
    ranking = find_ranking(session, study_id)
    complete = (TrialRow.study_id == study_id) & (TrialRow.state == "COMPLETE")
    ranked = select(TrialRow.id).where(complete, TrialRow.role == SEARCH, ranking.is_not(None))
    first = ranked.order_by(ranking.desc(), TrialRow.number).limit(1).scalar_subquery()
    return next(iter(read_finished(session, study_id, TrialRow.id == first)), None)


def find_ranking(session: Session, study_id: int) -> ColumnElement[float | None]:
    """Return the score that ranks a trial, as a column of queries on trials."""
    study = session.get(StudyRow, study_id)
    if study is None or study.select_by == study.metric:
        return TrialRow.score.expression
    named = (ScoreRow.trial_id == TrialRow.id) & (ScoreRow.task == study.select_by)
    return select(ScoreRow.score).where(named).scalar_subquery()


def read_finished(
    session: Session, study_id: int, condition: ColumnElement[bool]
) -> list[FinishedTrial]:
    """Read the trials of a study that have ended and for which a condition holds, by number."""
    others = {"row": TrialRow.id, "ranking": find_ranking(session, study_id)}
    names = [field.name for field in fields(FinishedTrial)]
    columns = [others[name] if name in others else getattr(TrialRow, name) for name in names]
    ended = (TrialRow.study_id == study_id) & TrialRow.state.in_(FINISHED)
    rows = select(*columns).where(ended, condition).order_by(TrialRow.number)
    return [FinishedTrial(*row) for row in session.execute(rows)]


@dataclass(frozen=True)
class SavedModel:
    """A saved model is told by its trial's number, the machine, and the folder there or its URL."""

    trial: int
    host: str
    folder: str

    @classmethod
    def of(cls, recorded: Mapping[str, Any] | None) -> "SavedModel | None":
        """Return the recorded model; None where none was."""
        return None if recorded is None else cls(**recorded)

    @property
    def is_shared(self) -> bool:
        """Return whether other machines have the model too."""
        return "://" in self.folder

    @property
    def path(self) -> str:
        """Return the folder; a shared one as a path where it has one, else as its URL."""
        return self.folder.removeprefix("file://")

    def __str__(self) -> str:
        if self.is_shared:
            return f"the model of trial {self.trial} is in {self.path}"
        return f"the model of trial {self.trial} is on host {self.host} in folder {self.folder}"
