"""The progress of a study, read while workers write: it never writes and never blocks them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from analysis.data.study_state import State, find_state
from mtdlab.store.database import reading_engine, translate_errors
from mtdlab.store.ranking import FinishedTrial, SavedModel, find_best
from mtdlab.store.reading import reading
from mtdlab.store.tables import FINISHED, StudyRow, TrialRow, living_state
from mtdlab.store.urls import storage_url


class ProgressReader:
    """Reads one study's progress. Every method may raise StorageError."""

    def __init__(self, url: str, study_id: int) -> None:
        self.url = url
        self.study_id = study_id
        self._engine = reading_engine(url)

    def read(self) -> tuple[Sequence[TrialRow], int]:
        """The trials that are being trained, and the number of finished ones."""
        mine = TrialRow.study_id == self.study_id
        begun = (TrialRow.state == "RUNNING") & TrialRow.settings.is_not(None)
        finished = select(func.count()).where(mine, TrialRow.state.in_(FINISHED))
        with translate_errors(self.url), Session(self._engine) as session:
            running = session.scalars(select(TrialRow).where(mine, begun)).all()
            return running, session.scalar(finished) or 0


@dataclass(frozen=True)
class StudyOverview:
    """One study in a line.

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
        """The number of trials, of all states."""
        return sum(self.counts.values())

    @property
    def state(self) -> State:
        """planned, running, paused, complete or failed, as on the study's page."""
        return find_state(self.counts, self.begun)


def study_names(storage: str | None = None) -> list[str]:
    """The names of the studies of a database, as `load_study` takes it, sorted.

    Raises StorageError where there is no such database.
    """
    url = storage_url(storage)
    with reading(url) as session:
        return list(session.scalars(select(StudyRow.name).order_by(StudyRow.name)))


def list_studies(storage: str | None = None) -> list[StudyOverview]:
    """The studies of a database by name, as `study_names` takes it and raises."""
    url = storage_url(storage)
    with reading(url) as session:
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
    """The trials by state, and how many have begun."""
    mine = TrialRow.study_id == study.id
    count = select(TrialRow.state, func.count(), func.count(TrialRow.began))
    found = session.execute(count.where(mine).group_by(TrialRow.state)).all()
    counts = Counter({state: trials for state, trials, _ in found})
    running = session.scalars(select(TrialRow).where(mine, TrialRow.state == "RUNNING"))
    counts.update(map(living_state, running))
    counts["RUNNING"] -= sum(trials for state, trials, _ in found if state == "RUNNING")
    return dict(+counts), sum(begun for _, _, begun in found)


def _last_time(session: Session, study: StudyRow) -> datetime | None:
    latest = func.max(func.coalesce(TrialRow.ended, TrialRow.began))
    seconds = session.scalar(select(latest).where(TrialRow.study_id == study.id))
    return None if seconds is None else datetime.fromtimestamp(seconds)
