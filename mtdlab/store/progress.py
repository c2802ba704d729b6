"""This module reads the progress of studies while workers write, and never blocks them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mtdlab.analysis.data.defaults import State, find_state
from mtdlab.store.database import open_to_read, read_at_one_moment, reading
from mtdlab.store.ranking import FinishedTrial, SavedModel, find_best, find_ranking, select_finished
from mtdlab.store.tables import FINISHED, StudyRow, SweepRow, TrialRow, living_state
from mtdlab.store.urls import storage_url


@dataclass(frozen=True)
class Progress:
    """Progress is a study at one moment, as one of its sweeps sees it.

    Attributes:
        counts: the number of trials by state.
        running: the trials that any process runs.
        ended: what workers of the sweep have ended since the last reading, by number.
        error: what has ended a worker of the sweep (`SweepRow.error`).
    """

    counts: Mapping[str, int]
    running: Sequence[TrialRow]
    ended: Sequence[FinishedTrial] = ()
    error: Mapping[str, Any] | None = None

    @property
    def finished(self) -> int:
        """Return how many trials have ended."""
        return sum(self.counts.get(state, 0) for state in FINISHED)


class ProgressReader:
    """This class reads one study's progress for a sweep. It may raise StorageError."""

    def __init__(self, url: str, study_id: int, sweep: int | None = None) -> None:
        self.study_id, self.sweep = study_id, sweep
        self.database = open_to_read(url)
        self._known = set[int]()

    def read(self) -> Progress:
        """Read the progress now."""
        mine = TrialRow.study_id == self.study_id
        states = select(TrialRow.state, func.count()).where(mine).group_by(TrialRow.state)
        with self.database.reading() as session:
            read_at_one_moment(session)
            counts = {row[0]: row[1] for row in session.execute(states)}
            running = session.scalars(select(TrialRow).where(mine, TrialRow.state == "RUNNING"))
            error = select(SweepRow.error).where(SweepRow.id == self.sweep)
            ended = self._ended(session)
            progress = Progress(counts, running.all(), ended, session.scalar(error))
        self._known.update(trial.row for trial in ended)
        return progress

    def _ended(self, session: Session) -> list[FinishedTrial]:
        """Read the trials that have ended and were not read before."""
        ended = (TrialRow.sweep == self.sweep) & TrialRow.state.in_(FINISHED)
        new = set(session.scalars(select(TrialRow.id).where(ended))) - self._known
        if not new:
            return []
        rows = select_finished(self.study_id, find_ranking(session, self.study_id))
        rows = rows.where(TrialRow.id.in_(new)).order_by(TrialRow.number)
        return [FinishedTrial(*row) for row in session.execute(rows)]


@dataclass(frozen=True)
class StudyOverview:
    """An overview is one study in a line.

    Attributes:
        counts: trials by state: COMPLETE, RUNNING, WAITING, FAIL, PRUNED; states without a trial
            are missing. A trial whose process has died waits.
        begun: how many of them have begun.
        best: by the score that ranks the trials; None before a trial is complete.
        last: when the last trial began or ended, in local time; None before the first.
        model: where the best trial's model was last saved; None where it is not recorded.
    """

    name: str
    description: str
    metric: str
    select_by: str
    counts: Mapping[str, int]
    begun: int
    best: FinishedTrial | None
    last: datetime | None
    model: SavedModel | None

    @property
    def planned(self) -> int:
        """Return the number of trials, of all states."""
        return sum(self.counts.values())

    @property
    def state(self) -> State:
        """Return planned, running, paused, complete or failed, as on the study's page."""
        return find_state(self.counts, self.begun)


def list_studies(storage: str | None = None) -> list[StudyOverview]:
    """Read the studies of a database, as `load_frames` takes it, in the order of their names.

    Raises StorageError where there is no such database.
    """
    with reading(storage_url(storage)) as session:
        return [
            StudyOverview(
                row.name,
                row.description,
                row.metric,
                row.select_by,
                *_counts(session, row),
                find_best(session, row.id),
                _last_time(session, row),
                SavedModel.of(row.model),
            )
            for row in session.scalars(select(StudyRow).order_by(StudyRow.name))
        ]


def _counts(session: Session, study: StudyRow) -> tuple[dict[str, int], int]:
    """Count the trials by state, and those that have begun."""
    mine = TrialRow.study_id == study.id
    count = select(TrialRow.state, func.count(), func.count(TrialRow.began))
    of_state = session.execute(count.where(mine).group_by(TrialRow.state)).all()
    counts = Counter({state: trials for state, trials, _ in of_state})
    running = session.scalars(select(TrialRow).where(mine, TrialRow.state == "RUNNING"))
    counts.update(map(living_state, running))
    counts["RUNNING"] -= sum(trials for state, trials, _ in of_state if state == "RUNNING")
    return dict(+counts), sum(begun for _, _, begun in of_state)


def _last_time(session: Session, study: StudyRow) -> datetime | None:
    latest = func.max(func.coalesce(TrialRow.ended, TrialRow.began))
    seconds = session.scalar(select(latest).where(TrialRow.study_id == study.id))
    return None if seconds is None else datetime.fromtimestamp(seconds)
