"""Workers claim, begin, release and end trials by the methods of `Claims`.

Any number of workers may write, each only to the trial that it owns. Every method is one
transaction, so that a crash leaves no trial in an intermediate state; the one that ends a trial
writes its copy in Optuna's tables too.
"""

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, func, or_, select, update
from sqlalchemy.orm import Session

from mtdlab.analysis.data.environment import Environment
from mtdlab.evaluation.items import Items
from mtdlab.settings.limits import FURTHEST, too_far
from mtdlab.settings.roles import SEARCH
from mtdlab.store.database import Database, lock_writers, open_to_write
from mtdlab.store.optuna_copy import write_trials
from mtdlab.store.owner import Owner, describe_end, is_ahead, is_dead, is_visible
from mtdlab.store.tables import (
    Array,
    ArrayRow,
    ItemsRow,
    Now,
    ScoreRow,
    StudyRow,
    SweepRow,
    TrialRow,
    items_array,
)

_LOG = logging.getLogger(__name__)
MOST_DEATHS = 3
"""A trial whose process died so many times, without a checkpoint in between, has failed."""


@dataclass(frozen=True)
class Claim:
    """A claim is a trial that `owner` owns. `parameters` is None if they are not sampled yet.

    `deaths` processes died while they ran it, since its last checkpoint. `reports` are the scores
    by step that a pruner has seen. `version` is that of the study's record when the trial was
    claimed.
    """

    row: int
    configuration: str
    seed: int
    parameters: dict[str, Any] | None
    number: int
    owner: Owner = field(default_factory=dict)
    deaths: int = 0
    role: str = SEARCH
    reports: dict[int, float] = field(default_factory=dict)
    version: int | None = None

    @classmethod
    def of(cls, row: TrialRow, version: int | None = None) -> "Claim":
        """Return the claim that is recorded of a trial."""
        claimed = (row.configuration, row.seed, row.parameters, row.number or 0, row.owner or {})
        return cls(row.id, *claimed, row.deaths, row.role, row.reported, version)


@dataclass(frozen=True)
class Result:
    """A result has the columns of `TrialRow`. Scores that are not finite are stored as NULL.

    `items` are those that the score was computed from, by task; none where they are not known.
    `note` is what a reader of the result should know.
    """

    state: str
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    environment: Environment | None = None
    traceback: str = ""
    reason_code: str = ""
    items: Mapping[str, Items] = field(default_factory=dict)
    note: str = ""


class Claims:
    """This class changes the trials of one study. Every method may raise StorageError.

    Where a claim's owner no longer owns its trial, nothing is changed, and False or None returned.
    """

    def __init__(self, url: str, study_id: int, database: Database | None = None) -> None:
        """Open the database of `url`, unless it is open already: `database`."""
        self.study_id, self.mine = study_id, TrialRow.study_id == study_id
        self.database = database or open_to_write(url)

    def claim(self, owner: Owner, sweep: int | None = None) -> Claim | None:
        """Claim the next waiting trial for `owner`; return None if none can be claimed now.

        None can be claimed where the sweep whose worker claims it was requested to stop, or too
        many trials of the study have failed for it.
        """
        with self.database.writing() as session:
            if sweep is not None and self._is_over(session, sweep):
                return None
            row = session.scalars(
                select(TrialRow)
                .where(self.mine, TrialRow.state == "WAITING")
                .where(or_(TrialRow.parameters.is_not(None), TrialRow.leads))
                .order_by(TrialRow.position)
                .limit(1)
                .with_for_update(skip_locked=True)
            ).first()
            if row is None:
                return None
            row.state, row.owner, row.sweep, row.step = "RUNNING", dict(owner), sweep, 0
            row.heartbeat = Now()
            study = StudyRow.id == self.study_id
            if row.number is None:
                counted = update(StudyRow).where(study).values(next_number=StudyRow.next_number + 1)
                row.number = session.scalar(counted.returning(StudyRow.next_number - 1))
            return Claim.of(row, session.scalar(select(StudyRow.version).where(study)))

    def _is_over(self, session: Session, sweep: int) -> bool:
        row = session.get(SweepRow, sweep)
        if row is None:
            # it was suspended for so long that it was taken for dead, and goes on
            return False
        if row.has_to_end or row.max_failed is None:
            return row.has_to_end
        return count_trials(session, self.mine, TrialRow.state == "FAIL") >= row.max_failed

    def begin(
        self,
        claim: Claim,
        parameters: dict[str, Any],
        settings: dict[str, Any] | None,
        mtd: float | None,
    ) -> bool:
        """Record a trial's settings, and its parameters for all seeds of its configuration.

        `settings` are without the seed; None where sampled parameters break a rule of the method.
        """
        with self._owned_row(claim) as (session, row):
            if row is None:
                return False
            row.settings, row.mtd, row.began = settings, mtd, row.began or Now()
            row.phase = "running" if row.is_of_program else "loading"
            if claim.parameters is None:
                same = self.mine & (TrialRow.configuration == claim.configuration)
                unknown = update(TrialRow).where(same, TrialRow.parameters.is_(None))
                session.execute(unknown.values(parameters=parameters))
            return True

    def _copy(self, session: Session, row: TrialRow) -> None:
        session.flush()
        session.refresh(row)
        write_trials(session, session.get_one(StudyRow, self.study_id), [row])

    def heartbeat(self, claim: Claim, step: int, phase: str = "") -> bool:
        """Record a heartbeat at `step`; without a phase the recorded one stays."""
        with self._owned_row(claim) as (_, row):
            if row is not None:
                row.heartbeat, row.step, row.phase = Now(), step, phase or row.phase
            return row is not None

    def report(self, claim: Claim, step: int, score: float, attributes: Mapping[str, Any]) -> None:
        """Record a score for the pruner, with Optuna's attributes."""
        with self._owned_row(claim) as (_, row):
            if row is not None:
                row.reports = {**(row.reports or {}), str(step): score}
                row.attributes = dict(attributes)

    def release(self, claim: Claim) -> bool:
        """Let a trial wait again."""
        with self._owned_row(claim) as (_, row):
            if row is not None:
                _release(row)
            return row is not None

    def release_without_steps(self, owner: Owner) -> None:
        """Undo a claim of `owner`, in which no step has passed, that may have been committed."""
        with self.database.writing() as session:
            running = select(TrialRow).where(self.mine, TrialRow.state == "RUNNING")
            unbegun = running.where(TrialRow.step == 0).with_for_update()
            for row in session.scalars(unbegun).all():
                if row.owner == dict(owner):
                    _release(row)

    def record_death(self, claim: Claim, how: str) -> str | None:
        """Count the death of the process of a trial, and return the trial's state then.

        It waits, or has failed if this was the third one (`MOST_DEATHS`) since its last checkpoint.
        `how` the process ended is for example "signal 9: Killed".
        """
        with self._owned_row(claim) as (session, row):
            if row is None:
                return None
            sweep = row.sweep
            row.deaths += 1
            _release(row)
            if row.deaths >= MOST_DEATHS:
                row.sweep = sweep
                row.state, row.reason_code, row.ended = "FAIL", "interrupted", Now()
                row.reason = f"its process died {row.deaths} times (at last: {how})"
                self._copy(session, row)
            return row.state

    def release_abandoned(self) -> None:
        """Let the trials of processes that have died wait again.

        The death of a process on this machine counts against its trial, which may have caused it.
        One that ended with its machine or container, or is silent on another machine, does not.
        """
        for row in [row for row in self.owned() if row.is_abandoned]:
            claim = Claim.of(row)
            if is_ahead(row.silent):
                _LOG.warning("a trial waits again: %s", describe_end(claim.owner, row.silent))
            if is_visible(claim.owner):
                self.record_death(claim, "it was found dead by a sweep")
            else:
                self.release(claim)

    def record_worker_death(self, process: int | None, how: str) -> bool:
        """Count the death of a worker of this machine against its trial; return if it had one."""
        for claim in map(Claim.of, self.owned()):
            if claim.owner.get("pid") == process and is_dead(claim.owner, 0.0):
                return self.record_death(claim, how) is not None
        return False

    def reset_deaths(self, claim: Claim) -> None:
        """Count a trial's deaths anew: it has a later checkpoint, from which it continues."""
        with self._owned_row(claim) as (_, row):
            if row is not None:
                row.deaths = 0

    def finish(self, claim: Claim, result: Result) -> bool:
        """Record a trial's result; one with a number that `import-study` refuses is a failure."""
        if problem := next(_problems(result), ""):
            ran_with, note = result.environment, result.note
            result = Result("FAIL", problem, environment=ran_with, reason_code="error", note=note)
        with self._owned_row(claim) as (session, row):
            if row is None:
                return False
            for name, value in result.values.items():
                setattr(row, name, finite(value))
            row.state, row.reason, row.note = result.state, result.reason, result.note
            row.reason_code, row.traceback = result.reason_code, result.traceback
            row.environment, row.owner, row.ended = result.environment, None, Now()
            for task, score in result.scores.items():
                session.merge(ScoreRow(trial_id=row.id, task=task, score=finite(score)))
            for name, values in result.arrays.items():
                session.merge(ArrayRow(trial_id=row.id, name=name, values=values))
            _record_items(session, row, result.items)
            self._copy(session, row)
            return True

    @contextmanager
    def _owned_row(self, claim: Claim) -> Iterator[tuple[Session, TrialRow | None]]:
        """Give a block a trial's row, locked; None if the claim's owner does not own the trial."""
        with self.database.writing() as session:
            row = session.get(TrialRow, claim.row, with_for_update=True)
            if row is not None and (row.state, row.owner or {}) != ("RUNNING", claim.owner):
                row = None
            yield session, row

    def add_note(self, claim: Claim, note: str) -> None:
        """Add an error that occurred after the trial's result was recorded to its note."""
        with self.database.writing() as session:
            row = session.get(TrialRow, claim.row, with_for_update=True)
            if row is not None:
                row.note = "; ".join(filter(None, (row.note, note)))
                self._copy(session, row)

    def owned(self) -> Sequence[TrialRow]:
        """Read all trials with an owner."""
        owned = select(TrialRow).where(self.mine, TrialRow.state == "RUNNING")
        with self.database.reading() as session:
            return session.scalars(owned).all()


def count_trials(session: Session, *conditions: ColumnElement[bool]) -> int:
    """Count the trials of which all conditions hold."""
    return session.scalar(select(func.count()).select_from(TrialRow).where(*conditions)) or 0


def _release(row: TrialRow) -> None:
    row.state, row.owner, row.heartbeat = "WAITING", None, None
    row.step, row.phase, row.sweep = 0, "", None


def _record_items(session: Session, trial: TrialRow, items: Mapping[str, Items]) -> None:
    """Add the items of a trial's score, by task; what all trials share is recorded once."""
    for task, scored in items.items():
        key = {"study_id": trial.study_id, "task": task, "digest": scored.digest}
        if session.get(ItemsRow, key) is None:
            # another worker may be recording the same
            lock_writers(session)
            count = len(scored.values)
            session.merge(ItemsRow(**key, kind=scored.kind, count=count, gold=scored.gold))
        name = items_array(task, scored.digest)
        session.merge(ArrayRow(trial_id=trial.id, name=name, values=scored.values))


def _problems(result: Result) -> Iterator[str]:
    """Yield what `import-study` would refuse of a result's numbers, as sentences."""
    for name, value in {**result.scores, **result.values}.items():
        if problem := too_far(name, value):
            yield problem
    arrays: dict[str, NDArray[Any]] = dict(result.arrays)
    for task, items in result.items.items():
        arrays |= {f"items of {task}": items.values}
        arrays |= {} if items.gold is None else {f"gold scores of {task}": items.gold}
    for name, array in arrays.items():
        what = f"a number of {name}"
        # neither of which regards NaN
        for most in (np.fmin.reduce(array, initial=0.0), np.fmax.reduce(array, initial=0.0)):
            if np.isinf(most):
                yield f"{what} is infinite; numbers within {FURTHEST:g} of 0 are recorded"
            elif problem := too_far(what, most):
                yield problem


def finite(value: float | None) -> float | None:
    """Return a number as it is recorded: None where it is not known or not finite."""
    return None if value is None or not math.isfinite(value) else value
