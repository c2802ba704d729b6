"""This module reads the progress of studies while workers write, and never blocks them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, true
from sqlalchemy.orm import Session

from mtdlab.analysis.data.defaults import State, find_state
from mtdlab.settings.roles import OF_NUISANCE
from mtdlab.store.database import open_to_read, read_at_one_moment, reading
from mtdlab.store.ranking import FinishedTrial, SavedModel, find_best, read_finished
from mtdlab.store.records import find_study
from mtdlab.store.tables import FINISHED, StudyRow, SweepRow, TrialRow, living_state
from mtdlab.store.urls import storage_url


@dataclass(frozen=True)
class Progress:
    """Progress is a study at one moment, as one of its sweeps sees it.

    `counts` has the trials by state, `running` those of any process, `ended` those that workers of
    the sweep have ended since the last reading. `error` is that of `SweepRow`.
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
        running = select(TrialRow).where(TrialRow.study_id == self.study_id)
        running = running.where(TrialRow.state == "RUNNING")
        with self.database.reading() as session:
            read_at_one_moment(session)
            counts, rows = count_states(session, self.study_id), session.scalars(running).all()
            error = session.scalar(select(SweepRow.error).where(SweepRow.id == self.sweep))
            mine = (TrialRow.sweep == self.sweep) & TrialRow.state.in_(FINISHED)
            new = set(session.scalars(select(TrialRow.id).where(mine))) - self._known
            ended = read_finished(session, self.study_id, TrialRow.id.in_(new)) if new else []
            progress = Progress(counts, rows, ended, error)
        self._known |= new
        return progress


def count_states(session: Session, study_id: int) -> dict[str, int]:
    """Count the trials of a study in each state."""
    states = select(TrialRow.state, func.count()).where(TrialRow.study_id == study_id)
    return {row[0]: row[1] for row in session.execute(states.group_by(TrialRow.state))}


@dataclass(frozen=True)
class StudyOverview:
    """An overview is one study in a line.

    Attributes:
        counts: trials by state: COMPLETE, RUNNING, WAITING, FAIL, PRUNED; states without a trial
            are missing. A trial whose process has died waits.
        best: by the score that ranks the trials; None before a trial is complete.
        last: when the last trial began or ended, in local time; None before the first.
        model: where the best trial's model was last saved; None where it is not recorded.
        reason_codes: why trials failed, each code once.
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
    reason_codes: frozenset[str]

    @property
    def planned(self) -> int:
        """Return the number of trials, of all states."""
        return sum(self.counts.values())

    @property
    def state(self) -> State:
        """Return planned, running, paused, complete or failed, as on the study's page."""
        return find_state(self.counts, self.begun)

    @property
    def is_over(self) -> bool:
        """Return whether no trial is left to run."""
        return self.state in ("complete", "failed")


def list_studies(storage: str | None = None) -> list[StudyOverview]:
    """Read the studies of a database in the order of their names. Raises StorageError."""
    with reading(storage_url(storage)) as session:
        studies = session.scalars(select(StudyRow).order_by(StudyRow.name))
        return [overview_of(session, study) for study in studies]


def overview_of(session: Session, study: StudyRow) -> StudyOverview:
    """Read a study in a line."""
    mine, last = TrialRow.study_id == study.id, func.coalesce(TrialRow.ended, TrialRow.began)
    times = select(func.count(TrialRow.began), func.max(last)).where(mine)
    begun, seconds = session.execute(times).one()
    running = session.scalars(select(TrialRow).where(mine, TrialRow.state == "RUNNING")).all()
    codes = select(TrialRow.reason_code).where(mine, TrialRow.state == "FAIL").distinct()
    counts = Counter(count_states(session, study.id))
    counts.subtract({"RUNNING": len(running)})
    counts.update(map(living_state, running))
    return StudyOverview(
        study.name,
        study.description,
        study.metric,
        study.select_by,
        dict(+counts),
        begun,
        find_best(session, study.id),
        None if seconds is None else datetime.fromtimestamp(seconds),
        SavedModel.of(study.model),
        frozenset(session.scalars(codes)),
    )


@dataclass(frozen=True)
class Moment:
    """A moment is what a database holds of a study at one time.

    Attributes:
        ended: trials of every role that have ended, in the order of their ends.
        running: trials of any process that is alive.
    """

    overview: StudyOverview
    ended: Sequence[FinishedTrial]
    running: Sequence[TrialRow]

    @property
    def scored(self) -> Sequence[FinishedTrial]:
        """Return the complete trials whose scores count: none that chooses a nuisance value."""
        complete = [trial for trial in self.ended if trial.state == "COMPLETE"]
        known = [trial for trial in complete if trial.score is not None]
        return [trial for trial in known if trial.role not in OF_NUISANCE]


def read_moment(session: Session, study: str, url: str) -> Moment:
    """Read a study now. Raises NothingToReport for an unknown one."""
    read_at_one_moment(session)
    row = find_study(session, study, url)
    ended = sorted(read_finished(session, row.id, true()), key=lambda trial: trial.ended or 0.0)
    begun = select(TrialRow).where(TrialRow.study_id == row.id, TrialRow.state == "RUNNING")
    running = [trial for trial in session.scalars(begun) if living_state(trial) == "RUNNING"]
    return Moment(overview_of(session, row), ended, running)
