"""Configurations side by side: mean scores, and paired differences to the best one."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.blocks import Floats
from analysis.experiments.settings import format_value
from analysis.inference import compare_columns
from analysis.intervals import Estimate, check_level, estimate, summarise
from analysis.items import ItemScores
from analysis.pairing import cell_covariance, select_configuration
from analysis.runs import completed_runs, varied_settings

_MOST_COMPARED = 100
_DIFFERENCE = ["difference", "difference_low", "difference_high"]
COLUMNS = ("number", "n", "seeds", "mean", "low", "high", *_DIFFERENCE, "may_be_best")
"""Of a table of configurations, after the settings that varied."""


def name_configuration(settings: pd.Series) -> str:
    """Settings as text: learning_rate 0.001, steps 160."""
    return ", ".join(f"{name} {format_value(str(name), value)}" for name, value in settings.items())


def number_configurations(runs: pd.DataFrame, varied: list[str]) -> pd.Series:
    """The number of each run's configuration: grouped by value, since texts are rounded."""
    if not varied:
        return pd.Series(0, index=runs.index)
    return runs.groupby(varied, dropna=False).ngroup()


def compute_configurations(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    items: ItemScores | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Mean score of each configuration, the best first, and its difference to the best.

    settings  which columns of trials are settings.

    Returns the settings that varied, then `COLUMNS`: number is the first trial of the
    configuration; mean, low and high as `summarise` gives them; the difference is in points above
    the best configuration, with seeds as blocks. Its interval is simultaneous for all pairs of
    configurations, because the best is chosen by the same scores; it is missing for the best
    itself, where seeds are not shared, and beyond the 100 best. may_be_best: whether no other
    configuration is significantly better (Hsu 1984). Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    runs = completed_runs(trials).sort_values("number")
    varied = varied_settings(runs, settings)
    runs = runs.assign(configuration=number_configurations(runs, varied))
    table = summarise(runs, by=["configuration"], level=level)
    table = table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)
    scores = runs.pivot_table(index="seed", columns="configuration", values="score")
    ordered = scores.reindex(columns=table["configuration"][:_MOST_COMPARED])
    covariance = cell_covariance(runs, ordered, "configuration", items)
    found = differences_to_best(ordered, 0, level, covariance).reindex(table.index)
    found["may_be_best"] = found["may_be_best"].astype("boolean").fillna(value=False).astype(bool)
    first = runs.drop_duplicates("configuration").set_index("configuration")
    chosen = first.loc[table["configuration"], ["number", *varied]].reset_index(drop=True)
    joined = pd.concat([chosen, table.drop(columns="configuration"), found], axis=1)
    return joined[[*varied, *COLUMNS]]


def differences_to_best(
    scores: pd.DataFrame, best: int, level: float, covariance: Floats | None
) -> pd.DataFrame:
    """`compare_columns` of scores (S, C): difference, its bounds and may_be_best, C rows.

    NaN for the best itself. Without bounds where too few seeds are shared; the difference is then
    over the common ones.
    """
    values = scores.to_numpy(dtype=np.float64)
    contest = compare_columns(values, best, 1 - level, covariance)
    found = contest.differences
    for column in np.flatnonzero(np.isnan(found[:, 0])):
        common = values[:, column] - values[:, best]
        common = common[np.isfinite(common)]
        found[column, 0] = common.mean() if len(common) else np.nan
    found[best : best + 1] = np.nan
    table = pd.DataFrame(found, columns=_DIFFERENCE, dtype="float64")
    return table.assign(may_be_best=contest.may_be_best)


def estimate_configuration(
    trials: pd.DataFrame, settings: Collection[str], number: int, *, level: float = 0.95
) -> tuple[Estimate, int]:
    """Mean score of a trial's configuration with its t interval over seeds, and how many seeds.

    Raises KeyError where `number` is no completed trial with a score.
    """
    runs = completed_runs(trials).set_index("number", drop=False)
    varied = varied_settings(runs, settings)
    same = select_configuration(runs, varied, runs.loc[[number]].iloc[0])
    per_seed = same.groupby("seed")["score"].mean().to_numpy(dtype=np.float64)
    return estimate(per_seed, level), len(per_seed)
