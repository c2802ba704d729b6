"""Tables of a study: queue slices and initial queue beside the published ones, tasks, trials.

Source of the published columns: MoCoSE, tables 7 (initial queue) and 8 (queue slices).
"""

import pandas as pd

from analysis.curves import MTD_DECIMALS, completed_runs
from analysis.frames import TRIAL_COLUMNS
from analysis.intervals import summarise
from analysis.published import load_published
from analysis.tasks import TASKS

PUBLISHED_SHARES = {
    "none": 0.0,
    "1/4 of the queue": 0.25,
    "1/2 of the queue": 0.5,
    "whole queue": 1.0,
}
_SHARE_DECIMALS = 3
_FIRST_COLUMNS = (
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


def published_slices() -> pd.DataFrame:
    """Table 8 as queue_slice and published, positions written as a study writes them."""
    table = load_published("table8_queue_slices")
    positions = table["positions_used"].str.replace(" and ", ",")
    return pd.DataFrame({"queue_slice": positions, "published": table["average"]})


def published_initial_queue() -> pd.DataFrame:
    """Table 7 as share, queue_size and published, a row per cell."""
    table = load_published("table7_initial_queue")
    cells = table.melt("initial_queue", var_name="queue_size", value_name="published")
    cells["share"] = cells.pop("initial_queue").map(PUBLISHED_SHARES)
    cells["queue_size"] = cells["queue_size"].astype("int64")
    return cells[["share", "queue_size", "published"]]


def compute_queue_slices(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Score by the positions of the queue that enter the loss.

    Returns queue_slice, n, seeds, mean, low, high (see `summarise`) and published: the
    paper's value for the same positions, NaN where it has none. No rows unless the
    completed runs use at least two slices. Raises ValueError for a level outside (0, 1).
    """
    runs = completed_runs(trials)
    if runs["queue_slice"].nunique() < 2:
        runs = runs.iloc[:0]
    table = summarise(runs, by=["queue_slice"], level=level)
    return table.merge(published_slices(), on="queue_slice", how="left")


def compute_initial_queue(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Score by share of the queue that starts as random vectors, and by queue size.

    Returns share, queue_size, n, seeds, mean, low, high (see `summarise`) and published,
    NaN where the paper has no such cell. No rows unless the completed runs with a queue
    have at least two shares. Raises ValueError for a level outside (0, 1).
    """
    runs = completed_runs(trials)
    runs = runs[runs["queue_size"] > 0]
    share = (runs["initial_queue_size"] / runs["queue_size"]).round(_SHARE_DECIMALS)
    runs = runs.assign(share=share)
    if share.nunique() < 2:
        runs = runs.iloc[:0]
    table = summarise(runs, by=["share", "queue_size"], level=level)
    return table.merge(published_initial_queue(), on=["share", "queue_size"], how="left")


def compute_tasks(
    trials: pd.DataFrame, scores: pd.DataFrame, *, level: float = 0.95
) -> pd.DataFrame:
    """Score of every task of the published tables by MTD.

    scores  number, task, score: a row per trial and task.

    Returns task, mtd, n, seeds, mean, low, high (see `summarise`), tasks in published order. No
    rows where no completed run was scored on any. Raises ValueError for a level outside (0, 1).
    """
    runs = completed_runs(trials)[["number", "seed", "mtd"]]
    runs = runs.assign(mtd=runs["mtd"].astype("float64").round(MTD_DECIMALS))
    named = scores[scores["task"].isin(TASKS) & scores["score"].notna()]
    table = summarise(runs.merge(named, on="number"), by=["task", "mtd"], level=level)
    place = table["task"].map({task: place for place, task in enumerate(TASKS)})
    return table.iloc[place.sort_values(kind="stable").index].reset_index(drop=True)


def compute_trials_table(trials: pd.DataFrame) -> pd.DataFrame:
    """Every trial in the order of its number: settings, results, then what else is known."""
    known = [name for name in TRIAL_COLUMNS if name in trials and name not in _FIRST_COLUMNS]
    rest = [name for name in trials if name not in _FIRST_COLUMNS and name not in known]
    return trials[[*_FIRST_COLUMNS, *known, *rest]].sort_values("number", ignore_index=True)
