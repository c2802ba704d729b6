"""What a choice by noisy scores does to what is stated of the chosen: its mean, and differences.

Scores of a run have an error of standard deviation 1, as does each seed of a choice. Letters: B
simulated studies, C configurations, S seeds, V values of a nuisance setting.
"""

from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from mtdlab.analysis.inference.shapes import design_tests
from mtdlab.analysis.measures import Floats

CONFIGURATIONS, SEEDS = (1, 5, 30, 100), (3, 5, 10)
CHOICE_SEEDS, APART = (2, 3, 5, 10, 20), (0.0, 0.5, 1.0, 2.0)
COMPARED, REPORTED, VALUES = 4, 8, 3
ALPHA = 0.05


def measure_mean(configurations: int, seeds: int, rng: np.random.Generator, n: int) -> dict:
    """Of equal configurations: how far the highest mean is too high, and its t interval's rate."""
    scores = rng.standard_normal((n, configurations, seeds))
    best = scores.mean(axis=-1).argmax(axis=-1)
    chosen = scores[np.arange(n), best]
    mean, error = chosen.mean(axis=-1), chosen.std(axis=-1, ddof=1) / np.sqrt(seeds)
    covered = np.abs(mean) <= stats.t.isf(ALPHA / 2, seeds - 1) * error
    return {"bias": float(mean.mean() * np.sqrt(seeds)), "covered": float(covered.mean())}


def measure_difference(own: int, apart: float, rng: np.random.Generator, n: int) -> dict:
    """Of configurations that are equal at their best value: whether any two differ significantly.

    The best of three values is that in the middle; each other one is lower by `apart`.
    """
    value = -apart * np.abs(np.arange(VALUES) - VALUES // 2).astype(np.float64)
    tried = value + rng.standard_normal((n, COMPARED, VALUES)) / np.sqrt(own)
    truth: Floats = value[tried.argmax(axis=-1)]
    scores = truth[:, None, :] + rng.standard_normal((n, REPORTED, COMPARED))
    tests = design_tests(np.ones((REPORTED, COMPARED), dtype=bool), None)
    estimate, width = tests.all_pairs.intervals(tests.fit(scores), ALPHA)
    return {"differ": float((np.abs(estimate) > width).any(axis=-1).mean())}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Cells of the chosen mean, then of differences at chosen values."""
    found = []
    for count, seeds in product(CONFIGURATIONS, SEEDS):
        rng = np.random.default_rng([seed, count, seeds])
        cell = {"configurations": count, "seeds": seeds}
        found.append(cell | measure_mean(count, seeds, rng, datasets) | {"n": datasets})
    for own, apart in product(CHOICE_SEEDS, APART):
        rng = np.random.default_rng([seed, own, int(10 * apart)])
        cell = {"configurations": COMPARED, "seeds": REPORTED, "choice_seeds": own, "apart": apart}
        found.append(cell | measure_difference(own, apart, rng, datasets) | {"n": datasets})
    return pd.DataFrame(found)
