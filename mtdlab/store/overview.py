"""The studies of a database, each with its state, its best trial and the date of its last trial."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import DateTime, column, func, inspect, select, table
from sqlalchemy.orm import Session

from analysis.study_state import State, find_state
from mtdlab.store.progress import living_state
from mtdlab.store.ranking import FinishedRow, find_best
from mtdlab.store.reading import reading
from mtdlab.store.saved_model import SavedModel
from mtdlab.store.tables import StudyRow, TrialRow
from mtdlab.store.urls import storage_url


@dataclass(frozen=True)
class StudyOverview:
    """One study in a line.

    counts  trials by state: COMPLETE, RUNNING, WAITING, FAIL, PRUNED; states without a trial
            are missing. A trial whose process has died waits (`living_state`).
    begun   how many of them have begun.
    best    by the score that ranks the trials; None before a trial is complete.
    last    when the last trial began or ended, in local time; None before the first, or where
            Optuna's tables are missing.
    model   where the best trial's model was last saved; None where it is not recorded.
    """

    name: str
    description: str
    metric: str
    select_by: str
    counts: Mapping[str, int]
    begun: int
    best: FinishedRow | None
    last: datetime | None
    model: SavedModel | None

    @property
    def planned(self) -> int:
        """The number of trials, of all states."""
        return sum(self.counts.values())

    @property
    def state(self) -> State:
        """planned, running, paused, complete or failed, as on the study's page."""
        return find_state(self.counts, self.begun)


def study_names(storage: str | None = None) -> list[str]:
    """The names of the studies of a database, sorted.

    storage  as `load_study` takes it. Raises StorageError where there is no such database.
    """
    url = storage_url(storage)
    with reading(url) as session:
        return list(session.scalars(select(StudyRow.name).order_by(StudyRow.name)))


def list_studies(storage: str | None = None) -> list[StudyOverview]:
    """The studies of a database by name, as `study_names` takes it and raises."""
    url = storage_url(storage)
    with reading(url) as session:
        last = _last_times(session)
        return [
            StudyOverview(
                row.name,
                row.description,
                row.metric,
                row.select_by or row.metric,
                *_counts(session, row),
                find_best(session, row.id),
                last.get(row.id),
                SavedModel.of(row.model),
            )
            for row in session.scalars(select(StudyRow).order_by(StudyRow.name))
        ]


def _counts(session: Session, study: StudyRow) -> tuple[dict[str, int], int]:
    """The trials by state, and how many have begun."""
    mine = TrialRow.study_id == study.id
    count = select(TrialRow.state, func.count(), func.count(TrialRow.number))
    found = session.execute(count.where(mine).group_by(TrialRow.state)).all()
    counts = Counter({state: trials for state, trials, _ in found})
    running = session.scalars(select(TrialRow).where(mine, TrialRow.state == "RUNNING"))
    counts.update(living_state(row) for row in running)
    counts["RUNNING"] -= sum(trials for state, trials, _ in found if state == "RUNNING")
    return dict(+counts), sum(begun for _, _, begun in found)


def _last_times(session: Session) -> dict[int, datetime]:
    """When each study's last trial began or ended, by Optuna's study_id, from Optuna's tables."""
    if not inspect(session.connection()).has_table("trials"):
        return {}
    times = [column("datetime_complete", DateTime), column("datetime_start", DateTime)]
    trials = table("trials", column("study_id"), *times)
    latest = func.max(func.coalesce(trials.c.datetime_complete, trials.c.datetime_start))
    rows = session.execute(select(trials.c.study_id, latest).group_by(trials.c.study_id))
    return {study: time for study, time in rows if time is not None}
