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
    curve_covariance,
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
    "5 x 4 from η 0": _design(_crossed([0, 0.5, 0.75, 0.9, 0.95], [1, 4, 16, 64])),
    "4 x 4 of sufficiency": _design(_crossed([0.75, 0.95, 0.985, 0.998], [1, 4, 16, 64])),
}


def _standard(values: Floats) -> Floats:
    logs = np.log(values)
    return np.asarray((logs - logs.mean()) / logs.std())


def _curve(trace: Floats, ratio: Floats) -> Floats:
    """A peak of 5 points at the 40 % quantile of log MTD, a standard deviation of 1.2 wide."""
    mtd = np.log(trace + ratio)
    return np.asarray(5 * np.exp(-((mtd - np.quantile(mtd, 0.4)) ** 2) / (2 * 1.2**2)))


def _step(quantile: float) -> Callable[[Floats, Floats], Floats]:
    """A rise of 10 points around a quantile of log MTD, three quarters of it within 26 %."""

    def rise(trace: Floats, ratio: Floats) -> Floats:
        mtd = np.log(trace + ratio)
        return np.asarray(10 / (1 + np.exp((np.quantile(mtd, quantile) - mtd) / 0.12)))

    return rise


_DEFAULT = np.log([2, 8.7, 10, 12, 18, 48, 200]), np.array([10, 22.7, 29, 33.6, 35, 33.8, 33]) / 1.5
"""log MTD and mean, in residual standard deviations, of the default study."""


def _default(trace: Floats, ratio: Floats) -> Floats:
    return np.asarray(np.interp(np.log(trace + ratio), *_DEFAULT))


STEEP = {f"step at {quantile}": _step(quantile) for quantile in (0.2, 0.4, 0.6, 0.8)} | {
    "like the default study": _default
}
"""Curves over MTD that are steep between levels."""

TRUTHS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "MTD sufficient": _curve,
    **STEEP,
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
    "MTD sufficient": {"MTD sufficient", *STEEP},
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
    found, of_items = {}, items**2 * (np.eye(count) - 1 / count)
    for question, (base, added) in QUESTIONS.items():
        terms = models.null[base], models.added[added], weights
        known = curve_covariance(fit.means, models.mtd) if base == "mtd" else 0 * of_items
        only = p_added(fit, *terms, known)
        found[question] = (p_added(fit, *terms, known + of_items) if items else only, only)
    return found


def _cells(datasets: int, seed: int) -> Iterator[tuple[object, ...]]:
    for design, truth, variances, seeds in product(
        DESIGNS, TRUTHS, [*VARIANCES, *SLOPES, *ITEMS], SEEDS
    ):
        if truth in STEEP and variances != "equal":
            continue
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
