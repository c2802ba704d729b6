"""What the rows of a study from another file may hold: every column, and how rows fit together.

An exported file may have been changed by anyone. `check_records` refuses it before a row is
written; a new column of a table needs its line in `COLUMNS`.
"""

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import DeclarativeBase, Session

from analysis.data.frames import TRIAL_COLUMNS
from mtdlab.config.study import is_study_name
from mtdlab.errors import StorageError
from mtdlab.store.items import PREFIX, name_of, problem_of
from mtdlab.store.store import find_study
from mtdlab.store.tables import (
    FINISHED,
    REASON_CODES,
    ArrayRow,
    ItemsRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
)

Row = dict[str, Any]
LARGEST = 2**31 - 1
"""Of PostgreSQL's integers, as which whole numbers are stored."""
LONGEST = 10_000_000
"""Characters of a text."""
FURTHEST = 1e100
"""From 0, of a number with a fraction: its square is finite."""
DEEPEST = 40
"""Levels of a JSON value."""
STATES = ("WAITING", "RUNNING", *FINISHED)
_ARRAY = re.compile(
    r"curve/\w+|spectrum/\w+|probe/(step|baseline|cosine/\d{1,9})|items/.{1,200}", re.DOTALL
)


@dataclass(frozen=True)
class Records:
    """All rows of a study as dictionaries by column."""

    study: Row
    trials: list[Row]
    scores: list[Row]
    arrays: list[Row]
    items: list[Row]
    looks: list[Row]
    plans: list[Row]


@dataclass(frozen=True)
class Shape:
    """What a value may be, in words for a message, and whether a value is it."""

    what: str
    holds: Callable[[Any], bool]


def _optional(shape: Shape) -> Shape:
    return Shape(f"{shape.what} or empty", lambda value: value is None or shape.holds(value))


def _one_of(*values: str) -> Shape:
    return Shape(f"one of {', '.join(filter(None, values))}", lambda value: value in values)


def _listed(shape: Shape) -> Shape:
    holds: Callable[[Any], bool] = lambda value: (  # noqa: E731
        isinstance(value, list) and all(map(shape.holds, value))
    )
    return Shape(f"a list, each {shape.what}", holds)


def _named(shape: Shape, **required: Shape) -> Shape:
    """A JSON object whose values have a shape, and those of some names, if required, another."""

    def holds(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and required.keys() <= value.keys()
            and all(required.get(name, shape).holds(each) for name, each in value.items())
        )

    names = f" with {', '.join(required)}" if required else ""
    return Shape(f"an object{names}, each {shape.what}", holds)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= (FURTHEST if isinstance(value, float) else 2**63 - 1)


def _is_json(value: Any, depth: int = 0) -> bool:
    if depth > DEEPEST:
        return False
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return all(_is_json(part, depth + 1) for part in parts)
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _is_command(value: Any) -> bool:
    try:
        shlex.split(value)
    except (ValueError, AttributeError, TypeError):
        return False
    return isinstance(value, str) and len(value) <= LONGEST


def _is_distribution(value: Any) -> bool:
    # imported here: store works without it, and its import takes a second
    from optuna.distributions import json_to_distribution

    try:
        json_to_distribution(value)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False
    return True


def _is_settings(value: Any) -> bool:
    """Whether columns of numbers hold numbers, or nothing, as the MTD of a method without one."""
    return _SETTINGS.holds(value) and all(
        TRIAL_COLUMNS.get(name, "str") == "str" or each is None or _is_number(each)
        for name, each in value.items()
    )


WHOLE = Shape(f"a whole number from 0 to {LARGEST}", _is_whole)
NUMBER = Shape(f"a number within {FURTHEST:g} of 0", _is_number)
FRACTION = Shape("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1)
LEVEL = Shape("a number between 0 and 1", lambda value: _is_number(value) and 0 < value < 1)
TIME = Shape(
    "a time in seconds, from 1970 to 2100", lambda value: _is_number(value) and 0 <= value <= 4.1e9
)
FLAG = Shape("true or false", lambda value: isinstance(value, bool))
TEXT = Shape("text", lambda value: isinstance(value, str) and len(value) <= LONGEST)
NAME = Shape("a name of a study", lambda value: isinstance(value, str) and is_study_name(value))
COMMAND = Shape("a command with closed quotes", _is_command)
JSON = Shape("JSON with finite numbers", _is_json)
SCALAR = Shape(
    "text, a finite number, true, false or null",
    lambda value: not isinstance(value, dict | list) and _is_json(value),
)
ARRAY = Shape(
    "a vector without infinity",
    lambda value: isinstance(value, np.ndarray) and not np.isinf(value).any(),
)
SHA256 = Shape("a SHA-256", lambda value: re.fullmatch("[0-9a-f]{64}", str(value)) is not None)
DISTRIBUTION = Shape("a distribution of Optuna's", _is_distribution)

_SETTINGS = _named(SCALAR)
_SETTING = _named(TEXT, symbol=TEXT, unit=TEXT, description=TEXT, default=SCALAR)
_METHOD = _named(TEXT, title=TEXT, settings=_named(_SETTING))
_IDENTITY = _named(JSON, sampler=TEXT, trainer=_named(JSON), search=_named(TEXT))
_PLAN = _named(JSON, study=TEXT, metric=TEXT, margin=NUMBER, alpha=LEVEL, looks=_listed(WHOLE))
_MODEL = _named(TEXT, trial=WHOLE, host=TEXT, folder=TEXT)

COLUMNS: Mapping[str, Mapping[str, Shape]] = {
    StudyRow.__tablename__: {
        "id": WHOLE,
        "name": NAME,
        "metric": TEXT,
        "identity": _IDENTITY,
        "file_text": TEXT,
        "command": COMMAND,
        "description": TEXT,
        "imports": _named(TEXT),
        "methods": _named(_METHOD),
        "precision": _optional(_one_of("float32", "bfloat16")),
        "model": _optional(_MODEL),
        "definition": _named(JSON),
        "folder": _optional(TEXT),
        "distributions": _named(DISTRIBUTION),
        "inputs": _optional(_named(TEXT)),
        "artifacts": _optional(TEXT),
        "next_number": WHOLE,
    },
    TrialRow.__tablename__: {
        "id": WHOLE,
        "study_id": WHOLE,
        "position": WHOLE,
        "setting": TEXT,
        "seed": WHOLE,
        "leads": FLAG,
        "parameters": _optional(_named(SCALAR)),
        "state": _one_of(*STATES),
        "number": _optional(WHOLE),
        "began": _optional(TIME),
        "ended": _optional(TIME),
        "owner": _optional(_named(SCALAR)),
        "heartbeat": _optional(NUMBER),
        "step": WHOLE,
        "settings": _optional(Shape("settings, with numbers where they are", _is_settings)),
        "reason": TEXT,
        "reason_code": _one_of("", *REASON_CODES),
        "deaths": WHOLE,
        "note": TEXT,
        "traceback": TEXT,
        **dict.fromkeys(
            (
                "mtd",
                "score",
                "score_before",
                "alignment",
                "uniformity",
                "mean_cosine",
                "wall_seconds",
                "peak_memory",
            ),
            _optional(NUMBER),
        ),
        "best_step": _optional(WHOLE),
        "environment": _optional(_named(TEXT)),
    },
    ScoreRow.__tablename__: {"trial_id": WHOLE, "task": TEXT, "score": _optional(NUMBER)},
    ArrayRow.__tablename__: {
        "trial_id": WHOLE,
        "name": Shape("a name of an array", lambda value: _ARRAY.fullmatch(str(value)) is not None),
        "values": ARRAY,
    },
    ItemsRow.__tablename__: {
        "study_id": WHOLE,
        "task": TEXT,
        "digest": SHA256,
        "kind": _one_of("spearman", "mean"),
        "count": WHOLE,
        "gold": _optional(ARRAY),
    },
    LookRow.__tablename__: {
        "study_id": WHOLE,
        "look": WHOLE,
        "seeds": WHOLE,
        "trials": _listed(WHOLE),
        "alpha": LEVEL,
        "spent": FRACTION,
        "p_value": _optional(FRACTION),
        "verdict": TEXT,
        "decision": TEXT,
        "added": _listed(
            Shape(
                "a configuration and a seed",
                lambda value: (
                    isinstance(value, list)
                    and len(value) == 2
                    and TEXT.holds(value[0])
                    and WHOLE.holds(value[1])
                ),
            )
        ),
    },
    PlanRow.__tablename__: {
        "study": NAME,
        "position": WHOLE,
        "trials": WHOLE,
        "plan": _PLAN,
        "sha256": SHA256,
    },
}


def records_of(session: Session, name: str, url: str) -> Records:
    """The rows of a study. Raises NothingToReport if there is no such study."""
    row = find_study(session, name, url)
    mine = TrialRow.study_id == row.id
    of_study = select(TrialRow.id).where(mine)
    return Records(
        as_record(row),
        _records(session, TrialRow, mine),
        _records(session, ScoreRow, ScoreRow.trial_id.in_(of_study)),
        _records(session, ArrayRow, ArrayRow.trial_id.in_(of_study)),
        _records(session, ItemsRow, ItemsRow.study_id == row.id),
        _records(session, LookRow, LookRow.study_id == row.id),
        _records(session, PlanRow, PlanRow.study == name),
    )


def _records(session: Session, kind: type[DeclarativeBase], condition: Any) -> list[Row]:
    rows = select(kind).where(condition).order_by(*kind.__mapper__.primary_key)
    return [as_record(row) for row in session.scalars(rows)]


def check_records(records: Records) -> None:
    """Raise StorageError, with table, column and value, for the first row that may not be so."""
    tables = {
        StudyRow.__tablename__: [records.study],
        TrialRow.__tablename__: records.trials,
        ScoreRow.__tablename__: records.scores,
        ArrayRow.__tablename__: records.arrays,
        ItemsRow.__tablename__: records.items,
        LookRow.__tablename__: records.looks,
        PlanRow.__tablename__: records.plans,
    }
    for table, rows in tables.items():
        for row in rows:
            check_row(table, row)
    for relation in RELATIONS:
        if problem := next(relation(records), None):
            raise StorageError(problem)


def check_row(table: str, row: Row) -> None:
    """Raise StorageError for a row that its table may not hold."""
    if row.keys() != COLUMNS[table].keys():
        raise StorageError(f"table {table} has other columns than this version's")
    for column, shape in COLUMNS[table].items():
        if not shape.holds(row[column]):
            found = _shortened(row[column])
            raise StorageError(f"{table}.{column} is {found}; expected {shape.what}")


def as_record(row: DeclarativeBase) -> Row:
    """A row as a dictionary by column."""
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


def _shortened(value: Any) -> str:
    text = repr(value)
    return " ".join(text.split()) if len(text) <= 60 else f"{' '.join(text[:57].split())}..."


def _trials_are_numbered(records: Records) -> Iterator[str]:
    for row in records.trials:
        number, has_begun = row["number"], row["began"] is not None
        if number is not None and number >= records.study["next_number"]:
            yield f"trial {number} has a number that is still to be given"
        if has_begun and number is None:
            yield f"a trial of configuration {row['setting']} began without a number"
        if has_begun and row["parameters"] is None:
            yield f"trial {number} began without parameters"
        if number is None and row["state"] != "WAITING":
            yield f"a trial of configuration {row['setting']} is {row['state']} without a number"
        if not has_begun and row["state"] in FINISHED and row["reason_code"] != "interrupted":
            yield f"a trial of configuration {row['setting']} is {row['state']} and never began"
    counts = Counter(row["number"] for row in records.trials if row["number"] is not None)
    if twice := [each for each, count in counts.items() if count > 1]:
        yield f"number {twice[0]} stands for several planned trials"


def _parameters_are_of_their_distributions(records: Records) -> Iterator[str]:
    # imported here: store works without it, and its import takes a second
    from optuna.distributions import json_to_distribution

    parameters = [row["parameters"] or {} for row in records.trials]
    for name, text in records.study["distributions"].items():
        distribution = json_to_distribution(text)
        for value in {given[name] for given in parameters if name in given}:
            try:
                is_one = distribution._contains(distribution.to_internal_repr(value))
            except (ValueError, TypeError):
                is_one = False
            if not is_one:
                found = f"parameter {name} of a trial is {_shortened(value)}"
                yield f"{found}, which is not of its distribution"


def _settings_are_of_one_kind(records: Records) -> Iterator[str]:
    """The analysis compares the values of a setting with each other."""
    kinds: dict[str, type] = {}
    for row in records.trials:
        for name, value in (row["settings"] or {}).items():
            kind = float if _is_number(value) else type(value)
            if value is not None and kinds.setdefault(name, kind) != kind:
                yield f"setting {name} is of another type in trial {row['number']} than in others"


def _arrays_have_equal_sizes(records: Records) -> Iterator[str]:
    groups: dict[tuple[int, str], dict[str, int]] = {}
    for row in records.arrays:
        group = row["name"].partition("/")[0]
        if group == "items":
            continue
        groups.setdefault((row["trial_id"], group), {})[row["name"]] = len(row["values"])
    for (_, group), sizes in groups.items():
        names = sizes.keys()
        if group == "spectrum" and not all(sizes.values()):
            yield "a trial has a spectrum without values"
        if group != "spectrum" and len(set(sizes.values())) > 1:
            yield f"the arrays {group}/ of a trial have {sorted(set(sizes.values()))} values"
        if group == "curve" and not names & {"curve/loss", "curve/step"}:
            yield "a trial has curves without steps"
        if group == "probe" and not names >= {"probe/step", "probe/baseline"}:
            yield "a trial has probes without steps or baseline"


def _looks_and_model_name_trials(records: Records) -> Iterator[str]:
    numbers = {row["number"] for row in records.trials}
    named = [number for look in records.looks for number in look["trials"]]
    named += [records.study["model"]["trial"]] if records.study["model"] else []
    if unknown := [number for number in named if number not in numbers]:
        yield f"trial {unknown[0]} of a look, or of the model, is not in the study"


def _items_are_those_of_the_study(records: Records) -> Iterator[str]:
    known = {name_of(row["task"], row["digest"]): row for row in records.items}
    for name, row in known.items():
        if (row["gold"] is not None) != (row["kind"] == "spearman"):
            yield f"{name} has gold scores, or none, unlike its kind {row['kind']}"
        elif row["gold"] is not None and (problem := problem_of(row["count"], row["gold"])):
            yield f"the gold scores of {name}: {problem}"
    for array in records.arrays:
        if (name := array["name"]).startswith(PREFIX):
            problem = "nothing is recorded of these items"
            if name in known:
                problem = problem_of(known[name]["count"], array["values"])
            if problem:
                yield f"the array {name} of a trial: {problem}"


RELATIONS: tuple[Callable[[Records], Iterator[str]], ...] = (
    _trials_are_numbered,
    _parameters_are_of_their_distributions,
    _settings_are_of_one_kind,
    _arrays_have_equal_sizes,
    _items_are_those_of_the_study,
    _looks_and_model_name_trials,
)
"""What holds between rows. Each yields what does not, as a sentence."""
