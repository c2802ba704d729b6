"""This module checks the invariants of studies in a database, one function each.

Each takes an `ExaminedStudy` and yields its problems. A new invariant is one function and its
name in `INVARIANTS`. Nothing is written: the database is opened read-only.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from mtdlab.settings.roles import SEARCH
from mtdlab.store.database import reading
from mtdlab.store.facts import has_its_rows
from mtdlab.store.optuna_copy import TRIALS, VALUES, find_copy, has_foreign, sign_of
from mtdlab.store.owner import describe_end
from mtdlab.store.ranking import FinishedTrial, SavedModel, find_best, find_ranking
from mtdlab.store.records import as_record, find_study, is_ended_unbegun
from mtdlab.store.rules import NAME
from mtdlab.store.tables import CURVES, FINISHED, STATE, ArrayRow, StudyRow, TrialRow


@dataclass(frozen=True)
class ExaminedStudy:
    """An examined study is what the database has of it, its planned trials and its best one.

    Attributes:
        with_curve: the rows of the trials that have a training curve.
        ranking: the score that ranks each trial, by row.
        optuna: state and value of its trials there, by number; None where it is not there.
        foreign: whether another program's study has its name there.
    """

    study: StudyRow
    trials: Sequence[TrialRow]
    with_curve: Set[int]
    ranking: Mapping[int, float | None]
    optuna: Mapping[int, tuple[str, float | None]] | None
    foreign: bool
    best: FinishedTrial | None
    model: SavedModel | None


def _read_study(session: Session, study: str, url: str) -> ExaminedStudy:
    """Read what is recorded of a study. Raises NothingToReport where there is no such study."""
    row = find_study(session, study, url)
    mine = TrialRow.study_id == row.id
    curved = select(ArrayRow.trial_id).join(TrialRow).where(mine, ArrayRow.name.in_(CURVES))
    ranked = select(TrialRow.id, find_ranking(session, row.id)).where(mine)
    return ExaminedStudy(
        row,
        session.scalars(select(TrialRow).where(mine).order_by(TrialRow.position)).all(),
        set(session.scalars(curved)),
        {row[0]: row[1] for row in session.execute(ranked)},
        _optuna_trials(session, row),
        has_foreign(session.connection(), study),
        find_best(session, row.id),
        SavedModel.of(row.model),
    )


def _optuna_trials(session: Session, row: StudyRow) -> dict[int, tuple[str, float | None]] | None:
    if (copy := find_copy(session, row.name)) is None:
        return None
    joined = TRIALS.outerjoin(VALUES, TRIALS.c.trial_id == VALUES.c.trial_id)
    value = sign_of(row) * VALUES.c.value
    columns = select(TRIALS.c.number, TRIALS.c.state, value).select_from(joined)
    found = session.execute(columns.where(TRIALS.c.study_id == copy))
    return {number: (state, value) for number, state, value in found}


RERUN = "rerun mtdlab sweep on its file"
OVERWRITE = f"{RERUN}, which writes mtdlab's record over Optuna's"
RESTORE = "stop every sweep and restore the database from a backup"


@dataclass(frozen=True)
class Problem:
    """A problem is an invariant that does not hold, with what was found, and how to repair it."""

    invariant: str
    found: str
    repair: str


Found = Iterator[tuple[str, str]]
"""What was found against an invariant, and how to repair it."""


def _study_has_a_name(record: ExaminedStudy) -> Found:
    if not NAME.holds(name := record.study.name):
        yield f"{name:.60} is no name of a study, and has no folder", RESTORE


def _each_configuration_and_seed_once(record: ExaminedStudy) -> Found:
    pairs = Counter((row.configuration, row.seed) for row in record.trials)
    if record.study.identity.get("sampler") == "grid":
        pairs += Counter(
            (json.dumps(row.parameters, sort_keys=True), row.seed)
            for row in record.trials
            if row.parameters is not None
        )
    for (configuration, seed), count in pairs.items():
        if count > 1:
            yield f"{configuration} with seed {seed} is planned {count} times", RESTORE


def _running_trials_have_a_living_owner(record: ExaminedStudy) -> Found:
    for row in record.trials:
        owner = row.owner or {}
        if row.state == "RUNNING" and not owner:
            yield f"{_name(row)} is running and has no owner", RERUN
        elif row.state == "RUNNING" and row.is_abandoned:
            yield f"{_name(row)} is running, and {describe_end(owner, row.silent)}", RERUN
        elif row.state != "RUNNING" and row.owner:
            yield f"{_name(row)} is {row.state} and has an owner", RERUN


def _states_are_known(record: ExaminedStudy) -> Found:
    for row in record.trials:
        if not STATE.holds(row.state):
            yield f"{_name(row)} is {row.state}", RESTORE
        elif is_ended_unbegun(as_record(row)):
            yield f"{_name(row)} is {row.state} and never began", RESTORE


def _complete_trials_have_results(record: ExaminedStudy) -> Found:
    retry = "run its study again under another name"
    for row in record.trials:
        if row.state != "COMPLETE":
            continue
        has = {
            "score": row.score is not None and math.isfinite(row.score),
            "ranking score": record.ranking.get(row.id) is not None,
            "training curve": row.id in record.with_curve,
        }
        if lacking := [name for name in has if not has[name]]:
            yield f"{_name(row)} is complete without {', '.join(lacking)}", retry


def _optuna_agrees(record: ExaminedStudy) -> Found:
    if record.foreign:
        found = "Optuna's tables have a study of this name that mtdlab did not write"
        delete = f"optuna delete-study --study-name {record.study.name}"
        yield found, f"{delete}, then {RERUN}, which writes its own"
        return
    if record.optuna is None:
        found = "Optuna's tables have no such study; it was deleted through Optuna"
        yield found, f"{RERUN}, which writes it again"
        return
    for row in record.trials:
        there = None if row.number is None else record.optuna.get(row.number)
        state, value = there or (None, None)
        if row.role != SEARCH or not {row.state, state} & {*FINISHED}:
            continue  # it has no copy yet, or never
        if there is None:
            yield f"{_name(row)} is missing in Optuna's tables", OVERWRITE
        elif state != row.state:
            yield f"{_name(row)} is {row.state}, in Optuna {state}", OVERWRITE
        elif row.state == "COMPLETE" and not _same(value, record.ranking.get(row.id)):
            values = f"{record.ranking.get(row.id)}, in Optuna {value}"
            yield f"{_name(row)} has the value {values}", OVERWRITE


def _optuna_has_no_other_trials(record: ExaminedStudy) -> Found:
    """Trials in Optuna's tables that are not planned have failed: they were run again."""
    known = {row.number for row in record.trials if row.role == SEARCH}
    for number, (state, _) in (record.optuna or {}).items():
        if number not in known and state != "FAIL":
            found = f"trial {number} is {state} in Optuna's tables and not planned"
            yield found, f"{RERUN}, which fails it"


INVARIANTS: Mapping[str, Callable[[ExaminedStudy], Found]] = {
    "a study has a name that study files allow": _study_has_a_name,
    "each configuration and seed is planned once": _each_configuration_and_seed_once,
    "every trial has a known state": _states_are_known,
    "every running trial has a living owner": _running_trials_have_a_living_owner,
    "every complete trial has its results": _complete_trials_have_results,
    "mtdlab's and Optuna's tables agree": _optuna_agrees,
    "Optuna has no trials of its own": _optuna_has_no_other_trials,
}


def examine_database(
    url: str, study: str | None
) -> tuple[tuple[Problem, ...], list[tuple[ExaminedStudy, tuple[Problem, ...]]]]:
    """Find the problems of a database, and of each study in it, or of one.

    Returns those of the database itself, and each record with its own, in the order of
    `INVARIANTS`. Raises StorageError, and NothingToReport where there is no such study.
    """
    with reading(url) as session:
        every = select(StudyRow.name).order_by(StudyRow.name)
        names = session.scalars(every).all() if study is None else [study]
        records = [_read_study(session, name, url) for name in names]
        problems = [
            tuple(
                Problem(name, *found) for name in INVARIANTS for found in INVARIANTS[name](record)
            )
            for record in records
        ]
        return tuple(_problems_of_file(session)), list(zip(records, problems, strict=True))


def _problems_of_file(session: Session) -> list[Problem]:
    """Find damaged pages of a SQLite file, and rows that belong to nothing."""
    if session.get_bind().dialect.name != "sqlite":
        return []
    problems = [
        Problem("the file is intact", f"PRAGMA quick_check: {line}", RESTORE)
        for line in session.execute(text("PRAGMA quick_check(5)")).scalars()
        if line != "ok"
    ]
    if has_its_rows(session.connection()) is False:
        repair = "export the study again"
        problems += [Problem("an export has the rows it was written with", "it has others", repair)]
    orphans = Counter((row[0], row[2]) for row in session.execute(text("PRAGMA foreign_key_check")))
    return problems + [
        Problem("every row belongs to something", f"{n} rows of {child} without {parent}", RESTORE)
        for (child, parent), n in orphans.items()
    ]


def _name(row: TrialRow) -> str:
    number = "" if row.number is None else f" (trial {row.number})"
    return f"configuration {row.configuration} seed {row.seed}{number}"


def _same(one: float | None, other: Any) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-12)
