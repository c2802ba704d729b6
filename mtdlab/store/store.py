"""The study database, as the sweep writes it.

Who may write: any number of workers, each only to the trial it owns; every method is one
transaction, so a crash leaves a trial either claimed or released, finished or not.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from mtdlab.config import Unit
from mtdlab.store.database import explained, writing_engine
from mtdlab.store.tables import Array, ArrayRow, ScoreRow, StudyRow, TrialRow
from mtdlab.store.watch import FINISHED

Owner = Mapping[str, Any]


@dataclass(frozen=True)
class Claim:
    """A trial that the caller now owns. `parameters` is None where it has to sample them."""

    row: int
    setting: str
    seed: int
    parameters: dict[str, Any] | None
    optuna_id: int | None
    number: int | None


@dataclass(frozen=True)
class Running:
    """A trial that somebody owns, and when its owner was last heard of (seconds, epoch)."""

    row: int
    optuna_id: int | None
    owner: Owner
    heartbeat: float


@dataclass(frozen=True)
class Result:
    """How a trial ended. A number that is not finite is stored as missing."""

    state: str
    reason: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


class Store:
    """One study's rows. Every method may raise StorageError."""

    def __init__(self, url: str, study_id: int) -> None:
        self.url = url
        self.study_id = study_id
        self._engine = writing_engine(url)

    def forget_deleted(self, name: str, optuna_ids: Callable[[], Set[int]]) -> None:
        """Drop rows of a study that was deleted through Optuna, which leaves ours behind.

        SQLite gives a deleted study's id to the next one: rows none of whose trials Optuna has
        any more are another study's. Ours are read first, so that a trial that another worker
        begins meanwhile cannot be taken for a deleted one.
        """
        mine = or_(StudyRow.id == self.study_id, StudyRow.name == name)
        with explained(self.url), Session(self._engine) as session, session.begin():
            begun = select(TrialRow.optuna_id).join(StudyRow).where(mine)
            known = set(session.scalars(begun.where(TrialRow.optuna_id.is_not(None))))
        if known and known.isdisjoint(optuna_ids()):
            with explained(self.url), Session(self._engine) as session, session.begin():
                session.execute(delete(StudyRow).where(mine))

    def study(self) -> StudyRow | None:
        """What was recorded of the study when it began, None before that."""
        with explained(self.url), Session(self._engine) as session:
            return session.get(StudyRow, self.study_id)

    def write_study(
        self, name: str, metric: str, identity: dict[str, Any], text: str, command: str
    ) -> None:
        """Record a study, or the newer file of one that only gained trials."""
        row = StudyRow(
            id=self.study_id,
            name=name,
            metric=metric,
            identity=identity,
            file_text=text,
            command=command,
        )
        with explained(self.url), Session(self._engine) as session, session.begin():
            session.merge(row)

    def add_units(self, units: Sequence[Unit]) -> list[tuple[str, int]]:
        """Plan trials that are not planned yet; returns those planned that `units` lacks."""
        with explained(self.url), Session(self._engine) as session, session.begin():
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
                if (unit.setting, unit.seed) not in known:
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
        """How many trials are in each state."""
        with explained(self.url), Session(self._engine) as session:
            rows = session.execute(
                select(TrialRow.state, func.count())
                .where(TrialRow.study_id == self.study_id)
                .group_by(TrialRow.state)
            )
            return {row[0]: row[1] for row in rows}

    def claim(self, owner: Owner) -> Claim | None:
        """Take the next waiting trial for `owner`; None where there is none to take now."""
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
        """Record what a claimed trial is; its parameters become those of its other seeds."""
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

    def beat(self, claim: Claim, owner: Owner, step: int) -> bool:
        """Say that the trial is alive at `step`; False where another owner has it by now."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(TrialRow, claim.row)
            if not _owned(row, owner):
                return False
            row.heartbeat, row.step = time.time(), step
            return True

    def release(self, row_id: int, owner: Owner) -> bool:
        """Put a trial back for anyone to take; False where `owner` does not have it."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(TrialRow, row_id)
            if not _owned(row, owner):
                return False
            row.state, row.owner, row.heartbeat, row.step = "WAITING", None, None, 0
            return True

    def finish(self, claim: Claim, owner: Owner, result: Result) -> bool:
        """Record how a trial ended, all of it or nothing; False where another owner has it."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            row = session.get_one(TrialRow, claim.row)
            if not _owned(row, owner):
                return False
            for name, value in result.values.items():
                setattr(row, name, _finite(value))
            row.state, row.reason, row.owner = result.state, result.reason, None
            row.environment = dict(result.environment)
            for task, score in result.scores.items():
                session.merge(ScoreRow(trial_id=row.id, task=task, score=_finite(score)))
            for name, values in result.arrays.items():
                session.merge(ArrayRow(trial_id=row.id, name=name, values=values))
            return True

    def best_score(self) -> float | None:
        """The highest score of a finished trial, None before there is one."""
        with explained(self.url), Session(self._engine) as session:
            done = (TrialRow.study_id == self.study_id) & (TrialRow.state == "COMPLETE")
            return session.scalar(select(func.max(TrialRow.score)).where(done))

    def running(self) -> list[Running]:
        """Every trial that somebody owns."""
        with explained(self.url), Session(self._engine) as session:
            rows = session.scalars(
                select(TrialRow).where(
                    TrialRow.study_id == self.study_id, TrialRow.state == "RUNNING"
                )
            )
            return [
                Running(row.id, row.optuna_id, row.owner or {}, row.heartbeat or 0.0)
                for row in rows
            ]

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

    def finished(self) -> dict[int, tuple[str, float | None]]:
        """State and score of every finished trial, by Optuna's trial id."""
        with explained(self.url), Session(self._engine) as session:
            rows = session.execute(
                select(TrialRow.optuna_id, TrialRow.state, TrialRow.score).where(
                    TrialRow.study_id == self.study_id, TrialRow.state.in_(FINISHED)
                )
            )
            return {optuna_id: (state, score) for optuna_id, state, score in rows if optuna_id}

    def retry_failed(self) -> int:
        """Put failed trials back, to run as new Optuna trials; returns how many."""
        with explained(self.url), Session(self._engine) as session, session.begin():
            failed = (TrialRow.study_id == self.study_id) & (TrialRow.state == "FAIL")
            count = session.scalar(select(func.count()).select_from(TrialRow).where(failed)) or 0
            session.execute(
                update(TrialRow)
                .where(failed)
                .values(state="WAITING", reason="", optuna_id=None, number=None)
            )
            return count


def _owned(row: TrialRow, owner: Owner) -> bool:
    return row.state == "RUNNING" and row.owner == dict(owner)


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
