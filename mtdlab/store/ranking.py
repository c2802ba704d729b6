"""This module reads the trials that have ended, and says which of them is the best."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.orm import Session

from mtdlab.settings.roles import SEARCH
from mtdlab.store.tables import FINISHED, ScoreRow, StudyRow, TrialRow


@dataclass(frozen=True)
class FinishedTrial:
    """A finished trial has columns of `TrialRow`. Numbers that are not known are None.

    `score` is the study's metric, `ranking` the score that ranks it.
    """

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


def find_best(session: Session, study_id: int) -> FinishedTrial | None:
    """Read the complete trial of a study's search with the highest ranking score.

    Of equal ones it is the first; None without one.
    """
    ranking = find_ranking(session, study_id)
    is_one = (TrialRow.state == "COMPLETE") & (TrialRow.role == SEARCH)
    ranked = select_finished(study_id, ranking).where(is_one)
    first = ranked.where(ranking.is_not(None)).order_by(ranking.desc(), TrialRow.number)
    row = session.execute(first.limit(1)).first()
    return None if row is None else FinishedTrial(*row)


def find_ranking(session: Session, study_id: int) -> ColumnElement[float | None]:
    """Return the score that ranks a trial, as a column of queries on trials."""
    study = session.get(StudyRow, study_id)
    if study is None or study.select_by == study.metric:
        return TrialRow.score.expression
    named = (ScoreRow.trial_id == TrialRow.id) & (ScoreRow.task == study.select_by)
    return select(ScoreRow.score).where(named).scalar_subquery()


def select_finished(
    study_id: int, ranking: ColumnElement[float | None]
) -> Select[*tuple[Any, ...]]:
    """Select the finished trials, as the fields of `FinishedTrial`."""
    before = (TrialRow.number, TrialRow.seed, TrialRow.parameters, TrialRow.state, TrialRow.reason)
    after = (TrialRow.wall_seconds, TrialRow.note, TrialRow.reason_code, TrialRow.id, TrialRow.role)
    return select(*before, TrialRow.mtd, TrialRow.score, ranking, *after).where(
        TrialRow.study_id == study_id, TrialRow.state.in_(FINISHED)
    )


@dataclass(frozen=True)
class SavedModel:
    """A saved model is told by the number of its trial, the machine, and the folder there.

    A folder that all machines share is a URL.
    """

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
