"""This module writes and reads one study: its record, trials, looks, sweeps and saved model."""

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import Select, delete, select, update
from sqlalchemy.orm import load_only

from mtdlab.analysis.data.invocation import NO_INVOCATION
from mtdlab.errors import MtdlabError
from mtdlab.settings.limits import LATEST
from mtdlab.settings.roles import SEARCH
from mtdlab.store.claims import Claim, Claims, count_trials
from mtdlab.store.database import adding, open_to_write, warn_of_network
from mtdlab.store.facts import IDENTITY, read_fact, record_fact
from mtdlab.store.optuna_copy import delete_copy, repair_copy
from mtdlab.store.owner import Owner
from mtdlab.store.progress import StudyOverview, count_states, overview_of
from mtdlab.store.ranking import FinishedTrial, SavedModel, find_best, find_ranking, read_finished
from mtdlab.store.recorded import refuse_foreign
from mtdlab.store.rules import REFERENCES
from mtdlab.store.tables import (
    FINISHED,
    IMPORTED,
    LookRow,
    Now,
    PlanRow,
    StudyRow,
    SweepRow,
    TrialRow,
)
from mtdlab.store.urls import mask, without_password

if TYPE_CHECKING:
    from mtdlab.config.study import PlannedTrial


class Store(Claims):
    """A store is one study in its database. Every method may raise StorageError."""

    def delete_if_unbegun(self) -> bool:
        """Delete the study if no trial has begun; return whether none had."""
        trials = select(TrialRow.state, TrialRow.number).where(self.mine)
        with self.database.writing() as session:
            # locked, so that no worker claims one meanwhile
            rows = session.execute(trials.with_for_update())
            if any(state != "WAITING" or number is not None for state, number in rows):
                return False
            delete_copy(session, session.get_one(StudyRow, self.study_id).name)
            session.execute(delete(StudyRow).where(StudyRow.id == self.study_id))
            return True

    def identity(self) -> str:
        """Return the identity of the database, drawn at the first call (`facts`)."""
        with self.database.adding() as session:
            if not (identity := read_fact(session.connection(), IDENTITY)):
                identity = secrets.token_hex(8)
                record_fact(session.connection(), IDENTITY, identity)
            return identity

    def study(self) -> StudyRow | None:
        """Read the study's record; None before it is created."""
        with self.database.reading() as session:
            return session.get(StudyRow, self.study_id)

    def write_study(self, row: StudyRow) -> None:
        """Record a study, or its newer file; what `row` leaves out stays. Passwords are masked."""
        row.id, row.invocation = self.study_id, row.invocation.changed(without_password)
        with self.database.adding() as session:
            merged = session.merge(row)
            merged.version = (merged.version or 0) + 1

    def record_once(
        self, name: Literal["precision", "artifacts", "inputs", "chosen"], value: Any
    ) -> Any:
        """Record a column, or each key of a mapping, that has no value; return the recorded."""
        with self.database.writing() as session:
            row = session.get_one(StudyRow, self.study_id, with_for_update=True)
            recorded = getattr(row, name)
            if isinstance(value, Mapping):
                recorded = {**value, **(recorded or {})}
            if not recorded or isinstance(value, Mapping):
                setattr(row, name, recorded or value)
                row.version += 1
            return recorded or value

    def record_references(self, found: Mapping[str, Mapping[str, float]]) -> None:
        """Record scores of untrained encoders by encoder and reading."""
        with self.database.writing() as session:
            row = session.get_one(StudyRow, self.study_id, with_for_update=True)
            row.inputs = {**(row.inputs or {}), REFERENCES: found}
            row.version += 1

    def add_trials(
        self,
        planned: "Sequence[PlannedTrial]",
        begins_with: "Callable[[PlannedTrial, Set[int]], bool]" = lambda *_: True,
    ) -> dict[tuple[str, int], dict[str, Any] | None]:
        """Add the trials of a plan that are not recorded yet; return recorded ones not in the plan.

        The parameters of the latter by configuration and seed: if there are any, nothing is added.
        Else those are for which `begins_with` holds, with the seeds that are recorded.
        """
        with self.database.adding() as session:
            trials = select(TrialRow.configuration, TrialRow.seed, TrialRow.parameters)
            trials = trials.where(self.mine).order_by(TrialRow.id)
            recorded = {(row[0], row[1]): row[2] for row in session.execute(trials)}
            wanted = {trial.key for trial in planned}
            if missing := {key: recorded[key] for key in recorded if key not in wanted}:
                return missing
            first_seed = {trial.configuration: trial.seed for trial in reversed(planned)}
            seeds = {seed for _, seed in recorded}
            drawn = {key[0]: parameters for key, parameters in recorded.items()}
            for position, trial in enumerate(planned):
                if trial.key not in recorded and begins_with(trial, seeds):
                    name = trial.configuration
                    row = self._row_of(trial, position, leads=first_seed[name] == trial.seed)
                    if name in drawn and trial.parameters is None:
                        # another seed of it is there, which has drawn them, or will
                        row.parameters, row.leads = drawn[name], False
                    session.add(row)
        return {}

    def _row_of(self, trial: "PlannedTrial", position: int, *, leads: bool) -> TrialRow:
        return TrialRow(study_id=self.study_id, position=position, leads=leads, **vars(trial))

    def counts(self) -> dict[str, int]:
        """Count the trials in each state."""
        with self.database.reading() as session:
            return count_states(session, self.study_id)

    def overview(self) -> StudyOverview | None:
        """Read the study in a line; None where it was deleted."""
        with self.database.reading() as session:
            row = session.get(StudyRow, self.study_id)
            return None if row is None else overview_of(session, row)

    def best_trial(self) -> FinishedTrial | None:
        """Read the best trial of the search (`ranking.find_best`); None without one."""
        with self.database.reading() as session:
            return find_best(session, self.study_id)

    def failures(self) -> list[FinishedTrial]:
        """Read the failed trials, by number."""
        with self.database.reading() as session:
            return read_finished(session, self.study_id, TrialRow.state == "FAIL")

    def noted_by(self, sweep: int) -> list[FinishedTrial]:
        """Read the trials with a note that workers of a sweep have ended, by number."""
        noted = (TrialRow.sweep == sweep) & (TrialRow.note != "")
        with self.database.reading() as session:
            return read_finished(session, self.study_id, noted)

    def searched(self, first: int, numbers: Collection[int]) -> list[tuple[TrialRow, float | None]]:
        """Read trials of the search, with `numbers` and from `first` on, and what ranks each."""
        columns = (TrialRow.number, TrialRow.state, TrialRow.parameters, TrialRow.reports)
        mine = self.mine & (TrialRow.role == SEARCH)
        wanted = (TrialRow.number >= first) | TrialRow.number.in_(list(numbers))
        with self.database.reading() as session:
            trials = select(TrialRow, find_ranking(session, self.study_id)).where(mine, wanted)
            trials = trials.options(load_only(*columns, TrialRow.attributes))
            return [(row, ranking) for row, ranking in session.execute(trials)]

    def ended(self) -> list[Claim]:
        """Read the trials that have ended and cannot be resumed, as claims without an owner."""
        ended = select(TrialRow).where(self.mine, TrialRow.state.in_(FINISHED))
        ended = ended.where(TrialRow.reason_code != "interrupted")
        with self.database.reading() as session:
            return [Claim.of(row) for row in session.scalars(ended)]

    def has_claimed(self) -> bool:
        """Return whether a trial was claimed in this database: those of an import were not."""
        claimed = (TrialRow.number.is_not(None), TrialRow.sweep.is_distinct_from(IMPORTED))
        with self.database.reading() as session:
            return bool(count_trials(session, self.mine, *claimed))

    def check_readable(self) -> None:
        """Read what a sweep reads while it runs: trials that have not ended, the best, failures."""
        left = select(TrialRow).where(self.mine, TrialRow.state.not_in(FINISHED))
        with self.database.reading() as session:
            for _ in session.scalars(left.execution_options(yield_per=1_000)):
                pass
        self.best_trial()
        self.failures()

    def repair_copy(self) -> int:
        """Write the study's copy in Optuna's tables as it is here; return how many differed."""
        with self.database.adding() as session:
            return repair_copy(session, session.get_one(StudyRow, self.study_id))

    def retry_failed(self) -> None:
        """Let failed trials wait again, to run under new numbers."""
        with self.database.writing() as session:
            session.execute(
                update(TrialRow)
                .where(self.mine, TrialRow.state == "FAIL")
                .values(state="WAITING", deaths=0)
                .values(dict.fromkeys(("reason", "reason_code", "note", "traceback"), ""))
                .values(dict.fromkeys(("number", "began", "ended", "sweep")))
                .values(dict.fromkeys(("reports", "attributes")))
            )

    def last_look(self) -> LookRow | None:
        """Read the latest look, None before the first."""
        with self.database.reading() as session:
            mine = select(LookRow).where(LookRow.study_id == self.study_id)
            return session.scalars(mine.order_by(LookRow.look.desc()).limit(1)).first()

    def record_look(self, look: LookRow, added: "Mapping[int, PlannedTrial]") -> bool:
        """Record a look and add the trials `added`, by their positions in the order of the study.

        Returns False, without a change, if another sweep has recorded this look, a trial is not
        finished, or the completed trials are not those of the look: then the look has to be
        computed again.
        """
        with self.database.writing() as session:
            session.get_one(StudyRow, self.study_id, with_for_update=True)
            searched = self.mine & (TrialRow.role == SEARCH)
            complete = select(TrialRow.number).where(searched, TrialRow.state == "COMPLETE")
            if (
                session.get(LookRow, (self.study_id, look.look))
                or count_trials(session, searched, TrialRow.state.not_in(FINISHED))
                or [*session.scalars(complete.order_by(TrialRow.number))] != [*look.trials]
            ):
                return False
            look.study_id = self.study_id
            session.add(look)
            for position, trial in added.items():
                session.add(self._row_of(trial, position, leads=False))
            return True

    def begin_sweep(self, owner: Owner, max_failed: int | None = None) -> int:
        """Record a sweep that `owner` begins, and remove those that have died; return its row.

        Its workers claim no trial when `max_failed` of the study have failed. Raises MtdlabError if
        the study was deleted since it was opened, and where the clock of the database is so wrong
        that no import takes its times.
        """
        with self.database.writing() as session:
            if session.get(StudyRow, self.study_id, with_for_update=True) is None:
                raise MtdlabError("the study was deleted while this sweep started; rerun it")
            for row in session.scalars(self._sweeps()):
                if row.is_abandoned:
                    session.delete(row)
            row = SweepRow(
                study_id=self.study_id, owner=dict(owner), heartbeat=Now(), max_failed=max_failed
            )
            session.add(row)
            session.flush()
            if not 0 <= row.heartbeat <= LATEST:
                raise MtdlabError(
                    f"the clock of {mask(self.database.url)} says {row.heartbeat:.0f} seconds "
                    "since 1970, which is not between 1970 and 2099; set the clock of its machine"
                )
            return row.id

    def continue_sweep(self, row: int) -> bool:
        """Record a heartbeat of a sweep; return whether it was requested to stop."""
        with self.database.writing() as session:
            beat = update(SweepRow).where(SweepRow.id == row).values(heartbeat=Now())
            return bool(session.scalar(beat.returning(SweepRow.stop)))

    def request_stop(self) -> list[Owner]:
        """Request that all sweeps of the study stop; return their owners."""
        with self.database.writing() as session:
            live = [row for row in session.scalars(self._sweeps()) if not row.is_abandoned]
            for row in live:
                row.stop = True
            return [row.owner for row in live]

    def end_workers(self, row: int) -> None:
        """Request that the workers of a sweep end, on whichever machine."""
        with self.database.writing() as session:
            session.execute(update(SweepRow).where(SweepRow.id == row).values(is_over=True))

    def has_ended(self, row: int) -> bool:
        """Return whether a sweep has ended, or its workers were requested to."""
        with self.database.reading() as session:
            sweep = session.get(SweepRow, row)
            return sweep is None or sweep.has_to_end

    def end_sweep(self, row: int) -> None:
        """Remove the record of a sweep."""
        with self.database.writing() as session:
            session.execute(delete(SweepRow).where(SweepRow.id == row))

    def live_sweeps(self) -> list[Owner]:
        """Read the owners of the sweeps that run, as far as this machine can know."""
        with self.database.reading() as session:
            rows = session.scalars(self._sweeps())
            return [row.owner for row in rows if not row.is_abandoned]

    def _sweeps(self) -> Select[SweepRow]:
        return select(SweepRow).where(SweepRow.study_id == self.study_id)

    def artifacts(self) -> str | None:
        """Read the URL where all machines keep checkpoints and models; None if each its own."""
        row = self.study()
        return None if row is None else row.artifacts

    def record_model(self, trial: int, host: str, folder: str) -> SavedModel | None:
        """Record where the model of a trial, by its number, was saved.

        Returns the record that is no longer valid: the former one, None without one. Where that is
        the best trial's and the given one is not, it stays, and the given one is returned: of two
        machines that save at once, the later may have the lower score.
        """
        with self.database.writing() as session:
            row = session.get(StudyRow, self.study_id, with_for_update=True)
            given = SavedModel(trial, host, folder)
            if row is None:
                return given  # deleted meanwhile
            former, best = SavedModel.of(row.model), find_best(session, self.study_id)
            if former is not None and best is not None and former.trial == best.number != trial:
                return given
            row.model = {"trial": trial, "host": host, "folder": folder}
            return former

    def saved_model(self) -> SavedModel | None:
        """Read where the best trial's model was last saved; None where it is not recorded."""
        row = self.study()
        return None if row is None else SavedModel.of(row.model)


def open_store(url: str, name: str) -> Store | None:
    """Open the store of a study; None where there is none of this name. Raises StorageError."""
    database = open_to_write(url)
    with database.reading() as session:
        study_id = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
    if study_id is None:
        database.close()
        return None
    return Store(url, study_id, database)


def create_store(url: str, name: str, metric: str, identity: dict[str, Any]) -> tuple[Store, bool]:
    """Open or create the store of a study; return whether it was created. Raises StorageError."""
    row = StudyRow(
        name=name, metric=metric, identity=identity, file_text="", invocation=NO_INVOCATION
    )
    database = open_to_write(url)
    with database.adding() as session:
        recorded = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
        if recorded is None:
            session.add(row)
            session.flush()
        study_id = row.id if recorded is None else recorded
    return Store(url, study_id, database), recorded is None


def record_error(url: str, sweep: int, error: Mapping[str, Any]) -> None:
    """Record the error that has ended a worker of a sweep (`SweepRow.error`), unless one is."""
    with adding(url) as session:
        row = session.get(SweepRow, sweep, with_for_update=True)
        if row is not None and row.error is None:
            row.error = dict(error)


def record_plan(url: str, study: str, plan: Mapping[str, Any], sha256: str) -> int:
    """Record a study's plan; return how many trials had started when it was first recorded.

    Before the first trial a new plan replaces the earlier one. Afterwards a plan that differs from
    the latest is added, with the number of trials that had started. Raises StorageError, also where
    another program wrote a study of this name.
    """
    refuse_foreign(url, study)
    warn_of_network(url)
    with adding(url) as session:
        of_study = TrialRow.study_id.in_(select(StudyRow.id).where(StudyRow.name == study))
        begun = count_trials(session, of_study, TrialRow.began.is_not(None))
        mine = PlanRow.study == study
        if not begun:
            session.execute(delete(PlanRow).where(mine))
        rows = session.scalars(select(PlanRow).where(mine).order_by(PlanRow.position)).all()
        if rows and rows[-1].sha256 == sha256:
            return rows[-1].trials
        added = {"position": len(rows), "trials": begun, "plan": dict(plan), "sha256": sha256}
        session.add(PlanRow(study=study, **added))
        return begun
