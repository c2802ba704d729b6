"""Interim looks at the verdict of a study that adds seeds until it is decided."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mtdlab.store.claims import Claims
from mtdlab.store.database import explained
from mtdlab.store.tables import LookRow, StudyRow, TrialRow

if TYPE_CHECKING:
    from mtdlab.config import Unit


@dataclass(frozen=True)
class Look:
    """A recorded look.

    look      its number, from 1; seeds: the number of seeds of the leading levels.
    trials    numbers of the complete trials that it was computed from, rising.
    alpha     nominal significance level; spent: error probability spent up to this look.
    p_value   of the verdict's test; None if not tested.
    decision  continue, or why the study ends: decided, flat, max_seeds, no scores.
    added     the trials that it added.
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


class Looks(Claims):
    """The looks of one study. Every method may raise StorageError."""

    def last_look(self) -> Look | None:
        """The latest look, None before the first; the trials that it added have no parameters."""
        with explained(self.url), Session(self._engine) as session:
            mine = select(LookRow).where(LookRow.study_id == self.study_id)
            row = session.scalars(mine.order_by(LookRow.look.desc()).limit(1)).first()
            if row is None:
                return None
            # imported here: what lists studies does without study files and their settings
            from mtdlab.config import Unit

            added = tuple(Unit(setting, seed, None) for setting, seed in row.added)
            fixed = (row.look, row.seeds, tuple(row.trials), row.alpha, row.spent)
            return Look(*fixed, row.p_value, row.verdict, row.decision, added)

    def record_look(self, look: Look, positions: Sequence[int]) -> bool:
        """Record a look and add its trials, at `positions` in the order of the study.

        One transaction. Returns False, without a change, if another sweep has recorded this look, a
        trial is not finished, or the completed trials are not those of the look: then the look has
        to be computed again.
        """
        with explained(self.url), Session(self._engine) as session, session.begin():
            session.get_one(StudyRow, self.study_id, with_for_update=True)
            if session.get(LookRow, (self.study_id, look.look)) or not self._is_of(session, look):
                return False
            session.add(
                LookRow(
                    study_id=self.study_id,
                    look=look.look,
                    seeds=look.seeds,
                    trials=list(look.trials),
                    alpha=look.alpha,
                    spent=look.spent,
                    p_value=look.p_value,
                    verdict=look.verdict,
                    decision=look.decision,
                    added=[[unit.setting, unit.seed] for unit in look.added],
                )
            )
            for position, unit in zip(positions, look.added, strict=True):
                session.add(
                    TrialRow(
                        study_id=self.study_id,
                        position=position,
                        setting=unit.setting,
                        seed=unit.seed,
                        leads=False,
                        parameters=unit.parameters,
                    )
                )
            return True

    def _is_of(self, session: Session, look: Look) -> bool:
        """Whether every planned trial has ended and the complete ones are those of a look."""
        mine = TrialRow.study_id == self.study_id
        unfinished = mine & TrialRow.state.in_(("WAITING", "RUNNING"))
        if session.scalar(select(func.count()).select_from(TrialRow).where(unfinished)):
            return False
        complete = select(TrialRow.number).where(mine & (TrialRow.state == "COMPLETE"))
        return tuple(session.scalars(complete.order_by(TrialRow.number))) == look.trials

    def planned(self) -> set[tuple[str, int]]:
        """Configuration and seed of every planned trial."""
        with explained(self.url), Session(self._engine) as session:
            planned = select(TrialRow.setting, TrialRow.seed)
            rows = session.execute(planned.where(TrialRow.study_id == self.study_id))
            return {(setting, seed) for setting, seed in rows}
