"""Runs, power and false verdicts of studies that add seeds until their verdict is decided.

Nine levels of MTD, at most 10 seeds, looks at 3, 5, 7 and 10; margin 0.5, alpha 0.05. Rules:

- fixed: all 90 runs, one verdict.
- until: as a sweep does it, with the leading levels first (`mtdlab.analysis.inference.looks`).
- AdaStop: Mathieu et al. (Transactions on Machine Learning Research 2023): group-sequential
  permutation tests with step-down, alpha / 4 spent at each look, on the same looks. Runs are
  compared without regard to their seeds. Of its pairs of levels only those that a peak needs are
  compared, each inner level with both ends; a level stops when all its comparisons are decided, and
  the study when one inner level is above both ends.

Letters: B data sets, S seeds, L levels, P permutations.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pandas as pd
from errors import ERRORS
from numpy.typing import NDArray
from verdict import find_false, with_bounds

from mtdlab.analysis.inference.blocks import Fit
from mtdlab.analysis.inference.looks import LEADING_LEVEL, boundaries_at, leading_levels
from mtdlab.analysis.inference.shapes import UNDECIDED, ShapeTests, design_tests, shape_tests
from mtdlab.analysis.measures import Floats

Indices = NDArray[np.intp]

ALPHA, MARGIN, SEED_EFFECT, PERMUTATIONS = 0.05, 0.5, 2.0, 400
LEVELS, LOOKS = np.geomspace(5, 200, 9), (3, 5, 7, 10)
_PLACE = np.linspace(-1, 1, len(LEVELS))

TRUTHS: dict[str, Floats] = {
    "flat": np.zeros(9),
    "rising with saturation, 5 points": 5 * (1 - np.exp(-3 * (_PLACE + 1))),
    "falling, 5 points": -2.5 * _PLACE,
    "late peak, last level 0.5 below": np.array([0.0, 0.6, 1.2, 1.9, 2.5, 3.1, 3.8, 5, 4.5]),
    "peak of 1 point": -(_PLACE**2),
    "peak of 2 points": -2 * _PLACE**2,
    "peak of 5 points": -5 * _PLACE**2,
}
NULLS = ("flat", "rising with saturation, 5 points", "falling, 5 points")
"""Truths without a peak."""
DEVIATIONS = (1.0, 2.0, 3.0)
CORRELATED = (
    *("AR(1) 0.5", "AR(1) 0.9", "slopes of 3", "slopes and curvatures of 3"),
    "noisy first level",
)
"""Models of errors that are not independent within a seed, or not of one variance."""
LATE = "late peak, last level 0.5 below"


@dataclass
class Outcome:
    """Verdict of each of B data sets, the runs that it took, and the estimates, (B, L)."""

    verdict: NDArray[np.object_]
    runs: Floats
    effects: Floats = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True)
class Plan:
    """The levels of MTD of a study with `until`, in steps, and the seeds of its looks."""

    levels: tuple[float, ...]
    looks: tuple[int, ...]

    def next_design(
        self, counts: tuple[int, ...], look: int, optimal: NDArray[np.bool_], *, leading: bool
    ) -> tuple[int, ...]:
        """The seeds of each level at the look after `look`, as a sweep adds them."""
        seeds = self.looks[look + 1]
        if not leading or look + 2 == len(self.looks):
            return (seeds,) * len(self.levels)
        chosen = leading_levels(self.levels, np.array(self.levels)[optimal].tolist())
        pairs = zip(self.levels, counts, strict=True)
        return tuple(seeds if level in chosen else count for level, count in pairs)


PLAN = Plan(tuple(LEVELS.tolist()), LOOKS)


@lru_cache(maxsize=256)
def tests_of(counts: tuple[int, ...], levels: tuple[float, ...]) -> ShapeTests:
    """The tests of a design in which level i has the first counts[i] seeds."""
    return design_tests(np.arange(max(counts))[:, None] < np.array(counts), np.array(levels))


def judge(
    tests: ShapeTests, fit: Fit, alpha: float
) -> tuple[NDArray[np.object_], NDArray[np.bool_]]:
    """Verdicts of B tables.

    And which levels are optimal at the level of confidence at which they get the next seeds, (B,
    L).
    """
    found = tests.classify(fit, alpha, MARGIN)
    return found.shape, tests.find_optimal(fit, 1 - LEADING_LEVEL)


def simulate(truth: str, errors: str, deviation: float, datasets: int, seed: int) -> Floats:
    """Scores of B data sets, (B, S, L); errors: a name in `errors.ERRORS`."""
    key = zlib.crc32(f"{truth} {deviation}".encode())
    random = np.random.default_rng([seed, key])
    seeds = SEED_EFFECT * random.standard_normal((datasets, LOOKS[-1], 1))
    drawn = ERRORS[errors](random, datasets, LOOKS[-1], _PLACE)
    return np.asarray(TRUTHS[truth] + seeds + deviation * drawn)


def run_fixed(scores: Floats) -> Outcome:
    """All runs, one verdict."""
    tests = tests_of((LOOKS[-1],) * len(LEVELS), PLAN.levels)
    verdict, _ = judge(tests, tests.fit(scores), ALPHA)
    return Outcome(verdict, np.full(len(scores), float(scores[0].size)))


def run_until(
    scores: Floats,
    plan: Plan = PLAN,
    *,
    leading: bool = True,
    items: Floats | None = None,
) -> Outcome:
    """Looks with error spending; data sets whose designs are the same are judged together.

    items  covariance of the levels' effects due to the items, (L, L); None: not counted.
    """
    bounds = boundaries_at(plan.looks, ALPHA)
    blank, zeros = np.full(len(scores), "", dtype=object), np.zeros(len(scores))
    found = Outcome(blank, zeros, np.zeros((len(scores), len(plan.levels))))
    designs: dict[tuple[int, ...], Indices] = {
        (plan.looks[0],) * len(plan.levels): np.arange(len(scores))
    }
    for look, alpha in enumerate(bounds.nominal):
        is_last = look == len(plan.looks) - 1
        following: dict[tuple[int, ...], list[int]] = {}
        for counts, which in designs.items():
            present = np.arange(max(counts))[:, None] < np.array(counts)
            tables = np.where(present, scores[which, : max(counts)], np.nan)
            tests = tests_of(counts, plan.levels)
            if items is not None:
                # the share of the items in the simulated variance is that of the first table
                tests = shape_tests(tables[0], np.array(plan.levels), items)
            fit = tests.fit(tables)
            verdict, optimal = judge(tests, fit, float(alpha))
            ends = ~np.isin(verdict.astype(str), UNDECIDED) | is_last
            found.verdict[which[ends]] = verdict[ends]
            found.runs[which[ends]] = sum(counts)
            found.effects[which[ends]] = fit.effects[ends]
            for index, best in zip(which[~ends], optimal[~ends], strict=True):
                design = plan.next_design(counts, look, best, leading=leading)
                following.setdefault(design, []).append(int(index))
        designs = {counts: np.array(which) for counts, which in following.items()}
    return found


def run_adastop(scores: Floats, seed: int) -> Outcome:
    """AdaStop on the comparisons of inner levels with the ends."""
    random = np.random.default_rng(seed)
    inner = np.arange(1, len(LEVELS) - 1)
    first = np.tile(inner, 2)
    second = np.repeat([0, len(LEVELS) - 1], len(inner))
    sizes = np.diff(LOOKS, prepend=0)
    signs = [_permuted_signs(random, int(size)) for size in sizes]
    found = Outcome(np.full(len(scores), "inconclusive", dtype=object), np.zeros(len(scores)))
    for index, table in enumerate(scores):
        found.verdict[index], found.runs[index] = _adastop(table, first, second, signs)
    return found


def _permuted_signs(random: np.random.Generator, size: int) -> Floats:
    """P random halves of 2 * size runs as +1 and -1, (P, 2 size); the first is the observed one."""
    signs = np.repeat([1.0, -1.0], size)
    drawn = [random.permutation(signs) for _ in range(PERMUTATIONS)]
    return np.array([signs, *drawn])


def _adastop(
    table: Floats, first: Indices, second: Indices, signs: list[Floats]
) -> tuple[str, float]:
    """The verdict on one data set, (S, L), and its runs. Index 0 of P is the observed order."""
    open_, above = np.ones(len(first), bool), np.zeros(len(first), bool)
    crossed = np.zeros(PERMUTATIONS, bool)
    sums = np.zeros((PERMUTATIONS + 1, len(first)))
    runs, start = 0.0, 0
    half = len(first) // 2
    for look, end in enumerate(LOOKS):
        used = np.unique(np.concatenate([first[open_], second[open_]]))
        runs += len(used) * (end - start)
        part = table[start:end]
        sums += signs[look] @ np.concatenate([part[:, first], part[:, second]])
        start = end
        while open_.any():
            statistic = np.abs(sums[:, open_]).max(axis=1)
            bound = _bound(statistic[1:], crossed, ALPHA * (look + 1) / len(LOOKS))
            observed = np.abs(sums[0]) * open_
            if observed.max() <= bound:
                crossed |= statistic[1:] > bound
                break
            at = int(observed.argmax())
            open_[at], above[at] = False, sums[0, at] > 0
        if (above[:half] & above[half:]).any():
            return "peaked", runs
        if not open_.any():
            break
    return "inconclusive", runs


def _bound(statistic: Floats, crossed: NDArray[np.bool_], spent: float) -> float:
    """The least value that permutations exceed, now or at an earlier look, in a share `spent`."""
    allowed = int(spent * len(statistic)) - int(crossed.sum())
    left = np.sort(statistic[~crossed])[::-1]
    return float(left[max(allowed, 0)]) if allowed < len(left) else -np.inf


def cells(datasets: int, seed: int) -> Iterator[dict[str, object]]:
    """A row per truth, model and standard deviation of the errors, and rule.

    AdaStop, which does not look at seeds, is run with independent errors only.
    """
    designs = [(truth, "independent", sd) for truth in TRUTHS for sd in DEVIATIONS]
    designs += [(truth, errors, 1.0) for truth in (*NULLS, LATE) for errors in CORRELATED]
    for truth, errors, deviation in designs:
        scores = simulate(truth, errors, deviation, datasets, seed)
        rules = {"fixed": run_fixed(scores), "until": run_until(scores)}
        if errors == "independent" and truth != LATE:
            rules["AdaStop"] = run_adastop(scores, seed)
        for rule, outcome in rules.items():
            named = outcome.verdict.astype(str)
            shares = {
                name: float((outcome.verdict == name).mean())
                for name in ("peaked", "rising", "falling", "flat")
            }
            shares |= {
                "trends": float(np.char.startswith(named, "rising").mean())
                + float(np.char.startswith(named, "falling").mean()),
                "false": float(np.isin(named, [*find_false(TRUTHS[truth], LEVELS)]).mean()),
            }
            mean = float(outcome.runs.mean())
            yield {
                "truth": truth,
                "null": truth in NULLS,
                "errors": errors,
                "sd": deviation,
                "rule": rule,
                "datasets": datasets,
                **shares,
                "runs": mean,
                "saved": 1 - mean / scores[0].size,
            }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Shares of verdicts, mean runs, and the share of the 90 runs of the fixed grid that is saved.

    Peaks where `null` holds are false, as is what the true scores contradict (`verdict.py`), with
    the lower 99 % bound of its share (Bonferroni over cells).
    """
    return with_bounds(pd.DataFrame(cells(datasets, seed)).rename(columns={"datasets": "n"}))
