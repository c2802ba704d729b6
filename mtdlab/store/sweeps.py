"""The sweeps that run a study, recorded so that none is deleted or renamed under them, and that
each can be requested to stop, on whichever machine it runs.

A sweep that was killed leaves its row; its owner is found to be dead.
"""

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import Session

from mtdlab.errors import MtdlabError
from mtdlab.store.claims import Claims, Owner
from mtdlab.store.clock import Now
from mtdlab.store.database import explained
from mtdlab.store.owner import is_dead
from mtdlab.store.tables import StudyRow, SweepRow


class Sweeps(Claims):
    """The sweeps of one study. Every method may raise StorageError."""

    def begin_sweep(self, owner: Owner) -> int:
        """Record a sweep that `owner` begins, and remove those that have died; returns its row.

        Raises MtdlabError if the study was deleted since it was opened.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            if session.get(StudyRow, self.study_id, with_for_update=True) is None:
                raise MtdlabError("the study was deleted while this sweep started; rerun it")
            for row in session.scalars(self._sweeps()):
                if is_dead(row.owner, row.silent):
                    session.delete(row)
            row = SweepRow(study_id=self.study_id, owner=dict(owner), heartbeat=Now())
            session.add(row)
            session.flush()
            return row.id

    def continue_sweep(self, row: int) -> bool:
        """Record a heartbeat of a sweep; returns whether it was requested to stop."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            beat = update(SweepRow).where(SweepRow.id == row).values(heartbeat=Now())
            session.execute(beat)
            return bool(session.scalar(select(SweepRow.stop).where(SweepRow.id == row)))

    def request_stop(self, row: int | None = None) -> list[Owner]:
        """Request that a sweep stops, or that all of the study do; returns the owners."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            rows = [
                each
                for each in session.scalars(self._sweeps())
                if row in (None, each.id) and not is_dead(each.owner, each.silent)
            ]
            for each in rows:
                each.stop = True
            return [each.owner for each in rows]

    def has_ended(self, row: int) -> bool:
        """Whether a sweep has ended, or was requested to stop."""
        with explained(self.url), Session(self._engine) as session:
            found = session.get(SweepRow, row)
            return found is None or found.stop

    def end_sweep(self, row: int) -> None:
        """Remove the record of a sweep."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            session.execute(delete(SweepRow).where(SweepRow.id == row))

    def live_sweeps(self) -> list[Owner]:
        """The owners of the sweeps that run, as far as this machine can know."""
        with explained(self.url), Session(self._engine) as session:
            rows = session.scalars(self._sweeps()).all()
            return [row.owner for row in rows if not is_dead(row.owner, row.silent)]

    def _sweeps(self) -> Select[SweepRow]:
        return select(SweepRow).where(SweepRow.study_id == self.study_id)
