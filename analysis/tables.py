"""Tables of a study: tasks by MTD, and all trials."""

from collections.abc import Sequence

import pandas as pd

from analysis.frames import TRIAL_COLUMNS
from analysis.intervals import summarise
from analysis.runs import MTD_DECIMALS, completed_runs, has_mtd
from analysis.tasks import TASKS

FIRST_COLUMNS = (
    "number",
    "state",
    "seed",
    "ema_decay",
    "queue_size",
    "batch_size",
    "initial_queue_size",
    "mtd",
    "score",
    "alignment",
    "uniformity",
    "reason",
)
"""First columns of the table of trials, in this order."""


def compute_tasks(
    trials: pd.DataFrame,
    scores: pd.DataFrame,
    *,
    by: Sequence[str] = (),
    level: float = 0.95,
) -> pd.DataFrame:
    """Score on every task of the published tables by MTD; runs without an MTD have an MTD of 0.

    scores  number, task, score: a row per trial and task.
    by      further columns of trials to group by, before the MTD.

    Returns task, the columns `by`, mtd, n, seeds, mean, low, high (see `summarise`), tasks in
    published order; no rows if no completed run has a score on any. Raises ValueError for a
    level outside (0, 1).
    """
    runs = completed_runs(trials)
    distance = runs["mtd"].astype("float64").where(has_mtd(runs), 0.0).round(MTD_DECIMALS)
    runs = runs[["number", "seed", *by]].assign(mtd=distance)
    named = scores[scores["task"].isin(TASKS) & scores["score"].notna()]
    table = summarise(runs.merge(named, on="number"), by=["task", *by, "mtd"], level=level)
    place = table["task"].map({task: place for place, task in enumerate(TASKS)})
    return table.iloc[place.sort_values(kind="stable").index].reset_index(drop=True)


def compute_trials_table(trials: pd.DataFrame) -> pd.DataFrame:
    """All trials by number: `FIRST_COLUMNS`, then other `TRIAL_COLUMNS`, then other settings."""
    known = [name for name in TRIAL_COLUMNS if name in trials and name not in FIRST_COLUMNS]
    rest = [name for name in trials if name not in FIRST_COLUMNS and name not in known]
    return trials[[*FIRST_COLUMNS, *known, *rest]].sort_values("number", ignore_index=True)
