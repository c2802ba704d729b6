"""A study in its database: its record, planned trials, looks, sweeps, and where its model is."""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sqlalchemy import ColumnElement, Row, Select, delete, func, select, update
from sqlalchemy.orm import Session

from analysis.data.invocation import NO_INVOCATION
from mtdlab.errors import MtdlabError, NothingToReport, nearest
from mtdlab.settings.limits import LATEST
from mtdlab.settings.roles import BASELINE, SEARCH
from mtdlab.store.claims import Claim, Claims
from mtdlab.store.database import lock_writers, translate_errors, writing_engine
from mtdlab.store.optuna_copy import delete_study, repair_copy
from mtdlab.store.owner import Owner
from mtdlab.store.ranking import FinishedTrial, SavedModel, find_best, find_ranking, select_finished
from mtdlab.store.tables import FINISHED, LookRow, Now, StudyRow, SweepRow, TrialRow
from mtdlab.store.urls import mask, without_passwords

if TYPE_CHECKING:
    from mtdlab.config import Unit


@dataclass(frozen=True)
class Look:
    """A recorded look: the columns of `LookRow`, all of them about trials of the search.

    The trials are in the order of their numbers; `p_value` is None if the verdict was not tested.
    """

    look: int
    seeds: int
    trials: tuple[int, ...]
    alpha: float
    spent: float
    p_value: float | None
    verdict: str
    decision: str
    added: "tuple[Unit, ...]" = ()


class Store(Claims):
    """One study: its record, planned trials and results. Every method may raise StorageError."""

    def forget_unbegun(self) -> bool:
        """Delete the study's rows if no trial has begun; returns whether none had."""
        mine = TrialRow.study_id == self.study_id
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            # locked, so that no worker claims one meanwhile
            trials = session.execute(
                select(TrialRow.state, TrialRow.number).where(mine).with_for_update()
            )
            if any(state != "WAITING" or number is not None for state, number in trials):
                return False
            delete_study(session, session.get_one(StudyRow, self.study_id).name)
            session.execute(delete(StudyRow).where(StudyRow.id == self.study_id))
            return True

    def study(self) -> StudyRow | None:
        """The study's record; None before it is created."""
        with translate_errors(self.url), Session(self._engine) as session:
            return session.get(StudyRow, self.study_id)

    def write_study(self, row: StudyRow) -> None:
        """Record a study, or the newer file of one that only gained trials.

        What `row` leaves out stays as it is recorded. Its command is recorded without the passwords
        of its storage URLs.
        """
        row.id, row.invocation = self.study_id, without_passwords(row.invocation)
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            lock_writers(session.connection())
            merged = session.merge(row)
            merged.version = (merged.version or 0) + 1

    def record_first(self, name: Literal["precision", "artifacts", "inputs"], value: Any) -> Any:
        """Write a column of the study, of a mapping each key, unless it has a value already.

        Returns the recorded value.
        """
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(StudyRow, self.study_id, with_for_update=True)
            recorded = getattr(row, name)
            if isinstance(value, Mapping):
                recorded = {**value, **(recorded or {})}
            if not recorded or isinstance(value, Mapping):
                setattr(row, name, recorded or value)
                row.version += 1
            return recorded or value

    def add_units(
        self, units: "Sequence[Unit]", begin_with: Set[int] | None = None
    ) -> list[tuple[str, int]]:
        """Add the trials of `units` that are not planned yet; returns planned ones not in `units`.

        If any planned trial is not in `units`, nothing is added, else those of the seeds
        `begin_with`; None for all. Those of the baseline also of the seeds that the search has.
        """
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            lock_writers(session.connection())
            mine = TrialRow.study_id == self.study_id
            trials = select(TrialRow.id, TrialRow.setting, TrialRow.seed).where(mine)
            known = dict.fromkeys((each.setting, each.seed) for each in session.execute(trials))
            wanted = {unit.key for unit in units}
            if missing := [key for key in known if key not in wanted]:
                return missing
            first_seed = {unit.setting: unit.seed for unit in reversed(units)}
            known_seeds = {seed for _, seed in known}
            for position, unit in enumerate(units):
                begins = begin_with is None or unit.seed in begin_with
                begins |= unit.role == BASELINE and unit.seed in known_seeds
                if begins and unit.key not in known:
                    leads = first_seed[unit.setting] == unit.seed
                    session.add(self._row_of(unit, position, leads=leads))
        return []

    def _row_of(self, unit: "Unit", position: int, *, leads: bool) -> TrialRow:
        return TrialRow(study_id=self.study_id, position=position, leads=leads, **vars(unit))

    def counts(self) -> dict[str, int]:
        """The number of trials in each state."""
        with translate_errors(self.url), Session(self._engine) as session:
            mine = select(TrialRow.state, func.count()).where(TrialRow.study_id == self.study_id)
            return {row[0]: row[1] for row in session.execute(mine.group_by(TrialRow.state))}

    def select_by(self, metric: str) -> str:
        """The name of the score that ranks the trials; `metric` before the study is recorded."""
        recorded = self.study()
        return recorded.select_by if recorded else metric

    def best_trial(self) -> FinishedTrial | None:
        """The complete trial of the search with the highest ranking score, of equal ones the first.

        None without one.
        """
        with translate_errors(self.url), Session(self._engine) as session:
            return find_best(session, self.study_id)

    def failures(self) -> list[FinishedTrial]:
        """The failed trials, by number."""
        return self._finished(TrialRow.state == "FAIL")

    def noted_by(self, sweep: int) -> list[FinishedTrial]:
        """The trials with a note that workers of a sweep have ended, by number."""
        return self._finished((TrialRow.sweep == sweep) & (TrialRow.note != ""))

    def _finished(self, condition: ColumnElement[bool]) -> list[FinishedTrial]:
        with translate_errors(self.url), Session(self._engine) as session:
            ranking = find_ranking(session, self.study_id)
            finished = select_finished(self.study_id, ranking).where(condition)
            rows = session.execute(finished.order_by(TrialRow.number))
            return [FinishedTrial(*row) for row in rows]

    def tried(self, first: int, numbers: Collection[int]) -> Sequence[Row[Any]]:
        """The trials of the search with `numbers`, and from number `first` on, for Optuna."""
        columns = (TrialRow.number, TrialRow.state, TrialRow.parameters, TrialRow.reports)
        mine = (TrialRow.study_id == self.study_id) & (TrialRow.role == SEARCH)
        wanted = (TrialRow.number >= first) | TrialRow.number.in_(list(numbers))
        with translate_errors(self.url), Session(self._engine) as session:
            ranking = find_ranking(session, self.study_id).label("ranking")
            found = select(*columns, TrialRow.attributes, ranking)
            return session.execute(found.where(mine, wanted)).all()

    def ended(self) -> list[Claim]:
        """The trials that have ended and cannot be resumed, without an owner."""
        ended = select(TrialRow).where(
            TrialRow.study_id == self.study_id,
            TrialRow.state.in_(FINISHED),
            TrialRow.reason_code != "interrupted",
        )
        with translate_errors(self.url), Session(self._engine) as session:
            return [Claim.of(row) for row in session.scalars(ended)]

    def check_readable(self) -> None:
        """Read what a sweep reads while it runs: trials that have not ended, the best, failures."""
        mine = TrialRow.study_id == self.study_id
        left = select(TrialRow).where(mine, TrialRow.state.not_in(FINISHED))
        with translate_errors(self.url), Session(self._engine) as session:
            for _ in session.scalars(left.execution_options(yield_per=1_000)):
                pass
        self.best_trial()
        self.failures()

    def repair_copy(self) -> int:
        """Write the study's copy in Optuna's tables as it is here; how many trials differed."""
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            lock_writers(session.connection())
            return repair_copy(session, session.get_one(StudyRow, self.study_id))

    def retry_failed(self) -> int:
        """Reset failed trials to waiting, to run under new numbers; returns their number."""
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            failed = (TrialRow.study_id == self.study_id) & (TrialRow.state == "FAIL")
            count = session.scalar(select(func.count()).select_from(TrialRow).where(failed)) or 0
            session.execute(
                update(TrialRow)
                .where(failed)
                .values(state="WAITING", deaths=0)
                .values(dict.fromkeys(("reason", "reason_code", "note", "traceback"), ""))
                .values(dict.fromkeys(("number", "began", "ended", "sweep")))
                .values(dict.fromkeys(("reports", "attributes")))
            )
            return count

    def last_look(self) -> Look | None:
        """The latest look, None before the first; the trials that it added have no parameters."""
        with translate_errors(self.url), Session(self._engine) as session:
            mine = select(LookRow).where(LookRow.study_id == self.study_id)
            row = session.scalars(mine.order_by(LookRow.look.desc()).limit(1)).first()
            if row is None:
                return None
            # imported here: what lists studies does without study files and their settings
            from mtdlab.config import Unit

            added = tuple(Unit(setting, seed, None) for setting, seed in row.added)
            fixed = (row.look, row.seeds, tuple(row.trials), row.alpha, row.spent)
            return Look(*fixed, row.p_value, row.verdict, row.decision, added)

    def record_look(self, look: Look, added: "Mapping[int, Unit]") -> bool:
        """Record a look and add the trials `added`, by their positions in the order of the study.

        They are those of the look and those of the baseline with their seeds. One transaction.
        Returns False, without a change, if another sweep has recorded this look, a trial is not
        finished, or the completed trials are not those of the look: then the look has to be
        computed again.
        """
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            session.get_one(StudyRow, self.study_id, with_for_update=True)
            if session.get(LookRow, (self.study_id, look.look)) or not self._is_of(session, look):
                return False
            lists = {
                "trials": list(look.trials),
                "added": [[unit.setting, unit.seed] for unit in look.added],
            }
            session.add(LookRow(study_id=self.study_id, **vars(look) | lists))
            for position, unit in added.items():
                session.add(self._row_of(unit, position, leads=False))
            return True

    def _is_of(self, session: Session, look: Look) -> bool:
        """Whether every trial of the search has ended and the complete ones are those of a look."""
        mine = (TrialRow.study_id == self.study_id) & (TrialRow.role == SEARCH)
        unfinished = mine & TrialRow.state.in_(("WAITING", "RUNNING"))
        if session.scalar(select(func.count()).select_from(TrialRow).where(unfinished)):
            return False
        complete = select(TrialRow.number).where(mine & (TrialRow.state == "COMPLETE"))
        return tuple(session.scalars(complete.order_by(TrialRow.number))) == look.trials

    def planned(self) -> set[tuple[str, int]]:
        """Configuration and seed of every planned trial."""
        with translate_errors(self.url), Session(self._engine) as session:
            planned = select(TrialRow.setting, TrialRow.seed)
            rows = session.execute(planned.where(TrialRow.study_id == self.study_id))
            return {(setting, seed) for setting, seed in rows}

    def begin_sweep(self, owner: Owner, max_failed: int | None = None) -> int:
        """Record a sweep that `owner` begins, and remove those that have died; returns its row.

        Its workers claim no trial when `max_failed` of the study have failed.

        Raises MtdlabError if the study was deleted since it was opened, and where the clock of the
        database is so wrong that no import takes its times.
        """
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
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
                    f"the clock of {mask(self.url)} says {row.heartbeat:.0f} seconds since 1970, "
                    "which is not between 1970 and 2099; set the clock of its machine"
                )
            return row.id

    def continue_sweep(self, row: int) -> bool:
        """Record a heartbeat of a sweep; returns whether it was requested to stop."""
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            beat = update(SweepRow).where(SweepRow.id == row).values(heartbeat=Now())
            session.execute(beat)
            return bool(session.scalar(select(SweepRow.stop).where(SweepRow.id == row)))

    def request_stop(self, row: int | None = None) -> list[Owner]:
        """Request that a sweep stops, or that all of the study do; returns the owners."""
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            rows = [
                each
                for each in session.scalars(self._sweeps())
                if row in (None, each.id) and not each.is_abandoned
            ]
            for each in rows:
                each.stop = True
            return [each.owner for each in rows]

    def end_workers(self, row: int) -> None:
        """Request that the workers of a sweep end, on whichever machine."""
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            session.execute(update(SweepRow).where(SweepRow.id == row).values(is_over=True))

    def has_ended(self, row: int) -> bool:
        """Whether a sweep has ended, or its workers were requested to."""
        with translate_errors(self.url), Session(self._engine) as session:
            found = session.get(SweepRow, row)
            return found is None or found.has_to_end

    def end_sweep(self, row: int) -> None:
        """Remove the record of a sweep."""
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
            session.execute(delete(SweepRow).where(SweepRow.id == row))

    def live_sweeps(self) -> list[Owner]:
        """The owners of the sweeps that run, as far as this machine can know."""
        with translate_errors(self.url), Session(self._engine) as session:
            rows = session.scalars(self._sweeps()).all()
            return [row.owner for row in rows if not row.is_abandoned]

    def _sweeps(self) -> Select[SweepRow]:
        return select(SweepRow).where(SweepRow.study_id == self.study_id)

    def artifacts(self) -> str | None:
        """The URL where all machines keep checkpoints and models; None: each its own."""
        row = self.study()
        return None if row is None else row.artifacts

    def record_model(self, trial: int, host: str, folder: str) -> SavedModel | None:
        """Record where the model of a trial, by its number, was saved.

        Returns the record that is no longer valid: the former one, None without one. Where that is
        the best trial's and the given one is not, it stays, and the given one is returned: of two
        machines that save at once, the later may have the lower score.
        """
        with translate_errors(self.url), Session(self._engine) as session, session.begin():
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
        """Where the model of the best trial was last saved; None where it is not recorded."""
        row = self.study()
        return None if row is None else SavedModel.of(row.model)


def open_store(url: str, name: str) -> Store | None:
    """The store of a study; None where there is none of this name. May raise StorageError."""
    with translate_errors(url), Session(writing_engine(url)) as session:
        found = session.scalar(select(StudyRow.id).where(StudyRow.name == name))
    return None if found is None else Store(url, found)


def create_store(url: str, name: str, metric: str, identity: dict[str, Any]) -> Store | None:
    """The store of a new study; None where another process has created one of this name.

    May raise StorageError.
    """
    row = StudyRow(
        name=name, metric=metric, identity=identity, file_text="", invocation=NO_INVOCATION
    )
    with translate_errors(url), Session(writing_engine(url)) as session, session.begin():
        lock_writers(session.connection())
        if session.scalar(select(StudyRow.id).where(StudyRow.name == name)) is not None:
            return None
        session.add(row)
        session.flush()
        study_id = row.id
    return Store(url, study_id)


def record_error(url: str, sweep: int, error: Mapping[str, Any]) -> None:
    """Record the error that has ended a worker of a sweep (`SweepRow.error`), unless one is."""
    with translate_errors(url), Session(writing_engine(url)) as session, session.begin():
        row = session.get(SweepRow, sweep, with_for_update=True)
        if row is not None and row.error is None:
            row.error = dict(error)


def find_study(session: Session, name: str, url: str) -> StudyRow:
    """The row of a study. Raises NothingToReport where there is no such study."""
    row = session.scalars(select(StudyRow).where(StudyRow.name == name)).first()
    if row is None:
        names = session.scalars(select(StudyRow.name))
        raise NothingToReport(f"no study {name} in {mask(url)}; {nearest(name, names)}")
    return row
