"""Coverage of the differences that a page states, between levels and rows chosen by their scores.

Of each simulated study, those of the best level minus the runner-up and minus the lowest, with the
intervals that are simultaneous over all pairs, and whether the best and the lowest differ
significantly. Ordered columns are levels of MTD, as on the first screen; those without an order are
methods, configurations and rows of the paper's experiments. Studies with evaluation items are
judged with and without their sampling error: the true difference is that of all items.

Letters: B simulated studies, S seeds, L levels or rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from errors import ERRORS
from joblib import Parallel, delayed
from scipy import stats

from mtdlab.analysis.inference.blocks import Blocks, Fit
from mtdlab.analysis.inference.shapes import ShapeTests, design_tests, shape_tests
from mtdlab.analysis.measures import Floats

ALPHA, SEEDS, LEVELS = 0.05, (3, 5, 10), (3, 5, 9)
_OWN = 5.0
"""Standard deviation of the seeds' effects on all runs."""
_SHARES = 1.5 ** np.arange(-5, 4)
"""Pooled variances of a table for which critical values with items are simulated; the nearest
serves for a study, in place of its own."""


@dataclass(frozen=True)
class Case:
    """True scores, errors (`errors.py`), and the standard deviation of an item effect of a level.

    Attributes:
        height: of the middle level above the ends (levels), or of the first two rows above the
            others, in standard deviations of an error.
        halves: of rows: what half of them do to a seed.
    """

    name: str
    height: float = 0.0
    errors: str = "independent"
    halves: float = 0.0
    items: float = 0.0

    def truth(self, levels: int, *, ordered: bool) -> Floats:
        if ordered:
            return np.asarray(self.height * (1 - np.abs(np.linspace(-1, 1, levels))))
        return np.where(np.arange(levels) < 2, self.height, 0.0)

    def draw(self, rng: np.random.Generator, tables: int, seeds: int, true: Floats) -> Floats:
        """Scores (B, S, L)."""
        levels = len(true)
        place = np.linspace(-1, 1, levels)
        scores = true + ERRORS[self.errors](rng, tables, seeds, place)
        scores += self.items * rng.standard_normal((tables, 1, levels))
        scores += _OWN * rng.standard_normal((tables, seeds, 1))
        sides = np.where(np.arange(levels) < levels // 2, 1.0, -1.0) / 2
        return np.asarray(scores + self.halves * rng.standard_normal((tables, seeds, 1)) * sides)


_OF_LEVELS = ("AR(1) 0.9", "slopes of 3", "noisy first level", "as measured, 160 steps")
ORDERED = (
    *(Case(f"peak of {height}", height) for height in (0, 1, 3)),
    *(Case(f"peak of {height}", height, errors) for errors in _OF_LEVELS for height in (0, 1)),
    *(Case(f"peak of {height}", height, items=1) for height in (0, 1)),
    Case("peak of 1", 1, "as measured, 160 steps", items=1),
)
ROWS = (
    *(Case(f"two best by {height}", height) for height in (0, 1)),
    *(Case(f"two best by {height}", height, halves=3) for height in (0, 1)),
    Case("two best by 0", 0, "noisy first level"),
    *(Case(f"two best by {height}", height, items=1) for height in (0, 1)),
    Case("two best by 0", 0, halves=3, items=1),
)


@cache
def _tests(seeds: int, levels: int, items: float, share: float, *, ordered: bool) -> ShapeTests:
    """The tests of a design for a table of this pooled variance."""
    distance = np.geomspace(5, 200, levels) if ordered else None
    whole = np.ones((seeds, levels), dtype=bool)
    if not items:
        return design_tests(whole, distance)
    covariance = items**2 * (np.eye(levels) - 1 / levels)
    blocks = Blocks(whole, None if distance is None else np.log(distance))
    rng = np.random.default_rng(0)
    table = rng.standard_normal((seeds, levels))
    table *= np.sqrt(share / float(blocks.fit(table).typical))
    return shape_tests(table, distance, covariance)


def _covered(tests: ShapeTests, fit: Fit, true: Floats) -> Floats:
    """Whether both differences, the one to the runner-up, that to the lowest are covered, and
    whether the last one is significant: (B, 4)."""
    ranks = np.argsort(-fit.effects, axis=-1, kind="stable")
    best, others = ranks[:, 0], (ranks[:, 1], ranks[:, -1])
    places = {pair: at for at, pair in enumerate(_pairs(tests.levels))}
    estimates, widths = tests.all_pairs.intervals(fit, ALPHA)
    parts = []
    for other in others:
        at = [places[max(one, two), min(one, two)] for one, two in zip(best, other, strict=True)]
        sign = np.where(best > other, 1.0, -1.0)
        rows = np.arange(len(best))
        size, width = sign * estimates[rows, at], widths[rows, at]
        parts.append((np.abs(size - (true[best] - true[other])) <= width, size - width > 0))
    (runner_up, _), (lowest, found) = parts
    return np.stack([runner_up & lowest, runner_up, lowest, found], axis=-1)


def _pairs(levels: int) -> Sequence[tuple[int, int]]:
    """The later and the earlier level of each contrast of `ShapeTests.all_pairs`."""
    return [(later, earlier) for earlier in range(levels) for later in range(earlier + 1, levels)]


def measure(
    case: Case, seeds: int, levels: int, datasets: int, seed: int, *, ordered: bool
) -> dict[str, float | str]:
    """One cell of differences."""
    rng = np.random.default_rng([seed, seeds, levels, ordered])
    true = case.truth(levels, ordered=ordered)
    scores = case.draw(rng, datasets, seeds, true)
    plain = _tests(seeds, levels, 0.0, 1.0, ordered=ordered)
    fit = plain.fit(scores)
    only = _covered(plain, fit, true)
    both = only
    if case.items:
        both = np.zeros_like(only)
        nearest = np.abs(np.log(fit.typical[:, None] / _SHARES)).argmin(axis=-1)
        for at in np.unique(nearest):
            chosen = nearest == at
            tests = _tests(seeds, levels, case.items, float(_SHARES[at]), ordered=ordered)
            both[chosen] = _covered(tests, tests.fit(scores[chosen]), true)
    names = ("both", "runner_up", "lowest", "significant")
    errors = f"{case.errors}, halves deviate by {case.halves:g}" if case.halves else case.errors
    return {
        "columns": "levels" if ordered else "rows",
        "truth": case.name,
        "errors": errors,
        "items": case.items,
        "seeds": seeds,
        "levels": levels,
        **dict(zip(names, both.mean(axis=0).tolist(), strict=True)),
        "both_seeds_only": float(only[:, 0].mean()),
        "significant_seeds_only": float(only[:, 3].mean()),
        "null": case.height == 0,
        "n": datasets,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with 99 % bounds (Bonferroni over cells): the upper one of coverage, the lower
    one of false differences."""
    designs = list(product(LEVELS, SEEDS))
    cells = [
        delayed(measure)(case, seeds, levels, datasets, seed, ordered=ordered)
        for ordered, cases in ((True, ORDERED), (False, ROWS))
        for levels, seeds in designs
        for case in cases
    ]
    table = pd.DataFrame(Parallel(n_jobs=-1)(cells))
    level = 1 - 2 * 0.01 / len(table)
    intervals = {
        kind: [
            stats.binomtest(round(share * n), n).proportion_ci(level)
            for share, n in zip(table[kind], table["n"], strict=True)
        ]
        for kind in ("both", "significant")
    }
    false = [found.low for found in intervals["significant"]]
    return table.assign(
        both_high99=[found.high for found in intervals["both"]],
        false_low99=np.where(table["null"], false, np.nan),
    )
