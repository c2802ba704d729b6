"""This module reads all rows of a study as records, and says how they have to fit together.

An exported file may have been changed by anyone. `check_records` refuses it before a row is
written: a column by its rule in `tables`, rows by `RELATIONS`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from mtdlab.errors import NothingToReport, StorageError, nearest
from mtdlab.settings.roles import SEARCH
from mtdlab.store.optuna_copy import has_foreign
from mtdlab.store.rules import NUMBER, Rule
from mtdlab.store.tables import (
    CURVES,
    FINISHED,
    ITEMS,
    ArrayRow,
    Base,
    ItemsRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
    items_array,
    rule_of,
)
from mtdlab.store.urls import mask

Row = dict[str, Any]
Records = dict[type[Base], list[Row]]
"""All rows of a study by table, as dictionaries by column; of `StudyRow` it is one."""
RULES: Mapping[type[Base], Mapping[str, Rule]] = {
    kind: {column.key: rule_of(column) for column in kind.__table__.columns}
    for kind in (StudyRow, TrialRow, ScoreRow, ArrayRow, ItemsRow, LookRow, PlanRow)
}
"""The rule of each column, by table."""


def find_study(session: Session, name: str, url: str) -> StudyRow:
    """Return the row of a study. Raises NothingToReport where there is no such study."""
    row = session.scalars(select(StudyRow).where(StudyRow.name == name)).first()
    if row is None:
        plans = select(PlanRow.study).where(PlanRow.study == name)
        if session.scalars(plans).first() is not None:
            raise NothingToReport(
                f"study {name} of {mask(url)} has a recorded plan and no trials yet; run it with "
                "mtdlab sweep FILE"
            )
        if has_foreign(session.connection(), name):
            raise NothingToReport(
                f"study {name} of {mask(url)} is in Optuna's tables alone; mtdlab did not record "
                "it and does not change it"
            )
        names = session.scalars(select(StudyRow.name))
        raise NothingToReport(f"no study {name} in {mask(url)}; {nearest(name, names)}")
    return row


def records_of(session: Session, name: str, url: str) -> Records:
    """Read the rows of a study. Raises NothingToReport if there is no such study."""
    study = find_study(session, name, url).id
    of_study = select(TrialRow.id).where(TrialRow.study_id == study)
    mine: dict[type[Base], ColumnElement[bool]] = {
        StudyRow: StudyRow.id == study,
        TrialRow: TrialRow.study_id == study,
        ScoreRow: ScoreRow.trial_id.in_(of_study),
        ArrayRow: ArrayRow.trial_id.in_(of_study),
        ItemsRow: ItemsRow.study_id == study,
        LookRow: LookRow.study_id == study,
        PlanRow: PlanRow.study == name,
    }
    found = Records()
    for kind, condition in mine.items():
        rows = select(kind).where(condition).order_by(*kind.__mapper__.primary_key)
        found[kind] = list(map(as_record, session.scalars(rows)))
    return found


def check_records(records: Records) -> None:
    """Raise StorageError, with table, column and value, for the first row that breaks a rule."""
    for kind, rows in records.items():
        for row in rows:
            check_row(kind, row)
    for relation in RELATIONS:
        if problem := next(relation(records), None):
            raise StorageError(problem)


def check_row(kind: type[Base], row: Row) -> None:
    """Raise StorageError for a row that breaks the rule of a column of its table."""
    for column, rule in RULES[kind].items():
        if not rule.holds(row[column]):
            name, value = f"{kind.__tablename__}.{column}", _shortened(row[column])
            raise StorageError(f"{name} is {value}; expected {rule.what}")


def as_record(row: Base) -> Row:
    """Return a row as a dictionary by column."""
    return {column.key: getattr(row, column.key) for column in row.__table__.columns}


def _shortened(value: Any) -> str:
    text = repr(value)
    return " ".join(text.split()) if len(text) <= 60 else f"{' '.join(text[:57].split())}..."


def is_ended_unbegun(trial: Row) -> bool:
    """Return whether a trial has ended and never began; one whose process died may have."""
    has_begun = trial["number"] is not None and trial["began"] is not None
    is_ended = trial["state"] in FINISHED and trial["reason_code"] != "interrupted"
    return is_ended and not has_begun


def _trials_are_numbered(records: Records) -> Iterator[str]:
    [study], trials = records[StudyRow], records[TrialRow]
    for row in trials:
        number, has_begun = row["number"], row["began"] is not None
        name = f"a trial of configuration {row['configuration']}"
        if number is not None and number >= study["next_number"]:
            yield f"trial {number} has a number that is still to be given"
        if has_begun and number is None:
            yield f"{name} began without a number"
        if has_begun and row["parameters"] is None:
            yield f"trial {number} began without parameters"
        if number is None and row["state"] != "WAITING":
            yield f"{name} is {row['state']} without a number"
        if is_ended_unbegun(row):
            yield f"{name} is {row['state']} and never began"
    counts = Counter(row["number"] for row in trials if row["number"] is not None)
    if twice := [number for number, count in counts.items() if count > 1]:
        yield f"number {twice[0]} stands for several planned trials"


def _parameters_are_of_their_distributions(records: Records) -> Iterator[str]:
    # imported here: store works without it, and its import takes a second
    from optuna.distributions import json_to_distribution
    from optuna.trial import TrialState, create_trial

    [study] = records[StudyRow]
    searched = (row for row in records[TrialRow] if row["role"] == SEARCH)
    parameters = [row["parameters"] or {} for row in searched]
    for name, text in study["distributions"].items():
        distribution = json_to_distribution(text)
        for value in {given[name] for given in parameters if name in given}:
            kind = {name: distribution}
            try:
                create_trial(state=TrialState.RUNNING, params={name: value}, distributions=kind)
            except (ValueError, TypeError):
                drawn = f"parameter {name} of a trial is {_shortened(value)}"
                yield f"{drawn}, which is not of its distribution"


def _settings_are_of_one_kind(records: Records) -> Iterator[str]:
    """The analysis compares the values of a setting with each other."""
    kinds: dict[str, type] = {}
    for row in records[TrialRow]:
        for name, value in (row["settings"] or {}).items():
            kind = float if NUMBER.holds(value) else type(value)
            if value is not None and kinds.setdefault(name, kind) != kind:
                yield f"setting {name} is of another type in trial {row['number']} than in others"


def _arrays_have_equal_sizes(records: Records) -> Iterator[str]:
    groups: dict[tuple[int, str], dict[str, int]] = {}
    for row in records[ArrayRow]:
        group = row["name"].partition("/")[0]
        if group != "items":
            groups.setdefault((row["trial_id"], group), {})[row["name"]] = len(row["values"])
    for (_, group), sizes in groups.items():
        names = sizes.keys()
        if group == "spectrum" and not all(sizes.values()):
            yield "a trial has a spectrum without values"
        if group != "spectrum" and len(set(sizes.values())) > 1:
            yield f"the arrays {group}/ of a trial have {sorted(set(sizes.values()))} values"
        if group == "curve" and not names & CURVES:
            yield "a trial has curves without steps"
        if group == "probe" and not names >= {"probe/step", "probe/cosine_different"}:
            yield "a trial has probes without steps or cosines of different sentences"


def _looks_and_model_name_trials(records: Records) -> Iterator[str]:
    [study] = records[StudyRow]
    numbers = {row["number"] for row in records[TrialRow] if row["role"] == SEARCH}
    named = [number for look in records[LookRow] for number in look["trials"]]
    named += [study["model"]["trial"]] if study["model"] else []
    if unknown := [number for number in named if number not in numbers]:
        yield f"trial {unknown[0]} of a look, or of the model, is not in the study's search"


def items_problem(count: int, values: NDArray[Any]) -> str:
    """Say what is wrong with the values of a trial's items; empty where nothing is."""
    if len(values) != count:
        return f"{len(values):,} values of {count:,} evaluation items"
    return "" if np.isfinite(values).all() else "a value of an evaluation item is not finite"


def _items_are_those_of_the_study(records: Records) -> Iterator[str]:
    items = {items_array(row["task"], row["digest"]): row for row in records[ItemsRow]}
    for name, row in items.items():
        if (row["gold"] is not None) != (row["kind"] == "spearman"):
            yield f"{name} has gold scores, or none, unlike its kind {row['kind']}"
        elif row["gold"] is not None and (problem := items_problem(row["count"], row["gold"])):
            yield f"the gold scores of {name}: {problem}"
    for array in records[ArrayRow]:
        if (name := array["name"]).startswith(ITEMS):
            problem = "nothing is recorded of these items"
            if name in items:
                problem = items_problem(items[name]["count"], array["values"])
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
