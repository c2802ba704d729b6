"""A look at a study while others work on it: it never writes, and never makes them wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mtdlab.store.database import explained, reading_engine
from mtdlab.store.tables import TrialRow

FINISHED = ("COMPLETE", "FAIL", "PRUNED")


@dataclass(frozen=True)
class Working:
    """A trial at work, in whichever process: its parameters, and `step` of `steps`."""

    row: int
    seed: int
    parameters: Mapping[str, Any]
    step: int
    steps: int


class Watcher:
    """Reads one study's progress. Every method may raise StorageError."""

    def __init__(self, url: str, study_id: int) -> None:
        self.url = url
        self.study_id = study_id
        self._engine = reading_engine(url)

    def look(self) -> tuple[list[Working], int]:
        """The trials at work that have begun, and how many are finished."""
        mine = TrialRow.study_id == self.study_id
        with explained(self.url), Session(self._engine) as session:
            rows = session.scalars(
                select(TrialRow).where(
                    mine, TrialRow.state == "RUNNING", TrialRow.settings.is_not(None)
                )
            )
            working = [
                Working(
                    row.id,
                    row.seed,
                    row.parameters or {},
                    row.step,
                    int((row.settings or {})["steps"]),
                )
                for row in rows
            ]
            finished = select(func.count()).where(mine, TrialRow.state.in_(FINISHED))
            return working, session.scalar(finished) or 0
