"""Whether the score depends on the maximum traceable distance (MTD) alone: MTD is sufficient.

MTD is the sum of the EMA's component 1/(1 - eta) and the queue's component K/N. If it is
sufficient, configurations with equal MTD have equal expected scores, whatever their components.
Nested models of the configuration means test this (`analysis.nested`); all variables are
logarithms. A null model has many degrees of freedom, so that its lack of fit is not attributed to
the added terms; the added terms have few, for power. Letters: C configurations.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd

from analysis.intervals import check_level, estimate
from analysis.nested import (
    Floats,
    Means,
    added_space,
    explained_share,
    fit_blocks,
    model_weights,
    p_added,
    smooth,
)
from analysis.runs import traced_runs, varied_settings

Answer = Literal["rejected", "not rejected", "cannot be tested"]

NEAR = 1.1
"""Two MTDs are nearly equal if the larger is at most this many times the smaller."""

_COMPONENTS = ("ema_decay", "queue_size")
_OF_QUEUE = ("initial_queue_size", "queue_slice")
_MOST_CURVE = 15
_COMPONENT = 3
_ADDED = 2
_MAX_CONFIGURATIONS = 400


@dataclass(frozen=True)
class Pair:
    """Two configurations at nearly equal MTD.

    high_row, low_row  their rows in `Sufficiency.cells`.
    difference  mean paired difference, high less low, in points; low, high: simultaneous interval.
    pairs       the number of pairs that the interval is adjusted for (Bonferroni).
    """

    high_row: int
    low_row: int
    difference: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class Sufficiency:
    """Whether the score depends on MTD alone.

    answer    result of the test that MTD is sufficient; reason: why it cannot be tested.
    varied    which of ema_decay and queue_size vary.
    p_value   of that test; interaction_p: of the test that 1/(1 - eta) and K/N are additive.
    explained R² of the configuration means by model: mtd, ema_decay, queue_size, additive;
              `freedom`: the degrees of freedom of each.
    tests     base, added, freedom, p_value, a row per pair of nested models.
    cells     ema_decay, ratio (K/N), mtd, mean, runs, a row per configuration, sorted by MTD.
    pair      the pair with the largest difference at nearly equal MTD; None without a pair.
    """

    answer: Answer
    reason: str = ""
    varied: tuple[str, ...] = ()
    p_value: float = math.nan
    interaction_p: float = math.nan
    explained: Mapping[str, float] = field(default_factory=dict)
    freedom: Mapping[str, int] = field(default_factory=dict)
    tests: pd.DataFrame = field(default_factory=pd.DataFrame)
    cells: pd.DataFrame = field(default_factory=pd.DataFrame)
    pair: Pair | None = None
    runs: int = 0
    seeds: int = 0
    level: float = 0.95


@dataclass(frozen=True)
class Models:
    """Columns (C, p) of the models over a design.

    mtd, ema_decay, queue_size, additive  null models, with many degrees of freedom.
    added     added terms, with few: mtd, ema_decay, queue_size, components, interaction.
    variance  covariates of the logarithm of the error variance, for the weights.
    """

    mtd: Floats
    ema_decay: Floats
    queue_size: Floats
    additive: Floats
    added: Mapping[str, Floats]
    variance: Floats


NESTED: tuple[tuple[str, str], ...] = (
    ("mtd", "components"),
    ("additive", "mtd"),
    ("additive", "interaction"),
    ("ema_decay", "queue_size"),
    ("queue_size", "ema_decay"),
    ("ema_decay", "mtd"),
    ("queue_size", "mtd"),
)
"""Null model and added terms. The first pair tests the hypothesis that MTD is sufficient."""


def build_models(trace: Floats, ratio: Floats) -> Models:
    """The models of C configurations: trace is 1/(1 - eta), ratio is K/N, both (C,)."""
    mtd, eta, queue = np.log(trace + ratio), np.log(trace), np.log(ratio)
    # half of the degrees of freedom between configurations; the other half is left for the test
    curve = min(max((len(mtd) - 1) // 2, 1), _MOST_CURVE)
    first, second = smooth(eta, _ADDED), smooth(queue, _ADDED)
    wide = smooth(eta, _COMPONENT), smooth(queue, _COMPONENT)
    products = first[:, :, None] * second[:, None, :]
    return Models(
        mtd=smooth(mtd, curve),
        ema_decay=wide[0],
        queue_size=wide[1],
        additive=np.hstack(wide),
        added={
            "mtd": smooth(mtd, _COMPONENT),
            "ema_decay": first,
            "queue_size": second,
            "components": np.hstack([first, second]),
            "interaction": products.reshape(len(mtd), -1),
        },
        variance=np.column_stack([np.ones_like(eta), eta, queue, eta * queue]),
    )


def compute_sufficiency(
    trials: pd.DataFrame, settings: Collection[str], *, level: float = 0.95
) -> Sufficiency:
    """Test whether the score depends on ema_decay and queue_size through MTD alone.

    trials    `StudyFrames.trials`, or a frame with columns mtd, score, seed, ema_decay,
              queue_size, batch_size and, if not all runs completed, state.
    settings  which columns are settings; if others vary too, only the runs of the combination of
              their values with the most configurations are used.

    The hypothesis is rejected at p <= 1 - level. "cannot be tested" if only one component varies,
    with one seed, or with too few configurations. Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    runs = _one_condition(_scored(trials), settings)
    varied = tuple(name for name in _COMPONENTS if runs[_column_of(name)].nunique() > 1)
    if len(varied) < 2:
        return Sufficiency(
            "cannot be tested", _untestable_reason(runs, varied), varied, level=level
        )
    table = _table(runs)
    cells = pd.DataFrame(list(table.columns), columns=["mtd", "ratio", "ema_decay"])
    try:
        fit = fit_blocks(table.to_numpy(dtype=np.float64))
    except ValueError as error:
        return Sufficiency("cannot be tested", str(error), varied, level=level)
    cells = cells.assign(mean=fit.means, runs=fit.runs.astype(int))
    pair = largest_difference(table.to_numpy(dtype=np.float64), cells["mtd"].to_numpy(), level)
    return _test(fit, cells, pair, len(table), level)


def _scored(trials: pd.DataFrame) -> pd.DataFrame:
    """Completed runs with an MTD and a queue, with columns trace and ratio (the components)."""
    runs = traced_runs(trials if "state" in trials else trials.assign(state="COMPLETE"))
    runs = runs.assign(ratio=(runs["queue_size"] / runs["batch_size"]).astype("float64"))
    runs = runs.assign(trace=runs["mtd"] - runs["ratio"])
    return runs[(runs["ratio"] > 0) & (runs["trace"] > 0)]


def _column_of(name: str) -> str:
    return "ratio" if name == "queue_size" else name


def _one_condition(runs: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """Runs with equal values of all other settings: the values with the most configurations."""
    known = {*settings, "batch_size"}
    others = [name for name in varied_settings(runs, known) if name not in _COMPONENTS]
    # settings that are a function of the queue size are not conditions
    others = [name for name in others if name not in _OF_QUEUE or _differs(runs, name)]
    if not others:
        return runs
    condition = runs.groupby(others, dropna=False).ngroup()
    pairs = runs.assign(condition=condition).drop_duplicates(["condition", "ratio", "ema_decay"])
    return runs[condition == pairs["condition"].value_counts(sort=False).sort_index().idxmax()]


def _differs(runs: pd.DataFrame, name: str) -> bool:
    return bool(runs.groupby("queue_size")[name].nunique(dropna=False).max() > 1)


def _untestable_reason(runs: pd.DataFrame, varied: tuple[str, ...]) -> str:
    if varied:
        return f"only {varied[0]} varies"
    return "neither ema_decay nor queue_size varies" if len(runs) else "no run has a score"


def _table(runs: pd.DataFrame) -> pd.DataFrame:
    """Scores by seed and configuration, those with two seeds or more."""
    table = runs.pivot_table(index="seed", columns=["mtd", "ratio", "ema_decay"], values="score")
    return table.loc[:, table.notna().sum() > 1].dropna(how="all")


def _test(
    fit: Means, cells: pd.DataFrame, pair: Pair | None, seeds: int, level: float
) -> Sufficiency:
    ratio = cells["ratio"].to_numpy(dtype=np.float64)
    models = build_models(cells["mtd"].to_numpy(dtype=np.float64) - ratio, ratio)
    weights = model_weights(fit, models.variance)
    rows = []
    for base, added in NESTED:
        null, extra = getattr(models, base), models.added[added]
        freedom = added_space(null, extra).shape[1]
        rows.append((base, added, freedom, float(p_added(fit, null, extra, weights))))
    tests = pd.DataFrame(rows, columns=["base", "added", "freedom", "p_value"])
    p_value = float(tests["p_value"][0])
    names = ("mtd", "ema_decay", "queue_size", "additive")
    answer: Answer = "rejected" if p_value <= 1 - level else "not rejected"
    untested = not np.isfinite(p_value)
    return Sufficiency(
        answer="cannot be tested" if untested else answer,
        reason="the configurations are too few for a curve over MTD" if untested else "",
        varied=_COMPONENTS,
        p_value=p_value,
        interaction_p=float(tests["p_value"][2]),
        explained={name: explained_share(fit.means, getattr(models, name)) for name in names},
        freedom={name: int(np.linalg.matrix_rank(getattr(models, name))) - 1 for name in names},
        tests=tests,
        cells=cells,
        pair=pair,
        runs=int(fit.runs.sum()),
        seeds=seeds,
        level=level,
    )


def largest_difference(scores: Floats, mtd: Floats, level: float) -> Pair | None:
    """The largest difference between configurations at nearly equal MTD.

    scores  (S, C), NaN where a run is missing; mtd  (C,), in rising order.

    The interval is the paired t interval over common seeds, Bonferroni-adjusted for all such pairs:
    exact for normal errors with any variances. None without a pair that shares two seeds, or for
    more than 400 configurations.
    """
    if len(mtd) > _MAX_CONFIGURATIONS:
        return None
    near = [(i, j) for i, j in combinations(range(len(mtd)), 2) if mtd[j] <= NEAR * mtd[i]]
    within = {(i, j): _shared(scores[:, i] - scores[:, j]) for i, j in near}
    within = {pair: values for pair, values in within.items() if len(values) > 1}
    if not within:
        return None
    first, second = max(within, key=lambda pair: abs(float(within[pair].mean())))
    values = within[first, second]
    if values.mean() < 0:
        first, second, values = second, first, -values
    found = estimate(values, 1 - (1 - level) / len(within))
    return Pair(first, second, found.mean, found.low, found.high, len(within))


def _shared(differences: Floats) -> Floats:
    return np.asarray(differences[np.isfinite(differences)])
