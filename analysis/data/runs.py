"""Selection of runs: completed, with an MTD, without one; which hyperparameters varied."""

import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mtdlab.analysis.measures.trace import PARTS

if TYPE_CHECKING:
    # half a second, which the commands that only write an MTD do without
    import pandas as pd
    from numpy.typing import ArrayLike

Values = TypeVar("Values", "pd.Series", "np.ndarray")

CONFIGURATION = "number of the configuration"
"""The column that tells the configurations of runs apart; a setting may be called configuration."""
MTD_DECIMALS = 3
_SHOWN_DECIMALS = 1
# Below it one decimal does not tell the levels of a study apart.
_SMALL = 10
_MOST_NAMED = 6


CONDITIONS = ("learning_rate", "steps")
"""Settings that determine how fast the weights change, on which an optimum in MTD may depend."""


def level_of(mtd: float) -> float:
    """The level that a run of this MTD is of: equal MTDs of several settings differ by rounding."""
    return float(np.round(mtd, MTD_DECIMALS))


def mtd_value(mtd: float | None) -> float | None:
    """An MTD as levels are told apart by: 14, not 14.000000000000002; None where not known."""
    if mtd is None or not np.isfinite(mtd):
        return None
    level = level_of(mtd)
    return int(level) if level == int(level) else level


def levels_of(runs: "pd.DataFrame") -> "pd.Series":
    """The level of each run (`level_of`), NaN without a recorded MTD."""
    return runs["mtd"].astype("float64").round(MTD_DECIMALS)


def round_mtd(distance: float) -> float:
    """An MTD as it is written for people: one decimal, two below 10. NaN stays NaN."""
    decimals = _SHOWN_DECIMALS + (round(distance, _SHOWN_DECIMALS) < _SMALL)
    return round(float(distance), decimals)


def format_mtd(distance: float) -> str:
    """An MTD as text, such as 41.3, 12 or 7.67; a dash for one that is not finite."""
    return f"{round_mtd(distance):.10g}" if np.isfinite(distance) else "–"


def name_levels(distances: Iterable[float]) -> str:
    """MTD 5, 8 and so on; of many levels the lowest and the highest."""
    levels = sorted(set(distances))
    if len(levels) > _MOST_NAMED:
        low, high = format_mtd(levels[0]), format_mtd(levels[-1])
        return f"{len(levels)} levels of MTD from {low} to {high}"
    return f"MTD {', '.join(format_mtd(level) for level in levels)}"


def completed_runs(trials: "pd.DataFrame", *, value: str = "score") -> "pd.DataFrame":
    """The rows of COMPLETE trials with a finite `value`, whatever their method.

    In a frame without a column `state`, all runs count as completed.
    """
    finite = np.isfinite(trials[value].astype("float64"))
    done = finite & (trials["state"] == "COMPLETE") if "state" in trials else finite
    return trials[done]


def has_mtd(trials: "pd.DataFrame") -> "pd.Series":
    """Whether each trial has an MTD: recorded, finite and above 0; 0 is recorded for none."""
    distance = trials["mtd"].astype("float64")
    return distance.gt(0) & distance.lt(np.inf)


def traced_runs(trials: "pd.DataFrame", *, value: str = "score") -> "pd.DataFrame":
    """The completed runs that have an MTD; their column mtd is their level."""
    runs = completed_runs(trials, value=value)
    runs = runs.assign(mtd=levels_of(runs))
    return runs[has_mtd(runs)]


def mtd_or_0(trials: "pd.DataFrame") -> "pd.Series":
    """The level of each trial; 0 where it has no MTD."""
    return levels_of(trials).where(has_mtd(trials), 0.0)


def untraced_runs(trials: "pd.DataFrame") -> "pd.DataFrame":
    """The completed runs without an MTD; their column mtd is set to 0."""
    runs = completed_runs(trials)
    return runs[~has_mtd(runs)].assign(mtd=0.0)


def round_scores(values: Values, scores: "ArrayLike") -> Values:
    """Means of scores, or differences of them, so that those are equal that differ by rounding.

    They get 11 digits of the largest score: 9 decimals for scores in points.
    """
    largest = float(np.nanmax(np.abs(np.asarray(scores, dtype=np.float64)), initial=0))
    decimals = 10 - math.floor(math.log10(largest)) if 0 < largest < math.inf else 9
    return values.round(min(decimals, 300))


def is_missing(values: "pd.Series") -> "pd.Series":
    """Whether each value of a setting is missing: NaN, or empty text."""
    missing = values.isna()
    # this is asked of every setting of a study, most of them numbers
    return missing if values.dtype.kind in "biuf" else missing | (values == "")


def varied_settings(trials: "pd.DataFrame", settings: Collection[str]) -> list[str]:
    """The columns that are settings and differ between these trials, in the order of the frame.

    A missing value counts as a separate value, unless all trials of a method lack the setting: then
    the method does not have it.
    """
    names = []
    methods = trials["method"].factorize(use_na_sentinel=False)[0] if "method" in trials else None
    for name in (str(name) for name in trials if name in settings):
        values = trials[name]
        # an array first: this is asked of every setting of a study, most of them the same in all
        array = values.to_numpy()
        if len(array) < 2 or not (array != array[0]).any():
            continue
        missing = is_missing(values).to_numpy()
        if methods is not None and missing.any():
            is_lacked = np.bincount(methods, missing) == np.bincount(methods)
            values = values[~is_lacked[methods]]
        if values.nunique(dropna=False) > 1:
            names.append(name)
    return names


def free_settings(trials: "pd.DataFrame", settings: Collection[str]) -> list[str]:
    """`varied_settings` that are free: without those that follow from method or batch size.

    They have a value for each of several methods, or are steps that cover equal sentences.
    """
    names = varied_settings(trials, settings)
    if "batch_size" in names:
        names = [name for name in names if not covers_equal_sentences(trials, name)]
    if "method" not in names:
        return names
    within = trials.groupby("method", dropna=False)[names].nunique(dropna=False).gt(1).any()
    return [name for name in names if name == "method" or within[name]]


def varied_parts(runs: "pd.DataFrame") -> list[str]:
    """The settings that make up MTD and differ between runs or configurations."""
    return [name for name in PARTS if name in runs and runs[name].nunique() > 1]


def covers_equal_sentences(trials: "pd.DataFrame", name: str) -> bool:
    """Whether a setting is a number of steps in which all trials see equally many sentences.

    Equal is to within one batch, as a number of steps is whole.
    """
    steps, batch = trials[name], trials["batch_size"]
    if name in ("queue_size", "batch_size") or steps.dtype.kind not in "iuf":
        return False
    numbers = steps.to_numpy(dtype=np.float64)
    is_whole = bool(((numbers >= 1) & (numbers % 1 == 0)).all())
    return is_whole and bool(np.ptp(numbers * batch.to_numpy()) < batch.max())


def choose_evenly(table: "pd.DataFrame", most: int) -> "pd.DataFrame":
    """At most so many rows at even steps, the first and the last among them."""
    if len(table) <= most:
        return table
    return table.iloc[np.linspace(0, len(table) - 1, most).round().astype(int)]
