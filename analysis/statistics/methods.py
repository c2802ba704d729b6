"""Comparison of the methods of a study: mean scores and paired differences."""

import numpy as np
import pandas as pd

from analysis.data.defaults import LEVEL
from analysis.data.frames import Settings
from analysis.data.items import ItemScores
from analysis.data.runs import completed_runs, mtd_or_0, traced_runs
from analysis.inference.best import METHOD_KEYS, varies_method, with_methods
from analysis.inference.intervals import summarise
from analysis.inference.pairing import cell_covariance, summarise_scores
from analysis.inference.shapes import highest_column
from analysis.statistics.configurations import DIFFERENCE, differences_to_best
from analysis.statistics.curves import effective_rank

_COLUMNS = [*METHOD_KEYS, "n", "seeds", "mean", "low", "high", "items", *DIFFERENCE, "may_be_best"]


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
    trials: pd.DataFrame,
    settings: Settings,
    *,
    items: ItemScores | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """Mean score of each method at each of its levels of MTD, and its difference to the best.

    Columns: method, mtd (NaN where the method has none), n, seeds, mean, low, high, items,
    difference, difference_low, difference_high (points above the row with the highest estimate,
    with seeds as blocks) and may_be_best (whether no row is significantly better). The intervals
    are simultaneous for all pairs of rows, because the best row is chosen by the same scores; they
    are NaN for the best row itself and where seeds are not shared. `level` is the confidence of
    comparisons. No rows unless the completed runs
    have several methods.
    """
    if not varies_method(trials, settings):
        return pd.DataFrame(columns=_COLUMNS)
    runs = _comparable_runs(trials, settings)
    table = summarise_scores(runs, by=METHOD_KEYS, items=items)
    return _compare_to(_best_row(runs), table, runs, "score", items, level)


def compute_method_properties(
    trials: pd.DataFrame, spectra: pd.DataFrame, settings: Settings
) -> pd.DataFrame:
    """Geometry, duration and memory of each method, compared with the best by mean score.

    A row per measure and row of `compute_methods`: measure, then its columns but items, for
    alignment, uniformity, the effective rank of the singular values, the seconds of a trial per
    1,000 training sentences, evaluation and encoding before training included, and peak memory of
    the process, on a GPU what is allocated there. Measures that not every run has are left out.
    """
    empty = pd.DataFrame(columns=["measure", *(name for name in _COLUMNS if name != "items")])
    if not varies_method(trials, settings):
        return empty
    runs = _comparable_runs(trials, settings)
    best = _best_row(runs)
    steps = runs["steps"].astype("float64") if "steps" in runs else np.nan
    sentences = steps * runs["batch_size"]
    measured = {
        "alignment": runs["alignment"],
        "uniformity": runs["uniformity"],
        "effective rank": runs["number"].map(_ranks_after(spectra)),
        "seconds per 1,000 sentences": 1000 * runs["wall_seconds"] / sentences,
        "peak memory, MB": runs["peak_memory"] / 1e6,
    }
    tables = []
    for name, values in measured.items():
        if np.isfinite(values).all():
            with_value = runs.assign(value=values)
            table = summarise(with_value, by=METHOD_KEYS, value="value")
            tables.append(_compare_to(best, table, with_value, "value").assign(measure=name))
    return pd.concat(tables, ignore_index=True)[[*empty]] if tables else empty


def _comparable_runs(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The completed runs with their method, and an MTD of 0 where the method has none."""
    runs = completed_runs(with_methods(trials, settings))
    return runs.assign(mtd=mtd_or_0(runs))


def _best_row(runs: pd.DataFrame) -> int:
    """The row of the highest score among the methods at their levels of MTD, seeds as blocks."""
    return highest_column(_by_row(runs, "score")[1].to_numpy(dtype=np.float64))


def _by_row(runs: pd.DataFrame, value: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs with the number of their row, and the values of a column by seed and row."""
    runs = runs.assign(row=runs.groupby(METHOD_KEYS).ngroup())
    return runs, runs.pivot_table(index="seed", columns="row", values=value)


def _compare_to(
    best: int,
    table: pd.DataFrame,
    runs: pd.DataFrame,
    value: str,
    items: ItemScores | None = None,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The means of a column by method and MTD, with paired differences to row `best`."""
    runs, values = _by_row(runs, value)
    covariance = cell_covariance(runs, values, "row", items)
    table = table.join(differences_to_best(values, best, covariance, level))
    return table.assign(mtd=table["mtd"].replace(0.0, np.nan))


def _ranks_after(spectra: pd.DataFrame) -> dict[int, float]:
    """The effective rank after training by the number of the trial."""
    if spectra.empty:
        return {}
    return {
        number: effective_rank(row)
        for (number, moment), row in zip(spectra.index, spectra.to_numpy(float), strict=True)
        if moment == "after" and np.isfinite(row).all() and row.any()
    }
