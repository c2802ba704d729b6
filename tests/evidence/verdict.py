"""Error rates, coverage and power of the verdict on simulated studies: `make evidence`.

A study is S seeds by L levels, evenly spaced in log MTD from 5 to 200; score = truth of the level +
effect of the seed (standard deviation 5) + error (`errors.py`). Cells: 5 curves under every model
of the errors, failed runs at high MTD, and peaks; 3 to 13 seeds, 5 to 20 levels. A verdict is false
where the true scores contradict it: "peaked" where no inner level has a slope up to it and one down
from it; every trend where the slope over all levels or the last level minus the first one has not
its sign; "rising" also where the last level is the margin or more below the best one, and "rising,
lower at the end" where it is the best; "flat" where two levels differ by the margin or more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

import numpy as np
import pandas as pd
from bounds import bound_below
from errors import ERRORS, SKEWED
from joblib import Parallel, delayed

from mtdlab.analysis.inference.blocks import connected_table
from mtdlab.analysis.inference.shapes import Shape, design_tests, slope_contrasts
from mtdlab.analysis.measures import Floats

ALPHA, MARGIN = 0.05, 0.5
SEEDS, LEVELS = (3, 5, 8, 13), (5, 7, 9, 20)
_ROUNDING = 1e-9
_SHAPES: tuple[str, ...] = get_args(Shape)
_DRAWS = {**ERRORS, **SKEWED}
_PATTERNS = 5
"""Designs with failed runs that are drawn for a cell."""


@dataclass(frozen=True)
class Truth:
    """True scores (L,), the model of the errors, and the share of runs that fail at high MTD.

    `uneven`: all levels but the last are close together, from 5 to 8.
    """

    name: str
    scores: Floats
    errors: str = "independent"
    failed: float = 0.0
    uneven: bool = False

    @property
    def distance(self) -> Floats:
        """The levels of MTD, (L,)."""
        levels = len(self.scores)
        if self.uneven:
            return np.append(np.geomspace(5, 8, levels - 1), 200)
        return np.geomspace(5, 200, levels)

    def draw(self, rng: np.random.Generator, tables: int, seeds: int) -> Floats:
        """Simulated studies, (B, S, L)."""
        place = np.linspace(-1, 1, len(self.scores))
        own = rng.normal(scale=5, size=(tables, seeds, 1))
        return np.asarray(self.scores + own + _DRAWS[self.errors](rng, tables, seeds, place))

    def present(self, rng: np.random.Generator, seeds: int) -> Floats:
        """Which runs are complete, (S, L): runs of the last third of the levels may fail."""
        levels = len(self.scores)
        while True:
            failed = rng.random((seeds, levels)) < self.failed
            failed[:, : levels - max(levels // 3, 2)] = False
            by_seed, by_level = connected_table(np.where(failed, np.nan, 0.0))
            if by_seed.all() and by_level.all():
                return ~failed


def list_truths(levels: int) -> Iterator[Truth]:
    """The truths of the table, for a number of levels."""
    place = np.linspace(0, 1, levels)
    tent, cliff = 1 - np.abs(2 * place - 1), np.zeros(levels)
    cliff[-1] = -15.0
    saturated, late, gentle = 5 * np.minimum(4 * place, 1), 5 * place, np.zeros(levels)
    # the best level is the margin above the last one: beside it, or in the middle
    late[-2:] = 5, 5 - MARGIN
    middle = levels // 2
    gentle[: middle + 1] = np.linspace(0, 5, middle + 1)
    gentle[middle + 1 :] = np.linspace(5, 5 - MARGIN, levels - middle)[1:]
    for errors in ERRORS:
        for name, scores in (
            ("flat", 0 * place),
            ("saturated", saturated),
            ("cliff", cliff),
            ("late peak, last level 0.5 below", late),
            ("gentle peak, last level 0.5 below", gentle),
        ):
            yield Truth(name, scores, errors)
    yield Truth("late peak, first level 0.5 below", late[::-1])
    for size in (1, 2):
        yield Truth(f"last level {size} below the best", np.append(5 * place[:-1], 5.0 - size))
    yield Truth("nearly flat (rises by 0.3)", 0.3 * place)
    yield Truth(
        "two factors, not MTD", 2.0 * (np.arange(levels) % 2 + (np.arange(levels) % 3 == 0))
    )
    for name, scores in (("flat", 0 * place), ("saturated", saturated), ("falling", -5 * place)):
        yield Truth(name, scores, failed=0.4)
    for height in (1, 2, 5):
        yield Truth(f"peak of {height}", height * tent)
    for errors in ("noisy first level", "10 % collapsed", "AR(1) 0.5", "slopes of 1"):
        yield Truth("peak of 5", 5 * tent, errors)
    for height in (1, 2, 5, 10):
        yield Truth(f"rise of {height}", height * place)
    for best in ((5, 0, 3, 4.8, 0), (4.1, 0, 0, 2, 3, 4, 0)):
        scores = np.interp(place, np.linspace(0, 1, len(best)), best)
        yield Truth(f"best at the first level, {best}", scores)
    for height in (2, 5):
        yield Truth(f"peak of {height}, uneven levels", height * tent, uneven=True)
        yield Truth(f"valley of {height}, uneven levels", -height * tent, uneven=True)


def find_false(truth: Floats, distance: Floats) -> frozenset[str]:
    """The verdicts that these true scores contradict."""
    up, down = slope_contrasts(distance)
    centred = np.log(distance) - np.log(distance).mean()
    slope, ends = centred @ truth, truth[-1] - truth[0]
    true = {
        "peaked": bool((np.minimum(up @ truth, down @ truth) > _ROUNDING).any()),
        "flat": bool(np.ptp(truth) < MARGIN - _ROUNDING),
        "inconclusive": True,
    }
    trends = ("rising", "end", -1, min(slope, ends)), ("falling", "start", 0, min(-slope, -ends))
    for name, end, at, least in trends:
        is_trend, below = bool(least > _ROUNDING), truth.max() - truth[at]
        true[f"{name}, {end} open"] = is_trend
        true[name] = is_trend and bool(below < MARGIN - _ROUNDING)
        true[f"{name}, lower at the {end}"] = is_trend and bool(below > _ROUNDING)
    return frozenset(name for name, holds in true.items() if not holds)


def measure(truth: Truth, seeds: int, datasets: int, seed: int) -> dict[str, float | str]:
    """One cell of the table: shares of the verdicts, false ones, coverage."""
    levels = len(truth.scores)
    distance = truth.distance
    rng = np.random.default_rng([seed, seeds, levels])
    patterns = _PATTERNS if truth.failed else 1
    best = truth.scores >= truth.scores.max() - _ROUNDING
    centred = truth.scores - truth.scores.mean()
    shapes, kept, inside, everywhere = [], [], [], []
    for _ in range(patterns):
        tests = design_tests(np.asarray(truth.present(rng, seeds), dtype=bool), distance)
        fit = tests.fit(truth.draw(rng, datasets // patterns, seeds))
        found = tests.classify(fit, ALPHA, MARGIN)
        mean, pointwise, simultaneous = tests.estimate_offsets(fit, ALPHA)
        missed = np.abs(mean - centred)
        shapes.append(found.shape)
        kept.append(found.optimal[:, best].mean(axis=1))
        inside.append(missed < pointwise)
        everywhere.append((missed < simultaneous).all(axis=1))
    named, false = np.concatenate(shapes), find_false(truth.scores, distance)
    shares = {name: float((named == name).mean()) for name in _SHAPES}
    within = np.concatenate(inside)
    return {
        "truth": truth.name,
        "errors": "40 % failed at high MTD" if truth.failed else truth.errors,
        "seeds": seeds,
        "levels": levels,
        **shares,
        "false": sum(shares[name] for name in false),
        "pointwise": float(within.mean()),
        "worst_level": float(within.mean(axis=0).min()),
        "simultaneous": float(np.concatenate(everywhere).mean()),
        "best_in_range": float(np.concatenate(kept).mean()),
        "n": len(named),
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bound of its false verdicts (Bonferroni over cells)."""
    designs = [(seeds, levels) for levels in LEVELS for seeds in SEEDS]
    measured = Parallel(n_jobs=-1)(
        delayed(_measure_design)(seeds, levels, datasets, seed) for seeds, levels in designs
    )
    return with_bounds(pd.DataFrame([cell for design in measured for cell in design]))


def with_bounds(table: pd.DataFrame) -> pd.DataFrame:
    """Cells with the lower 99 % bounds of their false verdicts (Bonferroni over cells)."""
    return table.assign(false_low99=bound_below(table["false"], table["n"], len(table)))


def _measure_design(
    seeds: int, levels: int, datasets: int, seed: int
) -> list[dict[str, float | str]]:
    """The cells of one design, which share its simulated critical values."""
    return [measure(truth, seeds, datasets, seed) for truth in list_truths(levels)]
