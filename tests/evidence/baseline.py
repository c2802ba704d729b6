"""Error rates of the differences between a baseline and the configurations of a search.

A study is S seeds by a baseline and L levels; score = effect of the level + deviations of the seed
+ effects of the evaluation items + error of standard deviation 1. The levels differ by nothing, or
rise by `range` from the first to the last; the baseline has the true score of the first level.
Letters: B simulated studies, S seeds, L levels.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed

from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.statistics.baseline import compare_first

Rates = dict[str, float | str]
ALPHA = 0.05
SEEDS, LEVELS, RANGES = (3, 5, 10), (2, 3, 5, 9), (0.0, 2.0)


@dataclass(frozen=True)
class Case:
    """Standard deviations beside the error: of what a seed does to the baseline alone, and as a
    slope over the levels; of the error of the baseline (1); of the items on each column; of an
    exponential part of the baseline's error, whose tail is down.
    """

    name: str
    own: float = 0.0
    slope: float = 0.0
    noise: float = 1.0
    items: float = 0.0
    skewed: float = 0.0

    def draw(self, rng: np.random.Generator, tables: int, seeds: int, levels: int) -> Floats:
        """Errors (B, S, 1 + L), those of the baseline first."""
        scores = rng.standard_normal((tables, seeds, 1 + levels))
        scores[..., 0] *= self.noise
        scores[..., 0] += self.own * rng.standard_normal((tables, seeds))
        scores[..., 0] -= self.skewed * (rng.standard_exponential((tables, seeds)) - 1)
        places = np.linspace(-1, 1, levels)
        scores[..., 1:] += self.slope * rng.standard_normal((tables, seeds, 1)) * places
        scores += self.items * rng.standard_normal((tables, 1, 1 + levels))
        return np.asarray(scores)


CASES = (
    Case("independent"),
    Case("the baseline, 1", own=1),
    Case("the baseline, 3", own=3),
    Case("slopes over the levels, 1", slope=1),
    Case("slopes over the levels, 3", slope=3),
    Case("the baseline and slopes, 3", own=3, slope=3),
    Case("a baseline with a third of the noise", noise=1 / 3),
    Case("a baseline with three times the noise", noise=3),
    Case("a baseline with skewed errors, 3", skewed=3),
    Case("items, 1", items=1),
    Case("the baseline, 1, and items, 1", own=1, items=1),
)


def measure(levels: int, seeds: int, rises: float, case: Case, datasets: int, seed: int) -> Rates:
    """One cell: shares of studies whose intervals exclude a true difference.

    best: the interval of the level with the highest mean; any: that of at least one level.
    """
    rng = np.random.default_rng([seed, seeds, levels])
    truth = np.concatenate([[0.0], np.linspace(0, rises, levels)])
    tables = case.draw(rng, datasets, seeds, levels) + truth
    items = case.items**2 * (np.eye(1 + levels) - 1 / (1 + levels)) if case.items else None
    fit = Blocks(np.ones((seeds, 1 + levels), dtype=bool)).fit(tables, items)
    family, _ = compare_first(tables[0], items)
    estimates, widths = family.intervals(fit, ALPHA)
    excluded = np.abs(estimates + truth[1:]) > widths
    best = tables.mean(axis=1)[:, 1:].argmax(axis=1)
    rates = {
        "best": float(excluded[np.arange(datasets), best].mean()),
        "any": float(excluded.any(axis=1).mean()),
    }
    named: Rates = {"levels": levels, "seeds": seeds, "range": rises, "deviates": case.name}
    return {**named, **rates, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bounds of the shares (Bonferroni over cells)."""
    cells = list(product(LEVELS, SEEDS, RANGES, CASES))
    table = pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells)
    )
    for kind in ("best", "any"):
        table[f"{kind}_low99"] = bound_below(table[kind], table["n"], len(table))
    return table
