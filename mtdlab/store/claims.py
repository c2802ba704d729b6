"""Claiming, heartbeat, release and completion of trials by workers.

Any number of workers may write, each only to the trial that it owns. Every method is one
transaction, so that a crash leaves no trial in an intermediate state.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from mtdlab.store.database import explained, writing_engine
from mtdlab.store.tables import Array, ArrayRow, ScoreRow, TrialRow

Owner = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """A trial that the caller owns. `parameters` is None if they have not been sampled yet."""

    row: int
    setting: str
    seed: int
    parameters: dict[str, Any] | None
    optuna_id: int | None
    number: int | None


@dataclass(frozen=True)
class OwnedTrial:
    """A trial with its owner and the time of its last heartbeat (seconds since the epoch)."""

    row: int
    optuna_id: int | None
    owner: Owner
    heartbeat: float


@dataclass(frozen=True)
class Result:
    """The result of a trial. Numbers that are not finite are stored as NULL.

    traceback  Python's, of the error that a trial failed with.
    """

    state: str
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    traceback: str = ""


class Claims:
    """The trials of one study. Every method may raise StorageError."""

    def __init__(self, url: str, study_id: int) -> None:
        self.url = url
        self.study_id = study_id
        self._engine = writing_engine(url)

    def claim(self, owner: Owner) -> Claim | None:
        """Claim the next waiting trial for `owner`; None if none can be claimed now."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.scalars(
                select(TrialRow)
                .where(TrialRow.study_id == self.study_id, TrialRow.state == "WAITING")
                .where(or_(TrialRow.parameters.is_not(None), TrialRow.leads))
                .order_by(TrialRow.position)
                .limit(1)
                .with_for_update(skip_locked=True)
            ).first()
            if row is None:
                return None
            row.state, row.owner, row.heartbeat, row.step = "RUNNING", dict(owner), time.time(), 0
            return Claim(row.id, row.setting, row.seed, row.parameters, row.optuna_id, row.number)

    def begin(
        self,
        claim: Claim,
        optuna_id: int,
        number: int,
        parameters: dict[str, Any],
        settings: dict[str, Any] | None,
        mtd: float | None,
    ) -> None:
        """Record a trial's settings, and its parameters for all seeds of its configuration."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            session.execute(
                update(TrialRow)
                .where(TrialRow.study_id == self.study_id, TrialRow.setting == claim.setting)
                .values(parameters=parameters)
            )
            session.execute(
                update(TrialRow)
                .where(TrialRow.id == claim.row)
                .values(optuna_id=optuna_id, number=number, settings=settings, mtd=mtd)
            )

    def heartbeat(self, claim: Claim, owner: Owner, step: int) -> bool:
        """Record a heartbeat at `step`; False if `owner` no longer owns the trial."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(TrialRow, claim.row)
            if not _owned(row, owner):
                return False
            row.heartbeat, row.step = time.time(), step
            return True

    def release(self, row_id: int, owner: Owner) -> bool:
        """Reset a trial to waiting; False if `owner` does not own it."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(TrialRow, row_id)
            if not _owned(row, owner):
                return False
            row.state, row.owner, row.heartbeat, row.step = "WAITING", None, None, 0
            return True

    def finish(self, claim: Claim, owner: Owner, result: Result) -> bool:
        """Record a trial's result in one transaction; False if `owner` no longer owns the trial."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(TrialRow, claim.row)
            if not _owned(row, owner):
                return False
            for name, value in result.values.items():
                setattr(row, name, _finite(value))
            row.state, row.reason, row.owner = result.state, result.reason, None
            row.traceback = result.traceback
            row.environment = dict(result.environment)
            for task, score in result.scores.items():
                session.merge(ScoreRow(trial_id=row.id, task=task, score=_finite(score)))
            for name, values in result.arrays.items():
                session.merge(ArrayRow(trial_id=row.id, name=name, values=values))
            return True

    def add_note(self, claim: Claim, note: str) -> None:
        """Record an error that occurred after the trial's result was recorded."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            session.execute(update(TrialRow).where(TrialRow.id == claim.row).values(note=note))

    def owned(self) -> list[OwnedTrial]:
        """All trials with an owner."""
        with explained(self.url), Session(self._engine) as session:
            rows = session.scalars(
                select(TrialRow).where(
                    TrialRow.study_id == self.study_id, TrialRow.state == "RUNNING"
                )
            )
            return [
                OwnedTrial(row.id, row.optuna_id, row.owner or {}, row.heartbeat or 0.0)
                for row in rows
            ]


def _owned(row: TrialRow, owner: Owner) -> bool:
    return row.state == "RUNNING" and row.owner == dict(owner)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
