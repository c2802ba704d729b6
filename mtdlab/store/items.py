"""The items that scores were computed from: recorded with a trial's result, read for all trials.

A trial's values are an array of its own, `items/TASK/DIGEST`; what all trials share, such as the
gold scores of pairs, is recorded once in `mtdlab_items`.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from analysis.items import ItemScores, digest_of_tasks
from mtdlab.errors import StorageError
from mtdlab.evaluation.items import Items
from mtdlab.store.database import lock_writers
from mtdlab.store.reading import reading
from mtdlab.store.tables import Array, ArrayRow, ItemsRow, TrialRow
from mtdlab.store.urls import shown

PREFIX = "items/"
RESTORE = "restore it from a backup"
_AT_ONCE = 500
"""Trials whose values are in memory beside those of all."""


def name_of(task: str, digest: str) -> str:
    """The name of a trial's array of values."""
    return f"{PREFIX}{task}/{digest}"


def record_items(session: Session, trial: TrialRow, items: Mapping[str, Items]) -> None:
    """Add the items of a trial's score, by task, to a transaction."""
    for task, each in items.items():
        key = (trial.study_id, task, each.digest)
        if session.get(ItemsRow, key) is None:
            # another worker may be recording the same
            lock_writers(session.connection())
            known = dict(zip(("study_id", "task", "digest"), key, strict=True))
            known |= {"kind": each.kind, "count": len(each.values), "gold": each.gold}
            session.merge(ItemsRow(**known))
        name = name_of(task, each.digest)
        session.merge(ArrayRow(trial_id=trial.id, name=name, values=each.values))


def has_items(session: Session, study_id: int) -> bool:
    """Whether a trial of a study has recorded items."""
    recorded = select(ItemsRow.digest).where(ItemsRow.study_id == study_id).limit(1)
    return session.scalar(recorded) is not None


def load_items(url: str, study_id: int, trials: Collection[int]) -> ItemScores | None:
    """The items of those of the trials, by number, that were scored on the same ones.

    Where trials were scored on different items, on those of most trials; None without any.
    Raises StorageError.
    """
    with reading(url) as session:
        mine = select(ItemsRow).where(ItemsRow.study_id == study_id).order_by(ItemsRow.task)
        known = {name_of(row.task, row.digest): row for row in session.scalars(mine)}
        arrays = select(TrialRow.number, ArrayRow.name).join(ArrayRow)
        arrays = arrays.where(TrialRow.study_id == study_id, ArrayRow.name.in_(known))
        of_trial: dict[Any, set[str]] = {}
        for number, name in session.execute(arrays):
            of_trial.setdefault(number, set()).add(name)
        recorded = {each: frozenset(of_trial[each]) for each in sorted(trials) if each in of_trial}
        if not recorded:
            return None
        [(most, _)] = Counter(recorded.values()).most_common(1)
        shared = {name: row for name, row in known.items() if name in most}
        for row in shared.values():
            if row.gold is not None and (problem := problem_of(row.count, row.gold)):
                where = f"{shown(url)} is damaged: the gold scores of task {row.task}"
                raise StorageError(f"{where}: {problem}; {RESTORE}")
        numbers = [number for number, names in recorded.items() if names == most]
        values = _values(session, arrays.add_columns(ArrayRow.values), shared, numbers, url)
    rows = shared.values()
    gold = [row.gold for row in rows if row.gold is not None]
    return ItemScores(
        numbers=np.array(numbers, dtype=np.int64),
        values=values,
        kind="spearman" if gold else "mean",
        gold=np.concatenate(gold) if gold else None,
        tasks={row.task: row.count for row in rows},
        digest=digest_of_tasks([row.digest for row in rows]),
    )


def _values(
    session: Session,
    arrays: Select[Any],
    shared: Mapping[str, ItemsRow],
    numbers: Sequence[int],
    url: str,
) -> Array:
    """The values (N, P) of trials, the arrays of one trial side by side."""
    ends = np.cumsum([row.count for row in shared.values()]).tolist()
    columns = {
        name: slice(end - row.count, end)
        for (name, row), end in zip(shared.items(), ends, strict=True)
    }
    places = {number: at for at, number in enumerate(numbers)}
    found = np.empty((len(numbers), ends[-1]), dtype=np.float32)
    for number, name, values in session.execute(arrays.execution_options(yield_per=_AT_ONCE)):
        if number in places and name in columns:
            if problem := problem_of(shared[name].count, values):
                raise StorageError(f"{shown(url)} is damaged: trial {number}: {problem}; {RESTORE}")
            found[places[number], columns[name]] = values
    return found


def problem_of(count: int, values: NDArray[Any]) -> str:
    """What is wrong with the values of a trial's items; empty where nothing is."""
    if len(values) != count:
        return f"{len(values):,} values of {count:,} evaluation items"
    return "" if np.isfinite(values).all() else "a value of an evaluation item is not finite"
