"""The items that scores were computed from: recorded with a trial's result, read for all trials.

A trial's values are an array of its own, `items/TASK/DIGEST`; what all trials share, such as the
gold scores of pairs, is recorded once in `mtdlab_items`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from mtdlab.evaluation.items import Items
from mtdlab.store.database import lock_writers
from mtdlab.store.tables import ArrayRow, ItemsRow, TrialRow

PREFIX = "items/"
RESTORE = "restore it from a backup"


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


def problem_of(count: int, values: NDArray[Any]) -> str:
    """What is wrong with the values of a trial's items; empty where nothing is."""
    if len(values) != count:
        return f"{len(values):,} values of {count:,} evaluation items"
    return "" if np.isfinite(values).all() else "a value of an evaluation item is not finite"
