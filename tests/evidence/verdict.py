"""Error rates, coverage and power of the verdict on simulated studies: `make evidence`.

A study is S seeds by L levels, evenly spaced in log MTD from 5 to 200; score = truth of the level +
effect of the seed (standard deviation 5) + error. Cells: 16 truths, 2 to 10 seeds, 5 to 20 levels.
A verdict is false where the true scores contradict it: "peaked" where no inner level has a slope up
to it and one down from it, "rising" or "falling" where the slope over all levels has not that sign,
"flat" where a level lies the margin or more from the mean.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from competitors import is_peaked_by_seed, pooled_rule
from joblib import Parallel, delayed
from scipy import stats

from analysis.blocks import Floats
from analysis.inference import ShapeTests, slope_contrasts

ALPHA, MARGIN = 0.05, 0.5
SEEDS, LEVELS = (2, 3, 5, 10), (5, 9, 20)
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Truth:
    """True scores (L,), standard deviations of the errors (L,), and the share of collapsed runs.

    A collapsed run scores 15 points less.
    """

    name: str
    scores: Floats
    deviations: Floats
    collapsed: float = 0.0

    def draw(self, rng: np.random.Generator, tables: int, seeds: int) -> Floats:
        """Simulated studies, (B, S, L)."""
        shape = (tables, seeds, len(self.scores))
        error = rng.standard_normal(shape) * self.deviations
        lost = 15 * (rng.random(shape) < self.collapsed)
        return self.scores + rng.normal(scale=5, size=(*shape[:2], 1)) + error - lost


def list_truths(levels: int) -> Iterator[Truth]:
    """The truths of the table, for a number of levels."""
    place = np.linspace(0, 1, levels)
    tent, even = 1 - np.abs(2 * place - 1), np.ones(levels)
    saturating = 5 * np.minimum(4 * place, 1)
    noisy = even.copy()
    noisy[0] = 4  # as measured without in-batch negatives
    factors = 2 * (np.arange(levels) % 2) + 2 * (np.arange(levels) % 3 == 0)
    yield Truth("flat", 0 * place, even)
    yield Truth("nearly flat (rises by 0.3)", 0.3 * place, even)
    for height in (1, 2, 5):
        yield Truth(f"peak of {height}", height * tent, even)
    yield Truth("peak of 5, error 2", 5 * tent, 2 * even)
    yield Truth("rising, saturated", saturating, even)
    yield Truth("falling", -5 * place, even)
    yield Truth("two factors, not MTD", factors.astype(float), even)
    yield Truth("noisy first level, flat", 0 * place, noisy)
    yield Truth("noisy first level, saturated", saturating, noisy)
    yield Truth("noisy first level, falling late", saturating[::-1], noisy)
    yield Truth("noisy first level, peak of 5", 5 * tent, noisy)
    yield Truth("10 % collapsed, flat", 0 * place, even, 0.1)
    yield Truth("10 % collapsed, saturated", saturating, even, 0.1)
    yield Truth("10 % collapsed, peak of 5", 5 * tent, even, 0.1)


def find_false(truth: Floats, distance: Floats) -> frozenset[str]:
    """The verdicts that these true scores contradict."""
    up, down = slope_contrasts(distance)
    centred = np.log(distance) - np.log(distance).mean()
    slope = centred @ truth
    true = {
        "peaked": bool((np.minimum(up @ truth, down @ truth) > _ROUNDING).any()),
        "rising": bool(slope > _ROUNDING),
        "falling": bool(slope < -_ROUNDING),
        "flat": bool(np.abs(truth - truth.mean()).max() < MARGIN),
    }
    return frozenset(name for name, holds in true.items() if not holds)


def measure(truth: Truth, seeds: int, datasets: int, seed: int) -> dict[str, float | str]:
    """One cell of the table: shares of the verdicts, false ones, coverage, other rules."""
    levels = len(truth.scores)
    distance = np.geomspace(5, 200, levels)
    tests = ShapeTests(np.ones((seeds, levels), dtype=bool), distance)
    tables = truth.draw(np.random.default_rng([seed, seeds, levels]), datasets, seeds)
    judged = [tests.classify(table, ALPHA, MARGIN) for table in tables]
    shapes = np.array([each.shape for each in judged])
    false = find_false(truth.scores, distance)
    centred = truth.scores - truth.scores.mean()
    offsets = [tests.estimate_offsets(table, ALPHA) for table in tables]
    missed = np.array([np.abs(each.mean - centred) for each in offsets])
    inside = missed < np.array([each.pointwise for each in offsets])
    everywhere = (missed < np.array([each.simultaneous for each in offsets])).all(axis=1)
    best = truth.scores >= truth.scores.max() - _ROUNDING
    kept = [each.optimal[best].mean() for each in judged]
    shares = {
        name: float((shapes == name).mean())
        for name in ("flat", "rising", "falling", "peaked", "inconclusive")
    }
    by_seed = [is_peaked_by_seed(table, distance) for table in tables]
    return {
        "truth": truth.name,
        "seeds": seeds,
        "levels": levels,
        **shares,
        "false_peaks": shares["peaked"] * ("peaked" in false),
        "false_trends": sum(shares[name] for name in ("rising", "falling") if name in false),
        "false_flat": shares["flat"] * ("flat" in false),
        "pointwise": float(inside.mean()),
        "worst_level": float(inside.mean(axis=0).min()),
        "simultaneous": float(everywhere.mean()),
        "best_in_range": float(np.mean(kept)),
        "pooled_peaked": float(pooled_rule(seeds, tuple(distance)).is_peaked(tables).mean()),
        "by_seed_peaked": float(np.mean(by_seed)),
        "n": datasets,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bound of its false verdicts (Clopper and Pearson)."""
    cells = [
        (truth, seeds) for levels in LEVELS for truth in list_truths(levels) for seeds in SEEDS
    ]
    measured = Parallel(n_jobs=-1)(
        delayed(measure)(truth, seeds, datasets, seed) for truth, seeds in cells
    )
    table = pd.DataFrame(measured)
    for kind in ("peaks", "trends", "flat"):
        false = (table[f"false_{kind}"] * table["n"]).round().astype(int)
        bounds = [
            stats.binomtest(count, n).proportion_ci(0.98).low
            for count, n in zip(false, table["n"], strict=True)
        ]
        table[f"false_{kind}_low99"] = bounds
    return table
