"""All that a database has of a study, in mtdlab's and in Optuna's tables, read to be checked."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from sqlalchemy import column, inspect, select, table
from sqlalchemy.orm import Session

from mtdlab.store.names import OPTUNA_VALUES
from mtdlab.store.ranking import FinishedRow, find_best, find_ranking
from mtdlab.store.store import find_study
from mtdlab.store.tables import ArrayRow, StudyRow, TrialRow

CURVES = ("curve/loss", "curve/step")
"""Every complete trial has one of these arrays: that of mtdlab's trainer, or of a program."""


@dataclass(frozen=True)
class OptunaTrial:
    """A trial in Optuna's tables; value: None before it has one."""

    number: int
    state: str
    value: float | None


@dataclass(frozen=True)
class Record:
    """What is recorded of a study.

    trials    its planned trials; with_curve: the rows of those that have a training curve.
    ranking   the score that ranks each trial, by row.
    optuna    its trials in Optuna's tables, by id; None where Optuna has no such study.
    best      the trial whose model is kept.
    """

    study: StudyRow
    trials: Sequence[TrialRow]
    with_curve: Set[int]
    ranking: Mapping[int, float | None]
    optuna: Mapping[int, OptunaTrial] | None
    best: FinishedRow | None


def read_record(session: Session, study: str, url: str) -> Record:
    """Read what is recorded of a study. Raises NothingToReport where there is no such study."""
    row = find_study(session, study, url)
    mine = TrialRow.study_id == row.id
    curved = select(ArrayRow.trial_id).join(TrialRow).where(mine, ArrayRow.name.in_(CURVES))
    ranked = select(TrialRow.id, find_ranking(session, row.id)).where(mine)
    return Record(
        row,
        session.scalars(select(TrialRow).where(mine).order_by(TrialRow.position)).all(),
        set(session.scalars(curved)),
        {row[0]: row[1] for row in session.execute(ranked)},
        _optuna_trials(session, row),
        find_best(session, row.id),
    )


def _optuna_trials(session: Session, row: StudyRow) -> dict[int, OptunaTrial] | None:
    known = inspect(session.connection())
    if not known.has_table("studies"):
        return None
    studies = table("studies", column("study_id"), column("study_name"))
    found = session.execute(
        select(studies.c.study_id).where(studies.c.study_name == row.name)
    ).scalars()
    if row.id not in list(found):
        return None
    trials = table("trials", *map(column, ("trial_id", "number", "study_id", "state")))
    joined = trials.outerjoin(OPTUNA_VALUES, trials.c.trial_id == OPTUNA_VALUES.c.trial_id)
    columns = (trials.c.trial_id, trials.c.number, trials.c.state, OPTUNA_VALUES.c.value)
    rows = session.execute(select(*columns).select_from(joined).where(trials.c.study_id == row.id))
    return {trial: OptunaTrial(*rest) for trial, *rest in rows}
