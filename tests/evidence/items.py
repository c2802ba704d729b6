"""Coverage of intervals over seeds and evaluation items, by simulation.

A study has three levels whose runs score P graded pairs, drawn at random like the seeds. The
similarity of a pair in a run = slope of the run * gold + noise that all runs share + noise of the
level + noise of the run; the score is 100 times Spearman's correlation with gold. Slopes differ by
level and by seed. Gold and similarities are normal, so that the true mean score of a level is known
(Pearson 1907): the mean over seeds of 6 / pi * asin(r / 2). The scatter is like that measured on
the built-in data: between seeds 0.6 points, of a difference between levels over drawn pairs 0.3
points at 1,379 pairs.

Letters: S seeds, P items.
"""

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import stats

from mtdlab.analysis.data.items import ItemScores, influences
from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.intervals import estimate, estimate_over_items
from mtdlab.analysis.inference.shapes import shape_tests
from mtdlab.analysis.measures import Floats

SEEDS, ITEMS = (3, 5, 8, 12, 20), (70, 500, 1379, 3000)
_SLOPES = np.array([0.60, 0.62, 0.63])
_SEED_SLOPE, _SHARED, _LEVEL, _RUN = 0.008, 0.8, 0.1, 0.15
_DISTANCE = np.array([10.0, 18, 208])
_ALPHA = 0.05
_SIMULTANEOUS = 10
"""One data set in so many is also judged with simulated critical values, which take longer."""


def true_scores() -> Floats:
    """Expected score of each level over seeds and items, (3,)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    slopes = _SLOPES[:, None] + _SEED_SLOPE * nodes
    noise = _SHARED**2 + _LEVEL**2 + _RUN**2
    correlation = slopes / np.sqrt(slopes**2 + noise)
    return np.asarray(600 / np.pi * np.arcsin(correlation / 2) @ weights / weights.sum())


def simulate(
    rng: np.random.Generator, seeds: int, items: int, *, levels: int = 3, pairs: int = 1
) -> tuple[Floats, Floats]:
    """Scores of a study, (S, L), and the influences of its items, (S, L, P); the first L levels.

    `pairs`: in how many pairs a sentence stands; gold, shared noise and that of the level are sums
    over the two sentences of a pair, as large as where every sentence stands in one.
    """
    if pairs > 1:
        sentences = -(-2 * items // pairs)
        named = rng.permutation(np.repeat(np.arange(sentences), pairs))[: 2 * items]
        parts = rng.standard_normal((2 + levels, sentences))[:, named.reshape(2, items)]
        gold, shared, *noise = parts.sum(axis=1) / np.sqrt(2)
    else:
        gold, shared = rng.standard_normal((2, items))
    slopes = _SLOPES[:levels] + _SEED_SLOPE * rng.standard_normal((seeds, levels))
    level = _LEVEL * (np.array(noise) if pairs > 1 else rng.standard_normal((levels, items)))
    run = _RUN * rng.standard_normal((seeds, levels, items))
    values = slopes[..., None] * gold + _SHARED * shared + level + run
    scored = ItemScores(
        numbers=np.arange(levels * seeds),
        values=values.reshape(levels * seeds, items).astype(np.float32),
        gold=gold,
        tasks={"pairs": items},
        digest="",
    )
    ranks = stats.rankdata(scored.values, axis=1), stats.rankdata(gold)
    scores = 100 * np.corrcoef(*ranks)[-1, :-1]
    return scores.reshape(seeds, levels), influences(scored).reshape(seeds, levels, items)


def measure(seeds: int, items: int, datasets: int, seed: int) -> dict[str, float]:
    """One cell: shares of data sets whose intervals cover the true values."""
    rng = np.random.default_rng([seed, seeds, items])
    true = true_scores()
    blocks = Blocks(np.ones((seeds, 3), dtype=bool))
    both, only_seeds, everywhere, differences = [], [], [], []
    for index in range(datasets):
        scores, influences = simulate(rng, seeds, items)
        values = scores[:, 1] - scores[:, 0]
        expected = true[1] - true[0]
        found = estimate_over_items(values, influences[:, 1] - influences[:, 0])
        naive = estimate(values)
        both.append(found.low < expected < found.high)
        only_seeds.append(naive.low < expected < naive.high)
        differences.append(values.mean() - expected)
        if index % _SIMULTANEOUS == 0:
            covariance = blocks.item_covariance(np.moveaxis(influences, -1, 0))
            tests = shape_tests(scores, _DISTANCE, covariance)
            mean, _, width = tests.estimate_offsets(tests.fit(scores), _ALPHA)
            everywhere.append(bool((np.abs(mean - (true - true.mean())) < width).all()))
    return {
        "items": items,
        "seeds": seeds,
        "seeds_and_items": float(np.mean(both)),
        "seeds_only": float(np.mean(only_seeds)),
        "deviation": float(np.std(differences)),
        "n": datasets,
        "simultaneous": float(np.mean(everywhere)),
        "n_simultaneous": len(everywhere),
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Coverage of 95 % intervals of a difference between two levels, and of all offsets at once."""
    cells = [(seeds, items) for items in ITEMS for seeds in SEEDS]
    return pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells)
    )
