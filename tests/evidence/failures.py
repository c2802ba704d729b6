"""False verdicts on MTD where runs fail at some learning rates, by simulation.

A study has five levels of MTD at three learning rates, of which the second costs 2 points and the
third 25. Nothing depends on MTD. Runs fail at random, at the highest rate alone, or at the highest
rate and the middle level alone.
"""

from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed

from mtdlab.analysis.inference.pairing import level_scores
from mtdlab.analysis.inference.verdict import judge_levels

LEVELS, LOSSES = (5.0, 8.0, 12.0, 18.0, 28.0), {3e-4: 0.0, 1e-3: 2.0, 3e-3: 25.0}
FAILURES = {"none": 0.0, "a tenth, at random": 0.1, "of the highest rate": 0.3, "of one cell": 0.5}
"""The share of runs that fail, of those that may."""


def draw(failing: str, seeds: int, rng: np.random.Generator) -> pd.DataFrame:
    """The trials of a study."""
    cells = [(seed, *cell) for seed in range(seeds) for cell in product(LEVELS, LOSSES)]
    trials = pd.DataFrame(cells, columns=["seed", "mtd", "learning_rate"])
    may = (trials["learning_rate"] == max(LOSSES)) | (failing == "a tenth, at random")
    may &= (trials["mtd"] == LEVELS[2]) | (failing != "of one cell")
    fails = may & (rng.random(len(trials)) < FAILURES[failing])
    scores = rng.normal(size=len(trials)) + rng.normal(scale=2, size=seeds)[trials["seed"]]
    return trials.assign(
        number=range(len(trials)),
        state=np.where(fails, "FAIL", "COMPLETE"),
        score=60 + scores - trials["learning_rate"].map(LOSSES),
    )


def measure(failing: str, seeds: int, datasets: int, seed: int) -> dict[str, float | str]:
    """One cell: the shares of studies with a peak or a trend, which are false."""
    rng = np.random.default_rng([seed, seeds, [*FAILURES].index(failing)])
    found = [
        judge_levels(level_scores(draw(failing, seeds, rng), ["learning_rate"]))
        for _ in range(datasets)
    ]
    return {
        "failures": failing,
        "seeds": seeds,
        "peaked": float(np.mean([verdict.is_peaked for verdict in found])),
        "trend": float(np.mean([verdict.is_trend for verdict in found])),
        "n": datasets,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bound of false verdicts (Bonferroni over cells)."""
    cells = [
        delayed(measure)(failing, seeds, datasets, seed)
        for failing, seeds in product(FAILURES, (3, 5, 8))
    ]
    table = pd.DataFrame(Parallel(n_jobs=-1)(cells))
    false = table["peaked"] + table["trend"]
    table["false_low99"] = bound_below(false, table["n"], len(table))
    return table
