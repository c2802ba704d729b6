"""False verdicts of a page on several conditions that share the error rate, by simulation.

A study has the same levels of MTD at two or four learning rates or numbers of training steps, each
with runs of its own. Studies are those of `verdict.py`. A page is false where any of its verdicts
is; the power is that of one condition.
"""

from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed
from verdict import ALPHA, MARGIN, Truth, find_false

from mtdlab.analysis.inference.shapes import design_tests

DESIGNS = ((3, 5), (5, 5), (10, 5), (5, 9))
"""Numbers of seeds and levels."""
CONDITIONS = (2, 4)
_ERRORS = ("independent", "AR(1) 0.9", "slopes of 3", "as measured, 160 steps")


def _truths(levels: int) -> list[Truth]:
    place = np.linspace(0, 1, levels)
    shapes = {"flat": 0 * place, "saturated": 5 * np.minimum(4 * place, 1)}
    found = [Truth(name, curve, errors) for name, curve in shapes.items() for errors in _ERRORS]
    tent = 1 - np.abs(2 * place - 1)
    return [*found, Truth("peak of 2", 2 * tent), Truth("peak of 5", 5 * tent)]


def measure(
    truth: Truth, seeds: int, conditions: int, datasets: int, seed: int
) -> dict[str, float | str]:
    """One cell: shares of pages with a false verdict, with a shared error rate and without."""
    rng = np.random.default_rng([seed, seeds, conditions, len(truth.scores)])
    tests = design_tests(np.ones((seeds, len(truth.scores)), dtype=bool), truth.distance)
    fit = tests.fit(truth.draw(rng, datasets * conditions, seeds))
    false = find_false(truth.scores, truth.distance)
    cell: dict[str, float | str] = {
        "truth": truth.name,
        "errors": truth.errors,
        "seeds": seeds,
        "levels": len(truth.scores),
        "conditions": conditions,
    }
    for name, alpha in (("shared", ALPHA / conditions), ("each", ALPHA)):
        shapes = tests.classify(fit, alpha, MARGIN).shape
        wrong = np.isin(shapes.astype(str), list(false)).reshape(datasets, conditions)
        cell[f"false_{name}"] = float(wrong.any(axis=1).mean())
        cell[f"peaked_{name}"] = float((shapes == "peaked").mean())
    return {**cell, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bound of false pages (Bonferroni over cells)."""
    cells = [
        delayed(measure)(truth, seeds, conditions, datasets, seed)
        for (seeds, levels), conditions in product(DESIGNS, CONDITIONS)
        for truth in _truths(levels)
    ]
    table = pd.DataFrame(Parallel(n_jobs=-1)(cells))
    table["false_shared_low99"] = bound_below(table["false_shared"], table["n"], len(table))
    return table
