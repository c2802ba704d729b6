"""Measured half-life of keys: how fast the key of a sentence changes during training.

Letters: c(L) mean cosine of a sentence's key now and L steps ago, b mean cosine of different
sentences' keys now, both over the same probes of a run.

    retained(L) = (c(L) - b) / (1 - b)

is 1 where keys do not change and 0 where an old key is no more similar to the sentence's present
key than the key of another sentence. The half-life is the lag in steps at which it falls to one
half. Limitations:

- It is a mean over the run. Since the learning rate decays, keys change faster early in a run.
- Lag L needs a probe L steps earlier, so probes in the first L steps do not contribute to it.
- A half-life above the longest lag is recorded as infinite (right-censored). Below the shortest
  lag it is interpolated between that lag and lag 0, where 1 is retained.
- A shift or rotation that all keys share counts as change, as it does for the keys of a queue.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from mtdlab.analysis.data.runs import is_missing, traced_runs, varied_settings
from mtdlab.analysis.inference.intervals import estimate, summarise
from mtdlab.analysis.measures.trace import COMPONENTS

HALF = 0.5
COLLAPSED = 1e-6
"""The smallest 1 - b: below it keys have collapsed, and rounding errors dominate `retained`."""
MIN_RUNS = 3
"""The fewest runs of a seed with which its rank correlation is computed."""
HISTORY = ("mtd", *COMPONENTS)
"""The MTD and its components: K raises the MTD, but need not change a half-life as η does."""
OUTCOMES = ("alignment", "uniformity", "score")


def compute_retained(probes: pd.DataFrame) -> pd.DataFrame:
    """Retained similarity of each trial's keys at each lag, averaged over the probes of its run.

    Columns: number, lag, by which rows are sorted, probes (how many are averaged), cosine c,
    cosine_different b, retained; retained is NaN where the keys have collapsed.
    """
    known = probes[np.isfinite(probes["cosine"]) & np.isfinite(probes["cosine_different"])]
    means = {name: (name, "mean") for name in ("cosine", "cosine_different")}
    groups = known.groupby(["number", "lag"])
    table: pd.DataFrame = groups.agg(probes=("cosine", "size"), **means).reset_index()
    different = table["cosine_different"]
    apart = 1 - different
    table["retained"] = ((table["cosine"] - different) / apart).where(apart > COLLAPSED)
    return table


def half_life(lags: ArrayLike, retained: ArrayLike) -> float:
    """The lag at which `retained` first falls to one half, in the unit of `lags`.

    Linear interpolation between lags, with 1 at lag 0. Infinite if `retained` stays above one half;
    NaN without a lag or with a missing value.
    """
    at = np.concatenate([[0.0], np.asarray(lags, dtype=np.float64)])
    values = np.concatenate([[1.0], np.asarray(retained, dtype=np.float64)])
    if len(at) == 1 or not np.isfinite(values).all():
        return np.nan
    below = np.flatnonzero(values <= HALF)
    if not len(below):
        return np.inf
    after = int(below[0])
    before = after - 1
    share = (values[before] - HALF) / (values[before] - values[after])
    return float(at[before] + share * (at[after] - at[before]))


def compute_half_lives(retained: pd.DataFrame) -> pd.DataFrame:
    """The half-life of each trial's keys in steps, of `compute_retained`.

    Columns: number, half_life, longest_lag.
    """
    rows = [
        (number, half_life(trial["lag"], trial["retained"]), trial["lag"].max())
        for number, trial in retained.groupby("number")
    ]
    columns = {"number": "int64", "half_life": "float64", "longest_lag": "int64"}
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def compute_history_runs(trials: pd.DataFrame, half_lives: pd.DataFrame) -> pd.DataFrame:
    """The completed runs with an MTD and a measured half-life, which may be infinite.

    Columns: those of trials, then half_life and longest_lag.
    """
    runs = traced_runs(trials).merge(half_lives, on="number")
    return runs[runs["half_life"].notna()].reset_index(drop=True)


def summarise_half_lives(runs: pd.DataFrame, settings: Collection[str] = ()) -> pd.DataFrame:
    """Mean half-life by configuration, of `compute_history_runs`, with its t interval over seeds.

    A configuration is the values of the settings that vary and that every run has; without
    settings, of MTD alone. Columns: these, mtd, n (runs), seeds, mean, low, high, median (over the
    runs), and beyond: how many runs are censored (half-life longer than their longest lag). Mean
    and interval are NaN if any run is; the median is infinite if at least half of the runs are.
    """
    varied = [name for name in varied_settings(runs, settings) if not is_missing(runs[name]).any()]
    by = [*dict.fromkeys([*varied, "mtd"])]
    beyond = np.isinf(runs["half_life"])
    finite = runs.assign(half_life=runs["half_life"].where(~beyond, runs["longest_lag"]))
    table = summarise(finite, by=by, value="half_life")
    groups = runs.assign(beyond=beyond).groupby(by)
    table["median"] = groups["half_life"].median().to_numpy()
    table["beyond"] = groups["beyond"].sum().to_numpy()
    table.loc[table["beyond"] > 0, ["mean", "low", "high"]] = np.nan
    return table


def compute_retained_curves(runs: pd.DataFrame, retained: pd.DataFrame) -> pd.DataFrame:
    """Mean of `compute_retained` at each level of MTD and lag, for `compute_history_runs`.

    Columns: mtd, lag, n (runs), seeds, mean, low, high, cosine, cosine_different.
    """
    joined = runs[["number", "seed", "mtd"]].merge(retained, on="number")
    by = ["mtd", "lag"]
    table = summarise(joined, by=by, value="retained")
    cosines = joined.groupby(by)[["cosine", "cosine_different"]].mean().reset_index()
    return table.merge(cosines, on=by)


def correlate_history(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean over seeds of Spearman's correlation over the runs of a seed, with its t interval.

    `runs` is `compute_history_runs`; infinite half-lives are tied at the highest rank. Columns:
    first, second (half_life with each of `HISTORY` and `OUTCOMES`, then mtd with each of
    `OUTCOMES`), seeds, trials (the smallest number of a seed), mean, low, high, clipped to -1 to 1.
    Used are seeds with at least three runs that are not all equal; a pair without such a seed is
    left out.
    """
    pairs = [("half_life", name) for name in HISTORY + OUTCOMES]
    pairs += [("mtd", name) for name in OUTCOMES]
    rows = []
    for first, second in pairs:
        seeds = runs.dropna(subset=[first, second]).groupby("seed")
        ranked = [seed[[first, second]].rank() for _, seed in seeds]
        used = [ranks for ranks in ranked if len(ranks) >= MIN_RUNS and (ranks.nunique() > 1).all()]
        if used:
            mean = estimate(np.array([ranks[first].corr(ranks[second]) for ranks in used]))
            low, high = np.clip([mean.low, mean.high], -1.0, 1.0).tolist()
            rows.append((first, second, len(used), min(map(len, used)), mean.mean, low, high))
    columns = ["first", "second", "seeds", "trials", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
