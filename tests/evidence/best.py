"""False and missed decisions of studies that ask which configuration is best: `make evidence`.

A study compares C configurations, whose runs score effect of the seed + deviations of the seed +
effects of the evaluation items + error of standard deviation 1. Seeds deviate in what two halves of
the configurations do. It ends as a sweep ends it (`mtdlab.analysis.inference.looks`): seeds are
added first for what may be the best, looks are the default ones of at most S seeds. Where all are
equal, "separated" is false. A margin of 0.5 is that of the verdict.

The columns of a table have no order. They are sorted by their seeds, so that few designs occur.
Letters: B studies, S seeds, C configurations.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed
from numpy.typing import NDArray

from mtdlab.analysis.inference.best import classify_best
from mtdlab.analysis.inference.blocks import Fit
from mtdlab.analysis.inference.looks import LEADING_LEVEL, boundaries_at, lead
from mtdlab.analysis.inference.shapes import ShapeTests, design_tests, shape_tests
from mtdlab.analysis.measures import Floats
from mtdlab.config.study import default_looks

Row = dict[str, float | str]
ALPHA, MARGIN = 0.05, 0.5
COUNTS, SEEDS = (2, 4, 8), (3, 6, 12)


@dataclass(frozen=True)
class Case:
    """Standard deviations of what halves of the configurations do to a seed, and of the items.

    `effect`: by how many points the first configuration is above all others.
    """

    name: str
    halves: float = 0.0
    items: float = 0.0
    error: float = 1.0
    effect: float = 0.0

    def draw(self, rng: np.random.Generator, studies: int, seeds: int, count: int) -> Floats:
        """Scores, (B, S, C)."""
        scores = 3 * rng.standard_normal((studies, seeds, 1))
        scores = scores + self.error * rng.standard_normal((studies, seeds, count))
        scores += self.items * rng.standard_normal((studies, 1, count))
        half = np.arange(count) < count // 2
        scores += self.halves * rng.standard_normal((studies, seeds, 1)) * half
        scores[..., 0] += self.effect
        return np.asarray(scores)

    def covariance(self, count: int) -> Floats | None:
        """That of the effects due to the items, (C, C)."""
        return self.items**2 * (np.eye(count) - 1 / count) if self.items else None


NULLS = (
    Case("independent"),
    Case("two families, 1", halves=1),
    Case("two families, 3", halves=3),
    Case("items, 1", items=1),
)
EFFECTS = (
    Case("independent", effect=2),
    Case("two families, 1", halves=1, effect=2),
    Case("items, 1", items=1, effect=2),
    # the best is as far above as the margin, so that "equivalent" is false where it is counted
    Case("independent, 0.25", error=0.25, effect=MARGIN),
)


@dataclass
class Outcome:
    """Of each of B studies the kind of its verdict, its runs, its estimates (B, C) and its look."""

    kind: NDArray[np.object_]
    runs: Floats
    effects: Floats
    look: NDArray[np.intp]


def judge(
    scores: Floats, alpha: float, items: Floats | None
) -> tuple[NDArray[np.object_], Fit, NDArray[np.bool_]]:
    """Verdicts on studies of one design (B, S, C), and what gets the next seeds, (B, C)."""
    without, fit = make_tests(scores)
    leading = lead(without.find_optimal(fit, 1 - LEADING_LEVEL), fit.effects)
    tests, fit = make_tests(scores, items)
    return classify_best(tests, fit, alpha, MARGIN), fit, leading


def make_tests(scores: Floats, items: Floats | None = None) -> tuple[ShapeTests, Fit]:
    """The tests of studies of one design (B, S, C), with or without the errors of the items."""
    tests = design_tests(np.isfinite(scores[0]), None)
    if items is not None:
        tests = shape_tests(scores[0], items=items)
    return tests, tests.fit(scores)


def run_until(scores: Floats, looks: tuple[int, ...], items: Floats | None = None) -> Outcome:
    """Studies (B, S, C) with looks; those of one design are judged together."""
    studies, _, count = scores.shape
    outcome = Outcome(
        np.full(studies, "", dtype=object),
        np.zeros(studies),
        np.zeros((studies, count)),
        np.zeros(studies, dtype=np.intp),
    )
    seeds = np.full((studies, count), looks[0])
    left = np.arange(studies)
    for look, alpha in enumerate(boundaries_at(looks, ALPHA).nominal.tolist()):
        order = np.argsort(-seeds[left], axis=1, kind="stable")
        designs, of = np.unique(
            np.take_along_axis(seeds[left], order, axis=1), axis=0, return_inverse=True
        )
        goes_on = np.zeros(len(left), dtype=bool)
        for number, design in enumerate(designs):
            at = np.flatnonzero(of.ravel() == number)
            which, columns = left[at], order[at]
            tables = np.take_along_axis(scores[which], columns[:, None], axis=2)[:, : max(design)]
            tables = np.where(np.arange(max(design))[:, None] < design, tables, np.nan)
            kind, fit, leading = judge(tables, alpha, items)
            ends = (kind != "inconclusive") | (look == len(looks) - 1)
            outcome.kind[which], outcome.look[which] = kind, look
            outcome.runs[which] = design.sum()
            back = np.argsort(columns, axis=1)
            outcome.effects[which] = np.take_along_axis(fit.effects, back, axis=1)
            goes_on[at] = ~ends
            if look + 1 < len(looks):
                gets = np.take_along_axis(leading, back, axis=1) | (look + 2 == len(looks))
                seeds[which] = np.where(gets, looks[look + 1], seeds[which])
        left = left[goes_on]
    return outcome


def measure(case: Case, count: int, seeds: int, studies: int, seed: int) -> Row:
    """One cell: shares of decisions with looks and of one test at the end, and the runs."""
    rng = np.random.default_rng([seed, count, seeds, round(10 * case.effect)])
    scores, items = case.draw(rng, studies, seeds, count), case.covariance(count)
    outcome = run_until(scores, default_looks(seeds), items)
    tests, fit = make_tests(scores, items)
    once, may_be_best = classify_best(tests, fit, ALPHA, MARGIN), tests.find_optimal(fit, ALPHA)
    best = outcome.effects.argmax(axis=1)
    separated = outcome.kind == "separated"
    early = separated & (outcome.look + 1 < len(default_looks(seeds)))
    right = separated & (best == 0)
    ranked = np.sort(outcome.effects, axis=1)
    lead_of_best = (ranked[:, -1] - ranked[:, -2])[early & right] - case.effect
    return {
        "errors": case.name,
        "effect": case.effect,
        "configurations": count,
        "seeds": seeds,
        "separated": float(separated.mean()),
        "first separated": float(right.mean()),
        "equivalent": float((outcome.kind == "equivalent").mean()),
        "runs": float(outcome.runs.mean() / (seeds * count)),
        "bias, ended early": float(lead_of_best.mean()) if len(lead_of_best) else np.nan,
        "separated, one test": float((once == "separated").mean()),
        "one-sided, one test": float((may_be_best.sum(axis=1) == 1).mean()),
        "n": studies,
    }


def cells() -> Iterator[tuple[Case, int, int]]:
    """The cells of the table."""
    for case in (*NULLS, *EFFECTS):
        for count in COUNTS:
            for seeds in SEEDS:
                yield case, count, seeds


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bounds of false separations (Bonferroni over cells)."""
    table = pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells())
    )
    null = table["effect"] == 0
    table["separated_low99"] = bound_below(table["separated"], table["n"], int(null.sum()))
    table.loc[~null, "separated_low99"] = np.nan
    return table
