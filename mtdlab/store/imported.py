"""What the rows of a study from another file may hold: every column, and how rows fit together.

An exported file may have been changed by anyone. `check_records` refuses it before a row is
written; a new column of lists, objects or arrays needs its line in `_OWN`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from sqlalchemy import Boolean, select
from sqlalchemy.orm import Session

from analysis.data.defaults import BeyondRun
from analysis.data.environment import Environment
from analysis.data.frames import TRIAL_COLUMNS
from analysis.data.invocation import Invocation
from mtdlab.config.study import is_study_name
from mtdlab.errors import StorageError
from mtdlab.settings.limits import FURTHEST, LATEST, STEPS
from mtdlab.settings.roles import ROLES, SEARCH
from mtdlab.store.items import PREFIX, name_of, problem_of
from mtdlab.store.store import find_study
from mtdlab.store.tables import (
    FINISHED,
    REASON_CODES,
    VERSIONS,
    ArrayRow,
    Base,
    ItemsRow,
    LookRow,
    Number,
    PlanRow,
    ScoreRow,
    StudyRow,
    Text,
    TrialRow,
    Whole,
)

Row = dict[str, Any]
LARGEST = 2**31 - 1
"""Of PostgreSQL's integers, as which whole numbers are stored."""
LONGEST = 10_000_000
"""Characters of a text."""
DEEPEST = 40
"""Levels of a JSON value."""
STATES = ("WAITING", "RUNNING", *FINISHED)
_ARRAY = re.compile(
    r"curve/\w+|spectrum/\w+|probe/(step|cosine_different|cosine/\d{1,9})|items/.{1,200}", re.DOTALL
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


def _one_of(*values: str) -> Shape:
    return Shape(f"one of {', '.join(filter(None, values))}", lambda value: value in values)


def _listed(shape: Shape) -> Shape:
    return Shape(
        f"a list, each {shape.what}",
        lambda value: isinstance(value, list) and all(map(shape.holds, value)),
    )


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


def _is_distribution(value: Any) -> bool:
    # imported here: store works without it, and its import takes a second
    from optuna.distributions import json_to_distribution

    try:
        json_to_distribution(value)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False
    return True


def _is_reports(value: Any) -> bool:
    return _REPORTS.holds(value) and all(
        re.fullmatch("[1-9][0-9]{0,7}", step) and int(step) <= STEPS for step in value
    )


def _is_inputs(value: Any) -> bool:
    return isinstance(value, dict) and all(
        (_named(TEXT) if name == VERSIONS else TEXT).holds(each) for name, each in value.items()
    )


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
    "a time in seconds, from 1970 to 2099",
    lambda value: _is_number(value) and 0 <= value <= LATEST,
)
FLAG = Shape("true or false", lambda value: isinstance(value, bool))
TEXT = Shape("text", lambda value: isinstance(value, str) and len(value) <= LONGEST)
NAME = Shape("a name of a study", lambda value: isinstance(value, str) and is_study_name(value))
# their fields were read one by one
ENVIRONMENT = Shape("an environment", lambda value: isinstance(value, Environment))
INVOCATION = Shape("a command", lambda value: isinstance(value, Invocation))
JSON = Shape("JSON with finite numbers", _is_json)
SCALAR = Shape(
    "text, a finite number, true, false or null",
    lambda value: not isinstance(value, dict | list) and _is_json(value),
)
ARRAY = Shape(
    f"a vector of numbers within {FURTHEST:g} of 0, or NaN",
    lambda value: isinstance(value, np.ndarray) and not (np.abs(value) > FURTHEST).any(),
)
SHA256 = Shape("a SHA-256", lambda value: re.fullmatch("[0-9a-f]{64}", str(value)) is not None)
DISTRIBUTION = Shape("a distribution of Optuna's", _is_distribution)

_SETTINGS = _named(SCALAR)
_REPORTS = _named(NUMBER)
_SETTING = _named(TEXT, symbol=TEXT, unit=TEXT, description=TEXT, default=SCALAR)
_METHOD = _named(TEXT, title=TEXT, settings=_named(_SETTING))
_IDENTITY = _named(JSON, sampler=TEXT, trainer=_named(JSON), search=_named(TEXT))
_PLAN = _named(
    JSON,
    study=TEXT,
    metric=TEXT,
    margin=NUMBER,
    alpha=LEVEL,
    beyond_run=_one_of(*get_args(BeyondRun)),
    looks=_listed(WHOLE),
)
_MODEL = _named(TEXT, trial=WHOLE, host=TEXT, folder=TEXT)

_OWN: Mapping[type[Base], Mapping[str, Shape]] = {
    StudyRow: {
        "name": NAME,
        "identity": _IDENTITY,
        "invocation": INVOCATION,
        "imports": _named(TEXT),
        "methods": _named(_METHOD),
        "precision": _one_of("float32", "bfloat16"),
        "model": _MODEL,
        "definition": _named(JSON),
        "distributions": _named(DISTRIBUTION),
        "inputs": Shape("digests, and versions by package", _is_inputs),
    },
    TrialRow: {
        "role": _one_of(*ROLES),
        "parameters": _named(SCALAR),
        "state": _one_of(*STATES),
        "began": TIME,
        "ended": TIME,
        "owner": _named(SCALAR),
        "settings": Shape("settings, with numbers where they are", _is_settings),
        "reason_code": _one_of("", *REASON_CODES),
        "reports": Shape(f"numbers within {FURTHEST:g} of 0 by step", _is_reports),
        "attributes": _named(SCALAR),
        "environment": ENVIRONMENT,
    },
    ScoreRow: {},
    ArrayRow: {
        "name": Shape("a name of an array", lambda value: _ARRAY.fullmatch(str(value)) is not None),
        "values": ARRAY,
    },
    ItemsRow: {"digest": SHA256, "kind": _one_of("spearman", "mean"), "gold": ARRAY},
    LookRow: {
        "trials": _listed(WHOLE),
        "alpha": LEVEL,
        "spent": FRACTION,
        "p_value": FRACTION,
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
    PlanRow: {"study": NAME, "plan": _PLAN, "sha256": SHA256},
}
"""The shapes of columns that hold less than their type, in the order of `Records`."""


def _shape_of(column: Any, own: Mapping[str, Shape]) -> Shape:
    plain = {Whole: WHOLE, Number: NUMBER, Text: TEXT, Boolean: FLAG}
    shape = own[column.key] if column.key in own else plain[type(column.type)]
    if not column.nullable:
        return shape
    return Shape(f"{shape.what} or empty", lambda value: value is None or shape.holds(value))


COLUMNS: Mapping[str, Mapping[str, Shape]] = {
    kind.__tablename__: {each.key: _shape_of(each, own) for each in kind.__table__.columns}
    for kind, own in _OWN.items()
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


def _records(session: Session, kind: type[Base], condition: Any) -> list[Row]:
    rows = select(kind).where(condition).order_by(*kind.__mapper__.primary_key)
    return [as_record(row) for row in session.scalars(rows)]


def check_records(records: Records) -> None:
    """Raise StorageError, with table, column and value, for the first row that may not be so."""
    for table, rows in zip(COLUMNS, vars(records).values(), strict=True):
        for row in rows if isinstance(rows, list) else [rows]:
            check_row(table, row)
    for relation in RELATIONS:
        if problem := next(relation(records), None):
            raise StorageError(problem)


def check_row(table: str, row: Row) -> None:
    """Raise StorageError for a row that its table may not hold."""
    for column, shape in COLUMNS[table].items():
        if not shape.holds(row[column]):
            found = _shortened(row[column])
            raise StorageError(f"{table}.{column} is {found}; expected {shape.what}")


def as_record(row: Base) -> Row:
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
    from optuna.trial import TrialState, create_trial

    searched = (row for row in records.trials if row["role"] == SEARCH)
    parameters = [row["parameters"] or {} for row in searched]
    for name, text in records.study["distributions"].items():
        distribution = json_to_distribution(text)
        for value in {given[name] for given in parameters if name in given}:
            kind = {name: distribution}
            try:
                create_trial(state=TrialState.RUNNING, params={name: value}, distributions=kind)
            except (ValueError, TypeError):
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
        if group != "items":
            groups.setdefault((row["trial_id"], group), {})[row["name"]] = len(row["values"])
    for (_, group), sizes in groups.items():
        names = sizes.keys()
        if group == "spectrum" and not all(sizes.values()):
            yield "a trial has a spectrum without values"
        if group != "spectrum" and len(set(sizes.values())) > 1:
            yield f"the arrays {group}/ of a trial have {sorted(set(sizes.values()))} values"
        if group == "curve" and not names & {"curve/loss", "curve/step"}:
            yield "a trial has curves without steps"
        if group == "probe" and not names >= {"probe/step", "probe/cosine_different"}:
            yield "a trial has probes without steps or cosines of different sentences"


def _looks_and_model_name_trials(records: Records) -> Iterator[str]:
    numbers = {row["number"] for row in records.trials if row["role"] == SEARCH}
    named = [number for look in records.looks for number in look["trials"]]
    named += [records.study["model"]["trial"]] if records.study["model"] else []
    if unknown := [number for number in named if number not in numbers]:
        yield f"trial {unknown[0]} of a look, or of the model, is not in the study's search"


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
