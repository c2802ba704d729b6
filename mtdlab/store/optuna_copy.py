"""This module copies studies to Optuna's tables, for optuna-dashboard and `optuna.load_study`.

mtdlab's rows alone say what has become of a trial, and mtdlab reads the copy only to repair it. It
has the trials of the search. Each is written once, in the transaction that records its end. What
another program writes into a copy is replaced when the study is opened next; a study of another
program is never changed.
"""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    DateTime,
    Enum,
    String,
    TableClause,
    cast,
    column,
    delete,
    false,
    func,
    insert,
    inspect,
    select,
    table,
    update,
)
from sqlalchemy.orm import Session

from mtdlab.analysis.data.metric import as_read, direction_of, is_negated, read_scores
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.settings.roles import SEARCH
from mtdlab.store.ranking import find_ranking
from mtdlab.store.tables import FINISHED, ArrayRow, Number, ScoreRow, StudyRow, TrialRow


def _table(name: str, *columns: str, **typed: Any) -> TableClause:
    """Return a table of Optuna's: columns of texts and whole numbers, and those of other types."""
    return table(name, *map(column, columns), *(column(key, typed[key]) for key in typed))


_FINITE = Enum("FINITE", "INF_POS", "INF_NEG", name="trialvaluetype")
_FINITE_AT_STEP = Enum("FINITE", "INF_POS", "INF_NEG", "NAN", name="trialintermediatevaluetype")
STUDIES = _table("studies", "study_id", "study_name")
_DIRECTIONS = _table(
    "study_directions",
    "study_id",
    "objective",
    direction=Enum("NOT_SET", "MINIMIZE", "MAXIMIZE", name="studydirection"),
)
_STUDY_ATTRIBUTES = _table("study_user_attributes", "study_id", "key", "value_json")
TRIALS = _table(
    "trials",
    *("trial_id", "study_id", "number"),
    state=Enum("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING", name="trialstate"),
    datetime_start=DateTime(),
    datetime_complete=DateTime(),
)
_PARAMETERS = _table("trial_params", "trial_id", "param_name", "param_value", "distribution_json")
VALUES = _table("trial_values", "trial_id", "objective", value=Number(), value_type=_FINITE)
_INTERMEDIATE = _table(
    "trial_intermediate_values",
    *("trial_id", "step"),
    intermediate_value=Number(),
    intermediate_value_type=_FINITE_AT_STEP,
)
_ATTRIBUTES = _table("trial_user_attributes", "trial_id", "key", "value_json")
_OF_TRIAL = (_PARAMETERS, VALUES, _INTERMEDIATE, _ATTRIBUTES)
TABLES = (STUDIES, _DIRECTIONS, _STUDY_ATTRIBUTES, TRIALS, *_OF_TRIAL)
REPORTED_STEP, REPORTED_SCORE = "reported/step", "reported/score"
"""Arrays of a trial that ended early: the evaluations that it had reported."""
ROUNDING = 1e-9
"""Scores are below 100; a value that differs by less is the same one."""
_AT_ONCE = 500


def has_tables(connection: Connection) -> bool:
    """Return whether a database has all of Optuna's tables of studies, made one after the other."""
    known = inspect(connection)
    return all(known.has_table(part.name) for part in (STUDIES, _DIRECTIONS, _STUDY_ATTRIBUTES))


def find_copy(session: Session, name: str) -> int | None:
    """Read Optuna's id of the copy of a study; None without one, and without Optuna's tables."""
    if not has_tables(session.connection()):
        return None
    named = STUDIES.c.study_name == name
    return session.scalar(select(STUDIES.c.study_id).where(named, _is_copy()))


def has_foreign(connection: Connection, name: str) -> bool:
    """Return whether Optuna's tables have a study of this name that is no recorded one's copy."""
    if not has_tables(connection):
        return False
    is_ours: ColumnElement[bool] = false()
    if inspect(connection).has_table(StudyRow.__tablename__):
        is_ours = _is_copy() & STUDIES.c.study_name.in_(select(StudyRow.name))
    # one statement, since another sweep may create or replace the study meanwhile
    named = STUDIES.c.study_name == name
    return connection.scalar(select(STUDIES.c.study_id).where(named, ~is_ours)) is not None


def _is_copy() -> ColumnElement[bool]:
    """Return whether a study has one objective, and an attribute that only mtdlab writes."""
    directions, attributes = _DIRECTIONS.c, _STUDY_ATTRIBUTES.c
    is_directed = cast(directions.direction, String).in_(("MAXIMIZE", "MINIMIZE"))
    others = select(directions.study_id).where(~(is_directed & (directions.objective == 0)))
    marked = select(attributes.study_id).where(attributes.key == "select_by")
    return STUDIES.c.study_id.in_(marked) & STUDIES.c.study_id.not_in(others)


def sign_of(study: StudyRow) -> float:
    """Return what turns a score that ranks trials into the one that was read."""
    return -1.0 if is_negated(study.select_by) else 1.0


def write_copy(session: Session, study: StudyRow) -> int:
    """Create the copy of a study where it is missing, and its attributes; return Optuna's id."""
    found = find_copy(session, study.name)
    if found is None:
        session.execute(insert(STUDIES).values(study_name=study.name))
        named = select(STUDIES.c.study_id).where(STUDIES.c.study_name == study.name)
        found = session.execute(named).scalar_one()
        of_study = {"study_id": found, "direction": "NOT_SET", "objective": 0}
        session.execute(insert(_DIRECTIONS).values(of_study))
    # of an earlier copy too: another program may have changed it
    mine = update(_DIRECTIONS).where(_DIRECTIONS.c.study_id == found)
    session.execute(mine.values(direction=direction_of(study.select_by).upper()))
    names = map(as_read, (study.metric, study.select_by))
    attributes = dict(zip(("metric", "select_by"), names, strict=True)) | {"folder": study.folder}
    known = _STUDY_ATTRIBUTES.c.key.in_(attributes)
    session.execute(delete(_STUDY_ATTRIBUTES).where(_STUDY_ATTRIBUTES.c.study_id == found, known))
    session.execute(insert(_STUDY_ATTRIBUTES), _attribute_rows({"study_id": found}, attributes))
    return found


def _attribute_rows(of: dict[str, int], values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return attributes of the study, or the trial, `of` which they are, as rows of Optuna's."""
    return [of | {"key": key, "value_json": json.dumps(value)} for key, value in values.items()]


def delete_copy(session: Session, name: str) -> None:
    """Delete the copy of a study, if there is one."""
    if (found := find_copy(session, name)) is None:
        return
    trials = select(TRIALS.c.trial_id).where(TRIALS.c.study_id == found)
    _delete_trials(session, list(session.scalars(trials)))
    system = _table("study_system_attributes", "study_id")
    for part in (_DIRECTIONS, _STUDY_ATTRIBUTES, system, STUDIES):
        session.execute(delete(part).where(part.c.study_id == found))


def _delete_trials(session: Session, ids: Sequence[int]) -> None:
    # of trials, which only other programs write
    others = (_table(name, "trial_id") for name in ("trial_system_attributes", "trial_heartbeats"))
    tables = (*_OF_TRIAL, *others, TRIALS)
    for start in range(0, len(ids), _AT_ONCE):
        for part in tables:
            session.execute(delete(part).where(part.c.trial_id.in_(ids[start : start + _AT_ONCE])))


def write_trials(session: Session, study: StudyRow, rows: Sequence[TrialRow]) -> None:
    """Write trials that have ended to Optuna's tables, over what has their numbers there.

    Trials that are none of the search are left out. Where the study was deleted through Optuna
    nothing is written: it is written again when the study is opened next.
    """
    rows = [row for row in rows if row.role == SEARCH]
    if not rows or (study_id := find_copy(session, study.name)) is None:
        return
    ids = _write_states(session, study_id, rows)
    for part in _OF_TRIAL:
        # left of trials that were deleted by hand, whose ids SQLite gives again
        session.execute(delete(part).where(part.c.trial_id.in_(ids.values())))
    evaluations = _evaluations(session, rows)
    ranking, sign = _values(session, study, rows, evaluations), sign_of(study)
    scores = _scores(session, rows)
    found: dict[TableClause, list[dict[str, Any]]] = {part: [] for part in _OF_TRIAL}
    for row in rows:
        of_trial = {"trial_id": ids[row.id]}
        found[_PARAMETERS] += [of_trial | pair for pair in _parameters(study, row.parameters or {})]
        if row.id in ranking:
            value = {"value": sign * ranking[row.id], "value_type": "FINITE", "objective": 0}
            found[VALUES].append(of_trial | value)
        for step, score in evaluations[row.id].items():
            value = {"intermediate_value": sign * score, "intermediate_value_type": "FINITE"}
            found[_INTERMEDIATE].append(of_trial | {"step": step} | value)
        found[_ATTRIBUTES] += _attribute_rows(of_trial, _attributes(row, scores.get(row.id, {})))
    for target, values in found.items():
        if values:
            session.execute(insert(target), values)


def find_differing(session: Session, study: StudyRow, copy: int) -> list[TrialRow]:
    """Read the trials that have ended and are missing, or otherwise, in Optuna's tables."""
    ranking = find_ranking(session, study.id)
    state, value = cast(TRIALS.c.state, String), sign_of(study) * VALUES.c.value
    differs = func.abs(func.coalesce(value, ranking + 1) - ranking) > ROUNDING
    same = (TRIALS.c.study_id == copy) & (TRIALS.c.number == TrialRow.number)
    missing = TRIALS.c.trial_id.is_(None)
    found = (
        select(TrialRow)
        .outerjoin(TRIALS, same)
        .outerjoin(VALUES, VALUES.c.trial_id == TRIALS.c.trial_id)
        .where(TrialRow.study_id == study.id, TrialRow.state.in_(FINISHED))
        .where(TrialRow.role == SEARCH)
        .where(missing | (state != TrialRow.state) | ((state == "COMPLETE") & differs))
    )
    return list(session.scalars(found.order_by(TrialRow.number)))


def find_foreign(session: Session, study: StudyRow, copy: int) -> Sequence[int]:
    """Read Optuna's ids of the trials in its tables, but failed ones, that are not the study's."""
    numbered = (TrialRow.study_id == study.id) & TrialRow.number.is_not(None)
    numbered &= TrialRow.role == SEARCH
    planned = TRIALS.c.number.in_(select(TrialRow.number).where(numbered))
    found = select(TRIALS.c.trial_id).where(TRIALS.c.study_id == copy, ~planned)
    return session.scalars(found.where(cast(TRIALS.c.state, String) != "FAIL")).all()


def repair_copy(session: Session, study: StudyRow) -> int:
    """Write the copy of a study as mtdlab's rows are; return how many trials differed.

    Those that are not the study's have failed then, and those that another program gave a number
    of the study's are deleted. A missing copy is written anew.
    """
    is_new = find_copy(session, study.name) is None
    copy = write_copy(session, study)
    # Optuna numbers by count: a later trial may have the number of an earlier one
    first = select(func.min(TRIALS.c.trial_id)).where(TRIALS.c.study_id == copy)
    later = TRIALS.c.trial_id.not_in(first.group_by(TRIALS.c.number))
    again = select(TRIALS.c.trial_id).where(TRIALS.c.study_id == copy, later)
    _delete_trials(session, doubled := session.scalars(again).all())
    differing, foreign = find_differing(session, study, copy), find_foreign(session, study, copy)
    for start in range(0, len(differing), _AT_ONCE):
        write_trials(session, study, differing[start : start + _AT_ONCE])
    session.execute(update(TRIALS).where(TRIALS.c.trial_id.in_(foreign)).values(state="FAIL"))
    return 0 if is_new else len(doubled) + len(differing) + len(foreign)


def _write_states(session: Session, study_id: int, rows: Sequence[TrialRow]) -> dict[int, int]:
    """Write state and times of trials; return their ids in Optuna's tables by ours."""
    mine = (TRIALS.c.study_id == study_id) & TRIALS.c.number.in_([row.number for row in rows])
    _delete_trials(session, session.scalars(select(TRIALS.c.trial_id).where(mine)).all())
    values = [
        {
            "study_id": study_id,
            "number": row.number,
            "state": row.state,
            # local, without its zone
            "datetime_start": None if row.began is None else datetime.fromtimestamp(row.began),
            "datetime_complete": None if row.ended is None else datetime.fromtimestamp(row.ended),
        }
        for row in rows
    ]
    written = insert(TRIALS).returning(TRIALS.c.number, TRIALS.c.trial_id)
    found = {row.number: row.trial_id for row in session.execute(written, values)}
    return {row.id: found[row.number] for row in rows}


def _values(
    session: Session,
    study: StudyRow,
    rows: Sequence[TrialRow],
    evaluations: Mapping[int, Mapping[int, float]],
) -> dict[int, float]:
    """Read what Optuna ranks trials by: the ranking score, or a pruned trial's last evaluation."""
    complete = [row.id for row in rows if row.state == "COMPLETE"]
    ranked = select(TrialRow.id, find_ranking(session, study.id)).where(TrialRow.id.in_(complete))
    found = {trial: value for trial, value in session.execute(ranked) if value is not None}
    pruned = (row.id for row in rows if row.state == "PRUNED" and evaluations[row.id])
    return found | {trial: evaluations[trial][max(evaluations[trial])] for trial in pruned}


def _evaluations(session: Session, rows: Sequence[TrialRow]) -> dict[int, dict[int, float]]:
    """Read the scores by step that trials recorded, by trial; a pruner's are not rounded."""
    names = ("curve/score", "curve/step", REPORTED_SCORE, REPORTED_STEP)
    wanted = ArrayRow.trial_id.in_([row.id for row in rows])
    arrays: dict[int, dict[str, Any]] = {}
    for array in session.scalars(select(ArrayRow).where(wanted, ArrayRow.name.in_(names))):
        arrays.setdefault(array.trial_id, {})[array.name] = array.values
    found = {}
    for trial, known in arrays.items():
        scores = known.get("curve/score", known.get(REPORTED_SCORE, ()))
        steps = known.get("curve/step", known.get(REPORTED_STEP, range(1, len(scores) + 1)))
        pairs = zip(steps, scores, strict=False)
        found[trial] = {int(step): float(score) for step, score in pairs if math.isfinite(score)}
    return {row.id: found.get(row.id, {}) | row.reported for row in rows}


def _scores(session: Session, rows: Sequence[TrialRow]) -> dict[int, dict[str, float]]:
    complete = [row.id for row in rows if row.state == "COMPLETE"]
    found: dict[int, dict[str, float]] = {}
    for score in session.scalars(select(ScoreRow).where(ScoreRow.trial_id.in_(complete))):
        if score.score is not None:
            found.setdefault(score.trial_id, {}).update(read_scores({score.task: score.score}))
    return found


def _attributes(row: TrialRow, scores: Mapping[str, float]) -> dict[str, Any]:
    """Return what optuna-dashboard shows of a trial, by name; other settings are one attribute."""
    settings = row.settings or {}
    shown = {name: settings[name] for name in PARTS if name in settings}
    others = {name: value for name, value in settings.items() if name not in PARTS}
    said = {"reason": row.reason, "note": row.note}
    attributes = {"mtd": row.mtd, "seed": row.seed, **shown, **scores, "settings": others}
    return attributes | {name: text for name, text in said.items() if text}


def _parameters(study: StudyRow, values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the searched parameters of a trial as rows of Optuna's."""
    if not values or not study.distributions:
        return []
    # its import takes a second, and a study without parameters does without
    from optuna.distributions import json_to_distribution

    return [
        {
            "param_name": name,
            "param_value": json_to_distribution(text).to_internal_repr(values[name]),
            "distribution_json": text,
        }
        for name, text in study.distributions.items()
        if name in values
    ]
