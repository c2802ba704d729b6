"""Coverage of intervals of a mean over seeds and evaluation items, by simulation.

The runs are those of `items.py`: seeds and graded pairs are drawn at random, and the true mean
score of a level is known. Items count as independent; in some cells they are not, as in data of
one's own whose sentences each stand in several pairs.
"""

import numpy as np
import pandas as pd
from items import simulate, true_scores
from joblib import Parallel, delayed

from mtdlab.analysis.inference.intervals import estimate, estimate_over_items

SEEDS, ITEMS = (3, 5, 10), (70, 500, 1379)
PAIRS = (2, 5, 20)
"""In how many pairs a sentence stands, in further cells of 5 seeds and 500 pairs."""


def measure(seeds: int, items: int, pairs: int, datasets: int, seed: int) -> dict[str, float]:
    """One cell: shares of studies whose interval covers a true mean, and a true difference."""
    rng = np.random.default_rng([seed, seeds, items, pairs])
    first, second = true_scores()[:2]
    found = dict.fromkeys(("mean", "mean_seeds_only", "difference"), 0)
    for _ in range(datasets):
        scores, influences = simulate(rng, seeds, items, levels=2, pairs=pairs)
        less = estimate_over_items(scores[:, 1] - scores[:, 0], influences[:, 1] - influences[:, 0])
        mean, only = estimate_over_items(scores[:, 0], influences[:, 0]), estimate(scores[:, 0])
        found["mean"] += mean.low < first < mean.high
        found["mean_seeds_only"] += only.low < first < only.high
        found["difference"] += less.low < second - first < less.high
    shares = {name: covered / datasets for name, covered in found.items()}
    return {"items": items, "pairs_of_a_sentence": pairs, "seeds": seeds, **shares, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Coverage of 95 % intervals of a mean and of a difference of two levels."""
    cells = [(seeds, items, 1) for items in ITEMS for seeds in SEEDS]
    cells += [(5, 500, pairs) for pairs in PAIRS]
    return pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells)
    )
