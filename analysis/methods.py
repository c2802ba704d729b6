"""Comparison of the methods of a study: mean scores and paired differences."""

import numpy as np
import pandas as pd

from analysis.experiments.settings import with_defaults
from analysis.frames import Settings
from analysis.intervals import summarise
from analysis.pairing import differences_to_best
from analysis.runs import MTD_DECIMALS, completed_runs, has_mtd, traced_runs

_KEYS = ["method", "mtd"]
_DIFFERENCE = ["difference", "difference_low", "difference_high"]


def with_methods(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The trials with their method; the default method, if any, where none was recorded."""
    only = {"method": settings["method"]} if "method" in settings else {}
    return with_defaults(trials, only)


def varies_method(trials: pd.DataFrame, settings: Settings) -> bool:
    """Whether the completed runs with a score have more than one method."""
    runs = completed_runs(with_methods(trials, settings))
    return "method" in runs and runs["method"].nunique() > 1


def select_curve_trials(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The trials for one curve over MTD: all, or those of one method.

    Where several methods have an MTD, the one with the most levels is chosen, then the one with the
    most runs, then the first by name, so that no mean is over several methods.
    """
    named = with_methods(trials, settings)
    runs = traced_runs(named)
    if "method" not in runs or runs["method"].nunique() < 2:
        return trials
    sizes = runs.groupby("method")["mtd"].agg(["nunique", "size"])
    chosen = sizes.sort_values(["nunique", "size"], ascending=False, kind="stable").index[0]
    selected: pd.DataFrame = trials[named["method"] == chosen]
    return selected


def compute_methods(
    trials: pd.DataFrame, settings: Settings, *, level: float = 0.95
) -> pd.DataFrame:
    """Mean score of each method at each of its levels of MTD, and its difference to the best.

    Returns method, mtd (NaN where the method has none), n, seeds, mean, low, high (see
    `summarise`), and difference, difference_low, difference_high: points above the row with
    the highest mean, paired by seed. The intervals of the differences are adjusted for all pairs of
    rows (Bonferroni), because the best row is chosen by the same scores; they are NaN for the best
    row itself and with fewer than two common seeds. No rows unless the completed runs have several
    methods. Raises ValueError for a level outside (0, 1).
    """
    if not varies_method(trials, settings):
        return pd.DataFrame(columns=[*_KEYS, "n", "seeds", "mean", "low", "high", *_DIFFERENCE])
    runs = completed_runs(with_methods(trials, settings))
    distance = runs["mtd"].astype("float64").where(has_mtd(runs), 0.0).round(MTD_DECIMALS)
    runs = runs.assign(mtd=distance)
    table = summarise(runs, by=_KEYS, level=level)
    scores = runs.pivot_table(index="seed", columns=_KEYS, values="score")
    best = int(table["mean"].to_numpy().argmax())
    table[_DIFFERENCE] = differences_to_best(
        scores.to_numpy(dtype=np.float64), best, level=level, rows=len(table)
    )
    return table.assign(mtd=table["mtd"].replace(0.0, np.nan))
