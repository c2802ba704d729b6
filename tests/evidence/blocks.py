"""False separations and coverage of rankings of models over blocks, such as tasks: `make evidence`.

score = difficulty of the task (standard deviation 10) + the model's mean + an error of standard
deviation 1, which is drawn anew for each task. What is inferred is the mean over tasks like these.
Rules beside `mtdlab.analysis.inference.best` (all pairs):

- Hsu: one-sided comparisons with the best (1984), as for the optimal range; a set, no pairs.
- paired t, Holm; Wilcoxon, Holm: tests of each pair, with Holm's correction.
- Nemenyi: critical difference of mean ranks (Demsar 2006).
- bootstrap: a pair differs where 97.5 % of 400 resamples of the tasks agree on its sign.

The set of a rule is what it does not separate from the model with the highest mean (Nemenyi: mean
rank). It misses where a model that is truly the best, or one of several, is not in it.
Letters: T tables, B blocks, M models, P pairs.
"""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import special, stats

from mtdlab.analysis.inference.shapes import ShapeTests, design_tests
from mtdlab.analysis.measures import Floats

ALPHA = 0.05
_RESAMPLES, _EXACT = 400, 25
_FAMILIES = 7
"""As the kinds of tasks of MTEB's English benchmark; of fewer than 14 tasks two are a family."""
Errors = Callable[[np.random.Generator, int, int, int], Floats]
Above = NDArray[np.bool_]


def _families_of(blocks: int) -> NDArray[np.intp]:
    return np.arange(blocks) % _FAMILIES if blocks >= 2 * _FAMILIES else np.arange(blocks) // 2


def _families(share: float) -> Errors:
    """Models deviate in each family of tasks; this is so much of the variance."""

    def draw(rng: np.random.Generator, tables: int, blocks: int, models: int) -> Floats:
        family = _families_of(blocks)
        common = rng.standard_normal((tables, family.max() + 1, models))[:, family]
        own = rng.standard_normal((tables, blocks, models))
        return np.asarray(share**0.5 * common + (1 - share) ** 0.5 * own)

    return draw


def _averaged(share: float) -> Errors:
    """The same, the scores of each family averaged: a block is a family."""

    def draw(rng: np.random.Generator, tables: int, blocks: int, models: int) -> Floats:
        family = _families_of(blocks)
        errors = _families(share)(rng, tables, blocks, models)
        means = [errors[:, family == one].mean(axis=1) for one in range(family.max() + 1)]
        return np.stack(means, axis=1)

    return draw


def _skewed(sign: float) -> Errors:
    """The first model has exponential errors, three times as large."""

    def draw(rng: np.random.Generator, tables: int, blocks: int, models: int) -> Floats:
        errors = rng.standard_normal((tables, blocks, models))
        errors[..., 0] = 3 * sign * (rng.exponential(size=(tables, blocks)) - 1)
        return errors

    return draw


def _noisy(rng: np.random.Generator, tables: int, blocks: int, models: int) -> Floats:
    """The first model has errors three times as large."""
    errors = rng.standard_normal((tables, blocks, models))
    errors[..., 0] *= 3
    return errors


def _by_task(rng: np.random.Generator, tables: int, blocks: int, models: int) -> Floats:
    """Tasks have scatters of their own: their logarithm has standard deviation 0.8."""
    scatter = np.exp(0.8 * rng.standard_normal((tables, blocks, 1)) - 0.64)
    return np.asarray(scatter * rng.standard_normal((tables, blocks, models)))


def _alike(rng: np.random.Generator, tables: int, blocks: int, models: int) -> Floats:
    """Two halves of the models, as of two makers, differ by task, by a standard deviation of 2."""
    half = np.arange(models) < models // 2
    own = 2 * rng.standard_normal((tables, blocks, 1)) * half
    return np.asarray(own + rng.standard_normal((tables, blocks, models)))


ERRORS: Mapping[str, Errors] = {
    "normal": lambda rng, *shape: rng.standard_normal(shape),
    "t, 3 degrees of freedom": lambda rng, *shape: rng.standard_t(3, shape) / 3**0.5,
    "scatter differs by task": _by_task,
    "one model scatters 3 times": _noisy,
    "two halves of the models": _alike,
    "one model fails on 1 task in 10": lambda rng, *shape: (
        rng.standard_normal(shape)
        - 5 * (np.arange(shape[2]) == 0) * (rng.random(shape) < 0.1)
        + 0.5 * (np.arange(shape[2]) == 0)
    ),
    "one model skewed down": _skewed(-1),
    "one model skewed up": _skewed(1),
    "families, a quarter": _families(0.25),
    "families, half": _families(0.5),
    "families, half, averaged": _averaged(0.5),
    # of pairs of four models on the 56 tasks of MTEB it is 2 to 19 % (Wang et al. 2024, table 7)
    "families, a tenth": _families(0.1),
}


def truth(name: str, models: int) -> Floats:
    """The true means (M,)."""
    place = np.arange(models)
    return {
        "all equal": 0.0 * place,
        "two best by 1": 1.0 * (place < 2),
        "steps of 0.3": -0.3 * place,
    }[name]


TRUTHS = ("all equal", "two best by 1", "steps of 0.3")


def _tests(scores: Floats) -> ShapeTests:
    return design_tests(np.ones(scores.shape[1:], dtype=np.bool_), None)


def _all_pairs(scores: Floats) -> Above:
    tests = _tests(scores)
    return tests.find_above(tests.fit(scores), ALPHA)


def _pairs(scores: Floats) -> Floats:
    first, second = np.triu_indices(scores.shape[2], 1)
    return np.asarray(scores[..., second] - scores[..., first])


def _as_above(signs: Floats, models: int) -> Above:
    """Signs (T, P) of the differences that are shown, 0 of others, as (T, M, M)."""
    first, second = np.triu_indices(models, 1)
    above = np.zeros((len(signs), models, models), dtype=np.bool_)
    above[:, second, first], above[:, first, second] = signs > 0, signs < 0
    return above


def _holm(p_values: Floats) -> NDArray[np.bool_]:
    order = np.argsort(p_values, axis=1)
    left = p_values.shape[1] - np.arange(p_values.shape[1])
    adjusted = np.maximum.accumulate(np.take_along_axis(p_values, order, axis=1) * left, axis=1)
    return np.take_along_axis(adjusted <= ALPHA, np.argsort(order, axis=1), axis=1)


def _paired_t(scores: Floats) -> Above:
    values = _pairs(scores)
    blocks, mean = values.shape[1], values.mean(axis=1)
    p_values = 2 * special.stdtr(
        blocks - 1, -np.abs(mean) / (values.std(axis=1, ddof=1) / blocks**0.5)
    )
    return _as_above(np.sign(mean) * _holm(p_values), scores.shape[2])


@cache
def _rank_sums(blocks: int) -> Floats:
    """The distribution function of the signed-rank statistic."""
    counts = np.ones(1)
    for rank in range(1, blocks + 1):
        counts = np.append(counts, np.zeros(rank)) + np.append(np.zeros(rank), counts)
    return np.asarray(counts.cumsum() / 2**blocks)


def _wilcoxon(scores: Floats) -> Above:
    values = _pairs(scores)
    blocks = values.shape[1]
    ranks = np.abs(values).argsort(axis=1).argsort(axis=1) + 1
    up, total = (ranks * (values > 0)).sum(axis=1), blocks * (blocks + 1) // 2
    lower = np.minimum(up, total - up)
    if blocks <= _EXACT:
        p_values = np.minimum(2 * _rank_sums(blocks)[lower], 1)
    else:
        deviation = (blocks * (blocks + 1) * (2 * blocks + 1) / 24) ** 0.5
        p_values = 2 * special.ndtr((lower + 0.5 - total / 2) / deviation)
    return _as_above(np.sign(2 * up - total) * _holm(p_values), scores.shape[2])


def _ranks(scores: Floats) -> Floats:
    return np.asarray(scores.argsort(axis=2).argsort(axis=2).mean(axis=1))


def _nemenyi(scores: Floats) -> Above:
    _, blocks, models = scores.shape
    quantile = stats.studentized_range.ppf(1 - ALPHA, models, np.inf) / 2**0.5
    values = _pairs(_ranks(scores)[:, None])[:, 0]
    far = np.abs(values) > quantile * (models * (models + 1) / (6 * blocks)) ** 0.5
    return _as_above(np.sign(values) * far, models)


def _bootstrap(scores: Floats) -> Above:
    blocks = scores.shape[1]
    weights = np.random.default_rng(0).multinomial(blocks, np.full(blocks, 1 / blocks), _RESAMPLES)
    shares = ((weights @ _pairs(scores)) > 0).mean(axis=1)
    return _as_above(1.0 * (shares >= 0.975) - (shares <= 0.025), scores.shape[2])


RULES: Mapping[str, Callable[[Floats], Above]] = {
    "all pairs": _all_pairs,
    "paired t, Holm": _paired_t,
    "Wilcoxon, Holm": _wilcoxon,
    "Nemenyi": _nemenyi,
    "bootstrap": _bootstrap,
}


def measure(
    errors: str, means: str, blocks: int, models: int, tables: int, seed: int
) -> list[dict[str, float | str]]:
    """The cells of all rules on the same tables."""
    rng = np.random.default_rng([seed, blocks, models, [*ERRORS].index(errors)])
    true = truth(means, models)
    drawn = ERRORS[errors](rng, tables, blocks, models) + true
    scores = drawn + 10 * rng.standard_normal((*drawn.shape[:2], 1))
    is_best, higher = true == true.max(), true[:, None] > true
    cell = {"errors": errors, "truth": means, "blocks": blocks, "models": models}
    tests = _tests(scores)
    chosen = {"Hsu": tests.find_optimal(tests.fit(scores), ALPHA)}
    rows: list[dict[str, float | str]] = []
    for rule, judge in RULES.items():
        above = judge(scores)
        top = (_ranks(scores) if rule == "Nemenyi" else scores.mean(axis=1)).argmax(axis=1)
        chosen[rule] = ~above[np.arange(tables), top]
        right = above[:, higher]
        row = {"false": float((above & ~higher).any(axis=(1, 2)).mean())}
        row["found"] = float(right.mean()) if right.size else np.nan
        rows.append(cell | {"rule": rule} | row)
    rows.append(cell | {"rule": "Hsu", "false": np.nan, "found": np.nan})
    for row in rows:
        inside = chosen[str(row["rule"])]
        row["missed"] = float((~inside[:, is_best]).any(axis=1).mean())
        row["missed_one"] = float((~inside[:, is_best.argmax()]).mean())
        row["in_set"] = float(inside.sum(axis=1).mean())
        row["n"] = tables
    return rows


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bounds of false separations (Bonferroni for each rule)."""
    designs = [*product((5, 7, 12, 56), (3, 8, 20))]
    cells = [
        # with 20 models a table takes a hundred times as long as with 3
        delayed(measure)(errors, means, *design, datasets // (4 if design[1] == 20 else 1), seed)
        for errors, means, design in product(ERRORS, TRUTHS, designs)
    ]
    table = pd.DataFrame([row for found in Parallel(n_jobs=-1)(cells) for row in found])
    known = table["false"].notna()
    cells_of_rule = int((table["rule"] == "all pairs").sum())
    low = bound_below(table.loc[known, "false"], table.loc[known, "n"], cells_of_rule)
    return table.assign(false_low99=pd.Series(low, index=table.index[known]))
