"""Size and power of the test whether MTD is sufficient, by simulation."""

import zlib
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from mtdlab.analysis.measures import Floats
from mtdlab.analysis.statistics.sufficiency import (
    Models,
    build_models,
    fit_blocks,
    model_weights,
    p_added,
)

Design = tuple[Floats, Floats]
"""1/(1 - eta) and K/N of each configuration, by MTD."""

SEEDS = (2, 3, 5, 10)
ALPHA = 0.05
_NOISY = 4.0
_SEED_EFFECT = 2.0


def _design(pairs: list[tuple[float, float]]) -> Design:
    table = np.array(sorted(pairs, key=sum), dtype=np.float64)
    return table[:, 0], table[:, 1]


def _crossed(decays: list[float], ratios: list[float]) -> list[tuple[float, float]]:
    return list(product((1 / (1 - decay) for decay in decays), ratios))


_STRATA = {8.7: (1, 2, 4, 6), 14.7: (1, 2, 5, 12), 30.0: (1, 3, 9, 28), 60.0: (1, 4, 15, 58)}

DESIGNS: dict[str, Design] = {
    "queue-and-decay": _design(_crossed([0.75, 0.85, 0.95], [1, 8, 64])),
    "stratified": _design(
        [(mtd - ratio, ratio) for mtd, ratios in _STRATA.items() for ratio in ratios]
    ),
    "figure 2": _design([*_crossed([0.75, 0.85], [1, 2, 4, 8]), (20.0, 1.0)]),
}


def _standard(values: Floats) -> Floats:
    logs = np.log(values)
    return np.asarray((logs - logs.mean()) / logs.std())


def _curve(trace: Floats, ratio: Floats) -> Floats:
    """A peak of 5 points at the 40 % quantile of log MTD, a standard deviation of 1.2 wide.

    Nine levels of MTD cannot be followed through sharper bends: with a width of 0.9 the error of
    the spline itself is found with 10 seeds in `queue-and-decay`.
    """
    mtd = np.log(trace + ratio)
    return np.asarray(5 * np.exp(-((mtd - np.quantile(mtd, 0.4)) ** 2) / (2 * 1.2**2)))


TRUTHS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "MTD sufficient": _curve,
    "K/N alone": lambda _trace, ratio: 1.5 * _standard(ratio),
    "additive": lambda trace, ratio: 1.5 * _standard(ratio) - _standard(trace),
    "interaction": lambda trace, ratio: 1.2 * _standard(trace) * _standard(ratio),
}

SLOPES: dict[str, Callable[[Floats, Floats], Floats]] = {
    "slopes of 1 by seed": lambda trace, ratio: np.array([_standard(trace), _standard(ratio)]),
    "slopes of 3 by seed": lambda trace, ratio: 3 * np.array([_standard(trace), _standard(ratio)]),
    "opposite slopes of 3 by seed": lambda trace, ratio: 3 * _standard(trace / ratio)[None],
}
"""What seeds respond to, each with multiples of its own, beside errors of equal variances."""

ITEMS = {"items of 1": "equal", "items of 1, slopes of 1": "slopes of 1 by seed"}
"""Beside an effect of the evaluation items on each configuration, in all seeds alike, with standard
deviation 1."""

VARIANCES: dict[str, Callable[[int], Floats]] = {
    "equal": np.ones,
    "4 at two lowest": lambda size: np.where(np.arange(size) < 2, _NOISY, 1.0),
    "4 at one inside": lambda size: np.where(np.arange(size) == size // 2, _NOISY, 1.0),
}
"""Standard deviation of an error, in points, of each configuration by MTD."""

QUESTIONS = {
    "MTD sufficient": ("mtd", "components"),
    "MTD beyond additive": ("additive", "mtd"),
    "interaction": ("additive", "interaction"),
}
NULLS = {
    "MTD sufficient": {"MTD sufficient"},
    "MTD beyond additive": {"K/N alone", "additive"},
    "interaction": {"K/N alone", "additive"},
}
"""The truths under which a rejection is an error."""


def simulate_tests(
    means: Floats,
    models: Models,
    deviations: Floats,
    seeds: int,
    datasets: int,
    seed: int,
    *,
    slopes: Floats | None = None,
    items: float = 0.0,
) -> dict[str, tuple[Floats, Floats]]:
    """p values (datasets,) of each question for normal errors and seed effects.

    The first counts the items, the second does not.

    Args:
        means, deviations: (C,), of the configurations; the standard deviation between seeds is 2.
        slopes: (V, C), of which every seed has its own multiples.
        items: standard deviation of the items' effect on a configuration.
    """
    rng = np.random.default_rng(seed)
    effects = rng.normal(scale=_SEED_EFFECT, size=(datasets, seeds, 1))
    errors = rng.normal(size=(datasets, seeds, len(means))) * deviations
    if slopes is not None:
        errors += rng.normal(size=(datasets, seeds, len(slopes))) @ slopes
    count = len(means)
    if items:
        errors += items * rng.normal(size=(datasets, 1, count))
    fit = fit_blocks(means + effects + errors)
    weights = model_weights(fit, models.variance)
    found = {}
    for question, (base, added) in QUESTIONS.items():
        terms = models.null[base], models.added[added], weights
        only = p_added(fit, *terms)
        known = items**2 * (np.eye(count) - 1 / count)
        found[question] = (p_added(fit, *terms, known) if items else only, only)
    return found


def _cells(datasets: int, seed: int) -> Iterator[tuple[object, ...]]:
    for design, truth, variances, seeds in product(
        DESIGNS, TRUTHS, [*VARIANCES, *SLOPES, *ITEMS], SEEDS
    ):
        trace, ratio = DESIGNS[design]
        # the same random numbers for a cell, whichever other cells there are
        key = zlib.crc32(f"{seed} {design} {truth} {variances} {seeds}".encode())
        beside = ITEMS.get(variances, variances)
        found = simulate_tests(
            TRUTHS[truth](trace, ratio),
            build_models(trace, ratio),
            VARIANCES.get(beside, np.ones)(len(trace)),
            seeds,
            datasets,
            key,
            slopes=SLOPES[beside](trace, ratio) if beside in SLOPES else None,
            items=float(variances in ITEMS),
        )
        for question, p_values in found.items():
            null = truth in NULLS[question]
            rejected = [int((values <= ALPHA).sum()) for values in p_values]
            yield design, truth, variances, seeds, question, null, *rejected


def rows(datasets: int, seed: int) -> pd.DataFrame:
    """A row per design, truth, variances, seeds and question.

    Columns: null (whether a rejection is an error), rejected (share of n data sets at 5 %),
    seeds_only (where items are not counted), n, low99 and high99 (Clopper and Pearson).
    """
    names = ["design", "truth", "variances", "seeds", "question", "null", "rejected", "seeds_only"]
    table = pd.DataFrame(list(_cells(datasets, seed)), columns=names).assign(n=datasets)
    hits = table["rejected"].to_numpy()
    low = stats.beta.ppf(0.005, hits, datasets - hits + 1)
    high = stats.beta.ppf(0.995, hits + 1, datasets - hits)
    return table.assign(
        rejected=hits / datasets,
        seeds_only=table["seeds_only"] / datasets,
        low99=np.where(hits == 0, 0.0, low),
        high99=np.where(hits == datasets, 1.0, high),
    )
