"""The trials of a study in Optuna's tables, compared with those in mtdlab's.

Optuna's own functions load every trial with its attributes: 36 s and 1.4 GB for 10,000 trials.
"""

from collections.abc import Collection

from sqlalchemy import Select, String, and_, cast, delete, func, or_, select, update
from sqlalchemy.orm import Session

from mtdlab.store.claims import Claims
from mtdlab.store.database import explained
from mtdlab.store.names import OPTUNA_STUDIES, OPTUNA_TRIALS, OPTUNA_VALUES
from mtdlab.store.progress import FINISHED
from mtdlab.store.ranking import FinishedRow, find_ranking, select_finished
from mtdlab.store.tables import StudyRow, TrialRow

ROUNDING = 1e-9
"""Scores are below 100; a value that differs by less is the same one."""


class BesideOptuna(Claims):
    """The trials of one study in both. Every method may raise StorageError."""

    def forget_deleted(self, name: str) -> None:
        """Delete the rows of a study that was deleted through Optuna, which does not delete them.

        SQLite reuses the id of a deleted study. If Optuna has none of the trials recorded here, the
        rows belong to a deleted study. The rows are read before Optuna's ids, so that a trial that
        another worker starts in between is not mistaken for a deleted one.
        """
        mine = or_(StudyRow.id == self.study_id, StudyRow.name == name)
        with explained(self.url), Session(self._engine) as session, session.begin():
            begun = select(TrialRow.optuna_id).join(StudyRow).where(mine)
            known = set(session.scalars(begun.where(TrialRow.optuna_id.is_not(None))))
        if known and known.isdisjoint(self.optuna_ids()):
            with explained(self.url), Session(self._engine) as session, session.begin():
                session.execute(delete(StudyRow).where(mine))

    def forget_vanished(self) -> None:
        """Delete the rows of a study that was deleted through Optuna and whose id is used again.

        Its name is not that of Optuna's study, also if none of its trials had begun.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            known = select(OPTUNA_STUDIES.c.study_name)
            known = known.where(OPTUNA_STUDIES.c.study_id == self.study_id)
            other = (StudyRow.id == self.study_id) & StudyRow.name.not_in(known)
            session.execute(delete(StudyRow).where(other))

    def optuna_ids(self) -> set[int]:
        """The ids of the study's trials in Optuna's tables.

        By a query of ours: Optuna would load every trial with its attributes.
        """
        mine = OPTUNA_TRIALS.c.study_id == self.study_id
        with explained(self.url), Session(self._engine) as session:
            return set(session.scalars(select(OPTUNA_TRIALS.c.trial_id).where(mine)))

    def unfinished_ids(self) -> list[int]:
        """The ids of those of them that run or wait there.

        One that has ended here was killed before it recorded its end there.
        """
        columns = OPTUNA_TRIALS.c
        # an enumeration on PostgreSQL
        unfinished = cast(columns.state, String).in_(("RUNNING", "WAITING"))
        found = select(columns.trial_id).where(columns.study_id == self.study_id, unfinished)
        with explained(self.url), Session(self._engine) as session:
            return list(session.scalars(found.order_by(columns.trial_id)))

    def restart_ended(self) -> None:
        """Let waiting trials begin anew that have ended in Optuna's tables alone."""
        waiting = (TrialRow.study_id == self.study_id) & (TrialRow.state == "WAITING")
        ended = TrialRow.optuna_id.in_(self._ended_there())
        anew = update(TrialRow).where(waiting, ended).values(optuna_id=None, number=None)
        with explained(self.url), Session(self._engine) as session, session.begin():
            session.execute(anew)

    def disagreements(self) -> list[tuple[int, str, float | None]]:
        """The trials that ended otherwise in Optuna's tables: id, and the right state and value.

        Those that are not planned should have failed.
        """
        there, value = OPTUNA_TRIALS.c, OPTUNA_VALUES.c.value
        state = cast(there.state, String)
        with explained(self.url), Session(self._engine) as session:
            ranking = find_ranking(session, self.study_id)
            differs = func.abs(func.coalesce(value, ranking + 1) - ranking) > ROUNDING
            ended = (
                select(there.trial_id, TrialRow.state, ranking)
                .join(TrialRow, TrialRow.optuna_id == there.trial_id)
                .outerjoin(OPTUNA_VALUES, OPTUNA_VALUES.c.trial_id == there.trial_id)
                .where(TrialRow.study_id == self.study_id, there.trial_id.in_(self._ended_there()))
                .where(TrialRow.state.in_(FINISHED))
                .where(or_(state != TrialRow.state, and_(state == "COMPLETE", differs)))
            )
            mine = TrialRow.study_id == self.study_id
            planned = select(TrialRow.optuna_id).where(mine, TrialRow.optuna_id.is_not(None))
            foreign = self._ended_there().where(state != "FAIL", there.trial_id.not_in(planned))
            found = [(row[0], row[1], row[2]) for row in session.execute(ended)]
            return found + [(identity, "FAIL", None) for identity in session.scalars(foreign)]

    def _ended_there(self) -> Select[int]:
        """The ids of the trials that have ended in Optuna's tables."""
        there = OPTUNA_TRIALS.c
        # an enumeration on PostgreSQL
        ended = cast(there.state, String).in_(FINISHED)
        return select(there.trial_id).where(there.study_id == self.study_id, ended)

    def begun(self) -> set[int]:
        """The Optuna ids of all trials that have one."""
        with explained(self.url), Session(self._engine) as session:
            return {
                identity
                for identity in session.scalars(
                    select(TrialRow.optuna_id).where(TrialRow.study_id == self.study_id)
                )
                if identity is not None
            }

    def finished(self, optuna_ids: Collection[int]) -> dict[int, FinishedRow]:
        """Those trials of Optuna's ids that have finished, by these ids."""
        with explained(self.url), Session(self._engine) as session:
            ranking = find_ranking(session, self.study_id)
            of_these = TrialRow.optuna_id.in_(optuna_ids)
            rows = session.execute(select_finished(self.study_id, ranking).where(of_these))
            return {optuna_id: FinishedRow(*row) for optuna_id, *row in rows if optuna_id}
