"""The studies of a database, each with its state, its best trial and the date of its last trial."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from sqlalchemy import DateTime, column, func, inspect, select, table
from sqlalchemy.orm import Session

from mtdlab.store.database import explained, reading_engine
from mtdlab.store.progress import FINISHED
from mtdlab.store.store import FinishedRow, find_best
from mtdlab.store.tables import StudyRow, TrialRow
from mtdlab.store.urls import storage_url

State = Literal["planned", "running", "paused", "complete", "failed"]


@dataclass(frozen=True)
class StudyOverview:
    """One study in a line.

    counts  trials by state: COMPLETE, RUNNING, WAITING, FAIL, PRUNED; states without a trial
            are missing.
    best    by the score that ranks the trials; None before a trial is complete.
    last    when the last trial began or ended, in local time; None before the first, or where
            Optuna's tables are missing.
    """

    name: str
    description: str
    metric: str
    select_by: str
    counts: Mapping[str, int]
    best: FinishedRow | None
    last: datetime | None

    @property
    def planned(self) -> int:
        """The number of trials, of all states."""
        return sum(self.counts.values())

    @property
    def state(self) -> State:
        """planned: no trial has begun; failed: all have ended and none is complete."""
        if self.counts.get("RUNNING"):
            return "running"
        if self.counts.get("WAITING"):
            return "paused" if any(map(self.counts.get, FINISHED)) else "planned"
        return "complete" if self.counts.get("COMPLETE") else "failed"


def study_names(storage: str | None = None) -> list[str]:
    """The names of the studies of a database, sorted.

    storage  as `load_study` takes it. Raises StorageError where there is no such database.
    """
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        return list(session.scalars(select(StudyRow.name).order_by(StudyRow.name)))


def list_studies(storage: str | None = None) -> list[StudyOverview]:
    """The studies of a database by name, as `study_names` takes it and raises."""
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        last = _last_times(session)
        return [
            StudyOverview(
                row.name,
                row.description,
                row.metric,
                row.select_by or row.metric,
                _counts(session, row),
                find_best(session, row.id),
                last.get(row.id),
            )
            for row in session.scalars(select(StudyRow).order_by(StudyRow.name))
        ]


def _counts(session: Session, study: StudyRow) -> dict[str, int]:
    count = select(TrialRow.state, func.count()).group_by(TrialRow.state)
    return {row[0]: row[1] for row in session.execute(count.where(TrialRow.study_id == study.id))}


def _last_times(session: Session) -> dict[int, datetime]:
    """When each study's last trial began or ended, by Optuna's study_id, from Optuna's tables."""
    if not inspect(session.connection()).has_table("trials"):
        return {}
    times = [column("datetime_complete", DateTime), column("datetime_start", DateTime)]
    trials = table("trials", column("study_id"), *times)
    latest = func.max(func.coalesce(trials.c.datetime_complete, trials.c.datetime_start))
    rows = session.execute(select(trials.c.study_id, latest).group_by(trials.c.study_id))
    return {study: time for study, time in rows if time is not None}
