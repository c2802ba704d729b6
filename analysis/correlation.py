"""Rank correlation of the score with MTD within each seed.

Letters: S seeds, L levels of MTD. Sources: Spearman (1904), Kendall (1938, tau-b), Chatterjee
(JASA 2021, xi). Spearman and Kendall measure a monotone relation and are near 0 for an inverted U;
xi measures whether the score is a function of MTD, monotone or not.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.intervals import check_level, estimate
from analysis.runs import traced_runs

Floats = NDArray[np.float64]

MIN_LEVELS = 3


def _spearman(mtd: Floats, score: Floats) -> float:
    return float(np.corrcoef(_mid_ranks(mtd), _mid_ranks(score))[0, 1])


def _kendall(mtd: Floats, score: Floats) -> float:
    """tau-b of all pairs."""
    first, second = (np.sign(np.subtract.outer(each, each)) for each in (mtd, score))
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))


def _chatterjee(mtd: Floats, score: Floats) -> float:
    """xi of scores in the order of MTD, equation 1.1 (with ties among the scores)."""
    ordered = score[np.argsort(mtd, kind="stable")]
    up = (ordered[:, None] >= ordered).sum(axis=1)
    down = (ordered[:, None] <= ordered).sum(axis=1)
    n = len(ordered)
    return float(1 - n * np.abs(np.diff(up)).sum() / (2 * (down * (n - down)).sum()))


def _mid_ranks(values: Floats) -> Floats:
    return np.asarray(pd.Series(values).rank(), dtype=np.float64)


# Not `scipy.stats`, whose import takes longer than all other statistics of a page.
MEASURES: Mapping[str, Callable[[Floats, Floats], float]] = {
    "Spearman": _spearman,
    "Kendall": _kendall,
    "Chatterjee xi": _chatterjee,
}
_COLUMNS = ["measure", "seeds", "levels", "mean", "low", "high"]


def compute_correlations(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Rank correlations of score and MTD within each seed, as means over seeds.

    trials  `StudyFrames.trials`.

    A seed's runs at one level are averaged first, so that each level counts once; seeds with fewer
    than 3 levels, or with all scores equal, are left out. Returns measure, seeds, levels (the
    smallest number of a seed), mean, low, high: a row per measure with the t interval over seeds,
    NaN for one seed; no rows without a usable seed. xi of L levels is at most (L - 2) / (L + 1),
    its value for every strictly monotone relation. Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    means = traced_runs(trials).groupby(["seed", "mtd"])["score"].mean().reset_index()
    usable = [
        (seed["mtd"].to_numpy(dtype=np.float64), seed["score"].to_numpy(dtype=np.float64))
        for _, seed in means.groupby("seed")
        if len(seed) >= MIN_LEVELS and seed["score"].nunique() > 1
    ]
    if not usable:
        return pd.DataFrame(columns=_COLUMNS)
    fewest = min(len(mtd) for mtd, _ in usable)
    rows = []
    for name, measure in MEASURES.items():
        values = np.array([measure(mtd, score) for mtd, score in usable])
        found = estimate(values, level)
        rows.append((name, len(values), fewest, found.mean, found.low, found.high))
    return pd.DataFrame(rows, columns=_COLUMNS)
