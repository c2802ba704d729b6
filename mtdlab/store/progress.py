"""The progress of a study, read while workers write: it never writes and never blocks them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mtdlab.store.database import explained, reading_engine
from mtdlab.store.owner import is_dead
from mtdlab.store.setting_names import is_of_program
from mtdlab.store.tables import TrialRow

FINISHED = ("COMPLETE", "FAIL", "PRUNED")


@dataclass(frozen=True)
class RunningTrial:
    """A trial that some process is training: its parameters, and `step` of `steps`.

    steps           None where a program of the user has no such setting.
    evaluate_every  steps between two evaluations; None for a program.
    """

    row: int
    seed: int
    parameters: Mapping[str, Any]
    step: int
    steps: int | None
    evaluate_every: int | None

    @property
    def phase(self) -> str:
        """What the process does: loading, training or evaluating.

        A worker records the step of an evaluation when it begins.
        """
        if self.evaluate_every is None:
            return f"step {self.step:,}" if self.step else "running"
        if self.step == 0:
            return "loading"
        is_evaluated = self.step == self.steps or self.step % self.evaluate_every == 0
        return "evaluating" if is_evaluated else "training"


def living_state(row: TrialRow) -> str:
    """A trial's state; WAITING for a running one whose process has died (`is_dead`).

    Such a trial is still recorded as running until the next sweep.
    """
    if row.state == "RUNNING" and is_dead(row.owner or {}, row.silent):
        return "WAITING"
    return row.state


class ProgressReader:
    """Reads one study's progress. Every method may raise StorageError."""

    def __init__(self, url: str, study_id: int) -> None:
        self.url = url
        self.study_id = study_id
        self._engine = reading_engine(url)

    def read(self) -> tuple[list[RunningTrial], int]:
        """The trials that are being trained, and the number of finished ones."""
        of_study = TrialRow.study_id == self.study_id
        with explained(self.url), Session(self._engine) as session:
            rows = session.scalars(
                select(TrialRow).where(
                    of_study, TrialRow.state == "RUNNING", TrialRow.settings.is_not(None)
                )
            )
            running = [_running(row) for row in rows]
            finished = select(func.count()).where(of_study, TrialRow.state.in_(FINISHED))
            return running, session.scalar(finished) or 0


def _running(row: TrialRow) -> RunningTrial:
    settings = row.settings or {}
    # when a program evaluates is not known, whatever its settings are called
    every = None if is_of_program(settings) else settings.get("evaluate_every")
    steps = settings.get("steps")
    return RunningTrial(row.id, row.seed, row.parameters or {}, row.step, steps, every)
