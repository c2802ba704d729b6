"""What the choice of two configurations does to their difference, by simulation.

A study of L levels, S seeds and P evaluation items chooses the best level, and its runner-up or the
lowest. Their difference is computed from the runs that chose them, as `mtdlab compare STUDY TRIAL
TRIAL` does, and from five fresh seeds with the same items, as `mtdlab confirm` does. The true
difference is that over all seeds and items. Scores are means over items.
"""

from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from mtdlab.analysis.inference.intervals import Estimate, estimate, estimate_over_items
from mtdlab.analysis.measures import Floats

SEEDS, LEVELS, ITEMS = (3, 10), (3, 9), (0.0, 0.5, 1.0)
"""Standard deviations of the items' effect on a level; that of an error is 1."""
_HEIGHTS = (0.0, 1.0)
_FRESH = 5
_COUNT = 300


def _effects(rng: np.random.Generator, levels: int, deviation: float) -> Floats:
    """Effects of the items on each level, (L, P), whose mean has this standard deviation."""
    return np.asarray(deviation * np.sqrt(_COUNT) * rng.standard_normal((levels, _COUNT)))


def _intervals(values: Floats, less: Floats) -> tuple[Estimate, Estimate]:
    """Over seeds and items, and over seeds, of differences (S,) with effects of items (P,)."""
    influences = np.tile(less - less.mean(), (len(values), 1))
    return estimate_over_items(values, influences), estimate(values)


def measure(
    height: float, levels: int, seeds: int, items: float, other: str, datasets: int, seed: int
) -> dict[str, float | str]:
    """One cell: bias in points, coverage of 95 % intervals, and false findings of a difference."""
    rng = np.random.default_rng([seed, levels, seeds, int(10 * items), other == "lowest"])
    true = height * (1 - np.abs(np.linspace(-1, 1, levels)))
    names = [f"{stage}_{kind}" for stage in ("compare", "confirm") for kind in ("bias", "items")]
    sums = dict.fromkeys([*names, "compare_seeds", "confirm_seeds", "confirm_false"], 0.0)
    for _ in range(datasets):
        effects = _effects(rng, levels, items)
        expected = true + effects.mean(axis=1)
        scores = expected + rng.standard_normal((seeds, levels))
        ranks = np.argsort(-scores.mean(axis=0))
        pair = ranks[[0, -1 if other == "lowest" else 1]]
        less, size = effects[pair[0]] - effects[pair[1]], true[pair[0]] - true[pair[1]]
        fresh = expected[pair] + rng.standard_normal((_FRESH, 2))
        for stage, values in (("compare", scores[:, pair]), ("confirm", fresh)):
            both, only = _intervals(values[:, 0] - values[:, 1], less)
            sums[f"{stage}_bias"] += both.mean - size
            sums[f"{stage}_items"] += both.low <= size <= both.high
            sums[f"{stage}_seeds"] += only.low <= size <= only.high
        sums["confirm_false"] += both.low > 0 >= size
    shares = {name: total / datasets for name, total in sums.items()}
    named: dict[str, float | str] = {"less": other, "peak": height, "levels": levels}
    return {**named, "seeds": seeds, "items": items, **shares, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell. Columns: bias of the difference in points, coverage of intervals over seeds and
    items, and over seeds; confirm_false: confirmed although the true difference is not above 0."""
    cells = product(_HEIGHTS, LEVELS, SEEDS, ITEMS, ("runner-up", "lowest"))
    return pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells)
    )
