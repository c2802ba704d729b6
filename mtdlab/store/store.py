"""The record of a study and its planned trials."""

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from mtdlab.errors import NothingToReport, nearest
from mtdlab.store.artifacts import ModelRecords
from mtdlab.store.beside_optuna import BesideOptuna
from mtdlab.store.claims import Claim
from mtdlab.store.database import explained, lock_writers
from mtdlab.store.looks import Looks
from mtdlab.store.progress import FINISHED
from mtdlab.store.ranking import FinishedRow, find_best, find_ranking, select_finished
from mtdlab.store.sweeps import Sweeps
from mtdlab.store.tables import StudyRow, TrialRow
from mtdlab.store.urls import shown, without_passwords

if TYPE_CHECKING:
    from mtdlab.config import Unit


class Store(Looks, Sweeps, ModelRecords, BesideOptuna):
    """One study: its record, planned trials and results. Every method may raise StorageError."""

    def forget_unbegun(self) -> bool:
        """Delete the study's rows if no trial has begun; returns whether none had."""
        mine = TrialRow.study_id == self.study_id
        with explained(self.url), Session(self._engine) as session, session.begin():
            # locked, so that no worker claims one meanwhile
            trials = session.execute(
                select(TrialRow.state, TrialRow.optuna_id).where(mine).with_for_update()
            )
            if any(state != "WAITING" or begun is not None for state, begun in trials):
                return False
            session.execute(delete(StudyRow).where(StudyRow.id == self.study_id))
            return True

    def study(self) -> StudyRow | None:
        """The study's record; None before it is created."""
        with explained(self.url), Session(self._engine) as session:
            return session.get(StudyRow, self.study_id)

    def write_study(
        self,
        name: str,
        metric: str,
        identity: dict[str, Any],
        text: str,
        command: str,
        *,
        description: str = "",
        imports: Mapping[str, str] | None = None,
        methods: Mapping[str, Any] | None = None,
        definition: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a study, or the newer file of one that only gained trials.

        command     recorded without the passwords of its storage URLs.
        imports     SHA-256 of each module or file that methods were imported from, by its name.
        methods     `describe_method` of each method, by its name.
        definition  what the file says with its profile and --set.
        """
        row = StudyRow(
            id=self.study_id,
            name=name,
            metric=metric,
            identity=identity,
            file_text=text,
            command=without_passwords(command),
            description=description,
            imports=dict(imports or {}),
            methods=dict(methods or {}),
            definition=None if definition is None else dict(definition),
        )
        with explained(self.url), Session(self._engine) as session, session.begin():
            lock_writers(session.connection())
            session.merge(row)

    def record_precision(self, precision: str) -> str:
        """Record the precision that `auto` is resolved to, unless one is recorded already.

        Returns the recorded value.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(StudyRow, self.study_id, with_for_update=True)
            row.precision = row.precision or precision
            return row.precision

    def record_inputs(self, found: Mapping[str, str]) -> dict[str, str]:
        """Record digests of inputs, and versions, but those that are recorded already.

        Returns the recorded ones.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(StudyRow, self.study_id, with_for_update=True)
            row.inputs = {**found, **(row.inputs or {})}
            return row.inputs

    def add_units(
        self, units: "Sequence[Unit]", begin_with: Set[int] | None = None
    ) -> list[tuple[str, int]]:
        """Add the trials of `units` that are not planned yet; returns planned ones not in `units`.

        begin_with  the seeds whose trials are added; None for all.

        If any planned trial is not in `units`, nothing is added.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            lock_writers(session.connection())
            mine = TrialRow.study_id == self.study_id
            known = {
                (setting, seed): row
                for row, setting, seed in session.execute(
                    select(TrialRow.id, TrialRow.setting, TrialRow.seed).where(mine)
                )
            }
            wanted = {(unit.setting, unit.seed) for unit in units}
            if missing := [key for key in known if key not in wanted]:
                return missing
            first_seed = {unit.setting: unit.seed for unit in reversed(units)}
            for position, unit in enumerate(units):
                begins = begin_with is None or unit.seed in begin_with
                if begins and (unit.setting, unit.seed) not in known:
                    session.add(
                        TrialRow(
                            study_id=self.study_id,
                            position=position,
                            setting=unit.setting,
                            seed=unit.seed,
                            leads=first_seed[unit.setting] == unit.seed,
                            parameters=unit.parameters,
                        )
                    )
        return []

    def counts(self) -> dict[str, int]:
        """The number of trials in each state."""
        with explained(self.url), Session(self._engine) as session:
            rows = session.execute(
                select(TrialRow.state, func.count())
                .where(TrialRow.study_id == self.study_id)
                .group_by(TrialRow.state)
            )
            return {row[0]: row[1] for row in rows}

    def select_by(self, metric: str) -> str:
        """The name of the score that ranks the trials; `metric` if none is recorded."""
        recorded = self.study()
        return (recorded.select_by if recorded else None) or metric

    def best_trial(self) -> FinishedRow | None:
        """The completed trial with the highest ranking score, of equal ones the first; or None."""
        with explained(self.url), Session(self._engine) as session:
            return find_best(session, self.study_id)

    def failures(self) -> list[FinishedRow]:
        """The failed trials, by number."""
        with explained(self.url), Session(self._engine) as session:
            ranking = find_ranking(session, self.study_id)
            rows = session.execute(select_finished(self.study_id, ranking))
            ended = [FinishedRow(*row[1:]) for row in rows]
        # one whose workers died before it began has no number
        failed = (row for row in ended if row.state == "FAIL")
        return sorted(failed, key=lambda row: (row.number is None, row.number or 0))

    def ended(self) -> list[Claim]:
        """The trials that have ended and cannot be resumed, without an owner."""
        columns = (TrialRow.id, TrialRow.setting, TrialRow.seed, TrialRow.parameters)
        known = select(*columns, TrialRow.optuna_id, TrialRow.number).where(
            TrialRow.study_id == self.study_id,
            TrialRow.state.in_(FINISHED),
            TrialRow.reason_code != "interrupted",
        )
        with explained(self.url), Session(self._engine) as session:
            return [Claim(*row) for row in session.execute(known)]

    def retry_failed(self) -> int:
        """Reset failed trials to waiting, to run as new Optuna trials; returns their number."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            failed = (TrialRow.study_id == self.study_id) & (TrialRow.state == "FAIL")
            count = session.scalar(select(func.count()).select_from(TrialRow).where(failed)) or 0
            session.execute(
                update(TrialRow)
                .where(failed)
                .values(
                    state="WAITING",
                    reason="",
                    reason_code="",
                    deaths=0,
                    note="",
                    traceback="",
                    optuna_id=None,
                    number=None,
                )
            )
            return count


def find_study(session: Session, name: str, url: str) -> StudyRow:
    """The row of a study. Raises NothingToReport where there is no such study."""
    row = session.scalars(select(StudyRow).where(StudyRow.name == name)).first()
    if row is None:
        names = session.scalars(select(StudyRow.name))
        raise NothingToReport(f"no study {name} in {shown(url)}; {nearest(name, names)}")
    return row
