"""Tests of nested models of configuration means, with seeds as blocks and unequal variances.

Letters: S seeds, C configurations, p columns of a model, r dimensions added by a model. A table of
scores is (..., S, C), NaN for a run that is missing; leading dimensions are independent tables with
the same missing runs.

The statistic is the ANOVA-type statistic of Brunner, Dette and Munk (Journal of the American
Statistical Association 92, 1997, 1494-1502) in weighted least squares: the sum of squares that a
model adds, divided by its expectation, with an F distribution whose degrees of freedom are Box's
approximation. The expectation comes from one error variance per configuration, with errors that are
independent within a seed, or from the covariance between seeds of what the model adds, for seeds
that each respond differently. To each is added that of the evaluation items, where it is known. The
larger p value is used; nothing is tested before.

Of MTD alone the score may be any function: configurations are compared at nearly equal MTD, where
what a curve changes between them is counted as it changes to the levels beside them.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Literal

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import MTD_DECIMALS, round_scores, traced_runs, varied_settings
from mtdlab.analysis.inference.blocks import KNOWN, Blocks, parts_of
from mtdlab.analysis.inference.intervals import Estimate, estimate, share_level
from mtdlab.analysis.inference.pairing import cell_covariance, natural_spline
from mtdlab.analysis.inference.verdict import OverLooks
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.trace import trace_limit

_RANK = 1e-9
_LEVEL_DECIMALS = 6
_MOST_LEVELS = 500
_LEAST_VARIANCE = 1e-6


@dataclass(frozen=True)
class Means:
    """Configuration means adjusted for the effects of seeds.

    Attributes:
        means: (..., C), least-squares means.
        variances: (..., C), error variance of one run of each configuration.
        squares: (..., C), mean squares of the residuals, from which the variances are estimated.
        residuals: (..., S, C), 0 for a run that is missing.
        runs: (C,), runs of each configuration.
    """

    means: Floats
    variances: Floats
    squares: Floats
    residuals: Floats
    runs: Floats


def fit_blocks(scores: Floats) -> Means:
    """Means and error variances of configurations from scores (..., S, C), seeds as blocks.

    Least squares of score ~ seed + configuration. The variances are unbiased quadratic estimates
    from its residuals (approximate where runs are missing), at least 0. Raises ValueError for fewer
    than three configurations, for a configuration with fewer than two runs, and where seeds and
    configurations are not connected by runs.
    """
    present = np.isfinite(scores[(0,) * (scores.ndim - 2)])
    here = present.astype(np.float64)
    runs, width = here.sum(axis=0), here.sum(axis=1)
    if len(runs) < 3 or runs.min() < 2 or width.min() < 1:
        raise ValueError("needs three configurations or more, each with two seeds or more")
    if parts_of(present).any():
        raise ValueError("some configurations share no seed with the others")
    effects = Blocks(present).estimate(scores)
    rest = np.where(present, scores - effects[..., None, :], 0.0)
    of_seeds = rest.sum(axis=-1) / width
    # rounded, so that the variance of equal scores is 0 and not a rounding error
    rest = round_scores((rest - of_seeds[..., None]) * here, scores)
    squares = np.asarray((rest**2).sum(axis=-2) / (runs - 1))
    # of a squared residual, a share is that of the seed's other errors
    mean = float(width.mean())
    others = squares.mean(axis=-1, keepdims=True) / (1 - 1 / mean) / mean
    variances = np.asarray(np.maximum((squares - others) / (1 - 2 / mean), 0.0))
    means = effects + of_seeds.mean(axis=-1, keepdims=True)
    return Means(means, variances, squares, rest, runs)


def smooth(values: Floats, freedom: int) -> Floats:
    """Columns (C, p) of a smooth curve in `values` (C,), p at most freedom + 1 with the constant.

    With at most freedom + 1 distinct values there is an indicator for each. With more it is a
    natural cubic spline with knots at the centres of clusters of values (complete linkage).
    """
    rounded = np.round(values, _LEVEL_DECIMALS)
    levels = np.unique(rounded)
    if len(levels) <= freedom + 1:
        return np.asarray(rounded[:, None] == levels, dtype=np.float64)
    if freedom < 2:
        return np.column_stack([np.ones_like(values), values])
    step = -(-len(levels) // _MOST_LEVELS)
    inner = levels[::step]
    trees = scipy.cluster.hierarchy
    labels = trees.fcluster(trees.linkage(inner[:, None], "complete"), freedom + 1, "maxclust")
    knots = np.sort([inner[labels == label].mean() for label in np.unique(labels)])
    knots[0], knots[-1] = levels[0], levels[-1]
    return natural_spline(knots, values)


def added_space(base: Floats, added: Floats) -> Floats:
    """Orthonormal basis (C, r) of `added` (C, p) orthogonal to `base` (C, q); r may be 0."""
    space = _orthonormal(base)
    return _orthonormal(added - space @ (space.T @ added), float(np.abs(added).max()))


def _orthonormal(columns: Floats, scale: float = 1.0) -> Floats:
    left, size, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, size > _RANK * max(1.0, scale)])


def explained_share(means: Floats, columns: Floats) -> float:
    """R²: share of the variance between the means (C,) that the columns (C, p) explain."""
    space = added_space(np.ones((len(means), 1)), columns)
    total = float(((means - means.mean()) ** 2).sum())
    return float(((means @ space) ** 2).sum()) / total if total > 0 else float("nan")


def model_weights(fit: Means, columns: Floats) -> Floats:
    """Weights of the means (..., C): runs divided by the variance that a log-linear model predicts.

    The variance estimate of a configuration has little influence on its weight, so that an estimate
    that is small by chance does not give a large weight. Weights are equal if all variances are 0.
    `columns` (C, p) are covariates of the logarithm of the error variance.
    """
    largest = fit.squares.max(axis=-1, keepdims=True)
    floor = np.where(largest > 0, _LEAST_VARIANCE * largest, 1.0)
    logs = np.log(np.maximum(fit.squares, floor))
    space = _orthonormal(columns)
    return np.asarray(fit.runs / np.exp(logs @ space @ space.T))


def p_added(
    fit: Means, base: Floats, added: Floats, weights: Floats, items: Floats | None = None
) -> Floats:
    """p values (...,) of the hypothesis that the means follow `base` (C, q) without `added` (C, p).

    The sum of squares that `added` explains in weighted least squares is divided by its expectation
    under the error variances of the configurations, and by that under the covariance between seeds.
    The degrees of freedom are Box's f in the numerator, and in the denominator (1 + f)/2 times the
    mean degrees of freedom of the configurations; with f times, simulated error rates reached 7 %
    at a nominal 5 % where one configuration had most of the variance. Between seeds they are f
    times those of the seeds. NaN where nothing is added; 0 or 1 if all variances are 0. A missing
    run only reduces the number of runs of its configuration.

    The test is valid for any `weights` (..., C), as from `model_weights`; those near the inverse
    variances have more power. `items` is the covariance of the means due to the evaluation items,
    (..., C, C) in points squared, which counts as known; None: not counted.
    """
    null, extra = _orthonormal(base), added_space(base, added)
    if not extra.shape[1]:
        return np.full(fit.means.shape[:-1], np.nan)
    root = np.sqrt(weights)[..., None]
    inside, _ = np.linalg.qr(root * null)
    outside = root * extra
    space, _ = np.linalg.qr(outside - inside @ (np.swapaxes(inside, -1, -2) @ outside))
    observed = (np.einsum("...i,...ir->...r", root[..., 0] * fit.means, space) ** 2).sum(axis=-1)
    scaled = weights * fit.variances / fit.runs
    independent = np.einsum("...ir,...i,...is->...rs", space, scaled, space)
    rooted = root * space
    known = 0 * independent if items is None else np.swapaxes(rooted, -1, -2) @ items @ rooted
    freedom = (fit.runs - 1).mean()
    p_value = _anova_type(observed, independent, known, lambda upper: (1 + upper) / 2 * freedom)
    seeds = fit.residuals.shape[-2]
    single = fit.residuals * (root[..., 0] / fit.runs)[..., None, :] @ space
    between = np.swapaxes(single, -1, -2) @ single * (seeds / (seeds - 1))
    by_seed = _anova_type(observed, between, known, lambda upper: upper * (seeds - 1))
    return np.maximum(p_value, by_seed)


def _anova_type(
    observed: Floats, estimated: Floats, known: Floats, lower: Callable[[Floats], Floats]
) -> Floats:
    """p values of sums of squares (...,) whose terms have the covariance `estimated` + `known`.

    `lower` gives the degrees of freedom of the trace of `estimated` from its Box's f.
    """
    of_seeds, expected = (
        np.trace(covariance, axis1=-2, axis2=-1) for covariance in (estimated, estimated + known)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = expected**2 / ((estimated + known) ** 2).sum(axis=(-2, -1))
        freedom = lower(of_seeds**2 / (estimated**2).sum(axis=(-2, -1)))
        larger = freedom * (expected / of_seeds) ** 2 / (1 + 4 / freedom)
        freedom = np.where(of_seeds > 0, np.maximum(freedom, larger), KNOWN)
        p_value = scipy.special.fdtrc(upper, np.minimum(freedom, KNOWN), observed / expected)
    return np.where(expected > 0, p_value, np.where(observed > _RANK, 0.0, 1.0))


Tested = Literal["rejected", "not rejected", "cannot be tested"]

NEAR = 1.1
"""Two MTDs are nearly equal if the larger is at most this many times the smaller."""

_COMPONENTS = {"ema_decay": "ema_decay", "queue_size": "ratio"}
"""The components of an MTD that a study may vary, and the column that shows it."""
_OF_QUEUE = ("initial_queue_size", "queue_slice")
_COMPONENT = 3
_ADDED = 2
_MAX_CONFIGURATIONS = 400


@dataclass(frozen=True)
class Pair:
    """Two configurations at nearly equal MTD.

    Attributes:
        high_row, low_row: their rows in `Sufficiency.cells`.
        difference: mean paired difference, high minus low, in points, with a simultaneous interval.
    """

    high_row: int
    low_row: int
    difference: Estimate


@dataclass(frozen=True)
class Sufficiency:
    """Whether the score depends on MTD alone.

    Attributes:
        answer, p_value: of the test that MTD is sufficient; reason: why it cannot be tested.
        items: evaluation items whose sampling tests and intervals cover; 0: they are for these.
        p_these: p_value for these items alone; NaN if items is 0.
        interaction_p: of the test that 1/(1 - eta) and K/N are additive.
        explained: R² of the configuration means by model: mtd, ema_decay, queue_size, additive;
            `freedom`: the degrees of freedom of each.
        tests: base, added, freedom, p_value, a row per pair of nested models.
        cells: ema_decay, ratio (K/N), mtd, mean, trials, a row per configuration, sorted by MTD.
        pair: the pair with the largest difference at nearly equal MTD; None without a pair.
        left_out: the levels beyond the run, which are not among the cells.
        runs: the runs of `cells`, with their ratio; no row where only one component varies.
        level: confidence of the test and of the interval; at a look that of this look alone.
        over_looks: what holds over all looks; None for what is computed once.
    """

    answer: Tested
    reason: str = ""
    p_value: float = math.nan
    items: int = 0
    p_these: float = math.nan
    interaction_p: float = math.nan
    explained: Mapping[str, float] = field(default_factory=dict)
    freedom: Mapping[str, int] = field(default_factory=dict)
    tests: pd.DataFrame = field(default_factory=pd.DataFrame)
    cells: pd.DataFrame = field(default_factory=pd.DataFrame)
    pair: Pair | None = None
    seeds: int = 0
    left_out: tuple[float, ...] = ()
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    level: float = LEVEL
    over_looks: OverLooks | None = None


@dataclass(frozen=True)
class Models:
    """The columns (C, p) of the models over a design.

    Attributes:
        null: models with many degrees of freedom: mtd (`near_levels`), ema_decay, queue_size,
            additive.
        added: added terms, with few: mtd, ema_decay, queue_size, components, interaction.
        variance: covariates of the logarithm of the error variance, for the weights.
        mtd: log MTD, (C,).
    """

    null: Mapping[str, Floats]
    added: Mapping[str, Floats]
    variance: Floats
    mtd: Floats


NESTED: tuple[tuple[str, str], ...] = (
    ("mtd", "components"),
    ("additive", "mtd"),
    ("additive", "interaction"),
    ("ema_decay", "queue_size"),
    ("queue_size", "ema_decay"),
    ("ema_decay", "mtd"),
    ("queue_size", "mtd"),
)
"""The null model and the added terms of each test. The first pair tests the hypothesis that MTD is
sufficient."""


def near_levels(mtd: Floats) -> Floats:
    """Indicators (C, G) of G levels of log MTD (C,), in rising order; each spans at most `NEAR`."""
    rounded, firsts = np.round(mtd, _LEVEL_DECIMALS), [-math.inf]
    for value in np.unique(rounded):
        if value > firsts[-1] + math.log(NEAR) + 10**-_LEVEL_DECIMALS:
            firsts.append(value)
    level = np.searchsorted(firsts[1:], rounded, "right")
    return np.asarray(level[:, None] == np.arange(1, len(firsts)), dtype=np.float64)


def curve_covariance(means: Floats, mtd: Floats) -> Floats:
    """Covariance (..., C, C) of what a curve over log MTD (C,) does within `near_levels`.

    It is that of slopes within the levels, independent and with mean 0, whose standard deviations
    are the slopes between the `means` (..., C) of each level and of the level beside it: of two
    the steeper.
    """
    levels = near_levels(mtd)
    if levels.shape[1] < 2:
        return np.zeros((*means.shape, len(mtd)))
    share = levels / levels.sum(axis=0)
    centres = mtd @ share
    # rounded, so that equal scores have no slope
    slopes = (np.diff(round_scores(means @ share, means), axis=-1) / np.diff(centres)) ** 2
    ends = np.concatenate([slopes[..., :1], slopes, slopes[..., -1:]], axis=-1)
    places = (mtd[:, None] - centres) * levels
    steeper = np.maximum(ends[..., :-1], ends[..., 1:])
    return np.asarray((places * steeper[..., None, :]) @ places.T)


def build_models(trace: Floats, ratio: Floats) -> Models:
    """The models of C configurations: trace is 1/(1 - eta), ratio is K/N, both (C,)."""
    mtd, eta, queue = np.log(trace + ratio), np.log(trace), np.log(ratio)
    first, second = smooth(eta, _ADDED), smooth(queue, _ADDED)
    wide = smooth(eta, _COMPONENT), smooth(queue, _COMPONENT)
    products = first[:, :, None] * second[:, None, :]
    return Models(
        null={
            "mtd": near_levels(mtd),
            "ema_decay": wide[0],
            "queue_size": wide[1],
            "additive": np.hstack(wide),
        },
        added={
            "mtd": smooth(mtd, _COMPONENT),
            "ema_decay": first,
            "queue_size": second,
            "components": np.hstack([first, second]),
            "interaction": products.reshape(len(mtd), -1),
        },
        variance=np.column_stack([np.ones_like(eta), eta, queue, eta * queue]),
        mtd=mtd,
    )


def compute_sufficiency(
    study: StudyFrames, trials: pd.DataFrame, level: float = LEVEL
) -> Sufficiency:
    """Test whether the score depends on ema_decay and queue_size through MTD alone.

    The hypothesis is rejected at p <= 1 - level. "cannot be tested" if only one component varies,
    with one seed, or with too few configurations. If other settings vary too, nuisance settings
    aside, only the runs of the combination of their values with the most configurations are used.
    The sampling of the study's items is counted where every run of the test has them.
    """
    runs = traced_runs(trials)
    runs = runs.assign(ratio=(runs["queue_size"] / runs["batch_size"]).astype("float64"))
    runs = runs[(runs["ratio"] > 0) & (runs["ratio"] < runs["mtd"])]
    runs, left_out = leave_out(_one_condition(runs, study.compared), study.beyond_run)
    varied = tuple(name for name, column in _COMPONENTS.items() if runs[column].nunique() > 1)
    if len(varied) < 2:
        missing = "neither ema_decay nor queue_size varies"
        if not len(runs):
            missing = "no trial with a score has a recorded queue"
        reason = f"only {varied[0]} varies" if varied else missing
        within = " within the run" if left_out else ""
        return Sufficiency("cannot be tested", f"{reason}{within}")
    keys = ["mtd", "ratio", "ema_decay"]
    runs = runs.assign(cell=runs.groupby(keys).ngroup())
    table = runs.pivot_table(index="seed", columns="cell", values="score")
    table = table.loc[:, table.notna().sum() > 1].dropna(how="all")
    scores = table.to_numpy(dtype=np.float64)
    cells = runs.drop_duplicates("cell").set_index("cell").loc[table.columns, keys]
    cells = cells.reset_index(drop=True)
    try:
        fit = fit_blocks(scores)
    except ValueError as error:
        return Sufficiency("cannot be tested", str(error), left_out=left_out, runs=runs)
    ratio = cells["ratio"].to_numpy(dtype=np.float64)
    models = build_models(cells["mtd"].to_numpy(dtype=np.float64) - ratio, ratio)
    covariance, counted = cell_covariance(runs, table, "cell", study.items)
    tests = _test_nested(fit, models, covariance)
    p_value = float(tests["p_value"][0])
    answer: Tested = "rejected" if p_value <= 1 - level else "not rejected"
    untested = not np.isfinite(p_value)
    return Sufficiency(
        answer="cannot be tested" if untested else answer,
        reason="no two configurations have nearly equal MTD" if untested else "",
        p_value=p_value,
        items=counted,
        p_these=float(_test_nested(fit, models)["p_value"][0]) if counted else math.nan,
        interaction_p=float(tests["p_value"][2]),
        explained={name: explained_share(fit.means, null) for name, null in models.null.items()},
        freedom={name: int(np.linalg.matrix_rank(x)) - 1 for name, x in models.null.items()},
        tests=tests,
        cells=cells.assign(mean=fit.means, trials=fit.runs.astype(int)),
        pair=largest_difference(scores, cells["mtd"].to_numpy(), covariance, level),
        seeds=len(table),
        left_out=left_out,
        runs=runs,
        level=level,
    )


def _test_nested(fit: Means, models: Models, items: Floats | None = None) -> pd.DataFrame:
    """The table `Sufficiency.tests`."""
    weights, rows = model_weights(fit, models.variance), []
    curve = curve_covariance(fit.means, models.mtd)
    of_mtd = curve if items is None else curve + items
    for base, added in NESTED:
        null, extra = models.null[base], models.added[added]
        freedom = added_space(null, extra).shape[1]
        known = of_mtd if base == "mtd" else items
        rows.append((base, added, freedom, float(p_added(fit, null, extra, weights, known))))
    return pd.DataFrame(rows, columns=["base", "added", "freedom", "p_value"])


def _one_condition(runs: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """Runs with equal values of all other settings: the values with the most configurations."""
    known = {*settings, "batch_size"} - {"mtd"}
    others = [name for name in varied_settings(runs, known) if name not in _COMPONENTS]
    # settings that are a function of the queue size are not conditions
    by_queue = runs.groupby("queue_size")
    for name in set(others) & set(_OF_QUEUE):
        if by_queue[name].nunique(dropna=False).max() < 2:
            others.remove(name)
    if not others:
        return runs
    condition = runs.groupby(others, dropna=False).ngroup()
    pairs = runs.assign(condition=condition).drop_duplicates(["condition", "ratio", "ema_decay"])
    return runs[condition == pairs["condition"].value_counts(sort=False).sort_index().idxmax()]


def largest_difference(
    scores: Floats, mtd: Floats, items: Floats | None = None, level: float = LEVEL
) -> Pair | None:
    """The largest difference between configurations at nearly equal MTD, (C,), rising.

    The interval is the paired t interval over common seeds, Bonferroni-adjusted for all such pairs:
    exact for normal errors with any variances, where `items`, as for `p_added`, are not counted.
    None without a pair that shares two seeds, or for more than 400 configurations. `scores` are (S,
    C), NaN where a run is missing.
    """
    if len(mtd) > _MAX_CONFIGURATIONS:
        return None
    near = [(i, j) for i, j in combinations(range(len(mtd)), 2) if mtd[j] <= NEAR * mtd[i]]
    differences = {(i, j): scores[:, i] - scores[:, j] for i, j in near}
    shared = {pair: values[np.isfinite(values)] for pair, values in differences.items()}
    within = {pair: values for pair, values in shared.items() if len(values) > 1}
    if not within:
        return None
    first, second = max(within, key=lambda pair: abs(float(within[pair].mean())))
    values = within[first, second]
    if values.mean() < 0:
        first, second, values = second, first, -values
    of_items = 0.0
    if items is not None:
        of_items = items[first, first] + items[second, second] - 2 * items[first, second]
    share = share_level(len(within), level)
    interval = estimate(values, share, of_items=max(float(of_items), 0.0))
    return Pair(first, second, interval)


# the rules that `describe_confounding` states
MAX_CORRELATION = 0.95
MAX_CONSTANT_SHARE = 1 / 3
_MIN_CONFIGURATIONS = 3


def describe_confounding(ema_decay: ArrayLike, ratio: ArrayLike) -> str:
    """Which components a design of C configurations confounds with MTD, as text; empty if none.

    Each configuration has an eta and a K/N, (C,) each. A design confounds MTD with a component if
    only that component varies, if the logarithms of both have a correlation above 0.95, or if the
    component is constant over the third of configurations with the highest (or the lowest) MTD.
    Configurations without a queue are left out; a design with one MTD gives an empty text.
    """
    trace = trace_limit(ema_decay)
    queue = np.asarray(ratio, dtype=np.float64)
    trace, queue = trace[queue > 0], queue[queue > 0]
    if len(np.unique(np.round(trace + queue, MTD_DECIMALS))) < 2:
        return ""
    varied = {name: values for name, values in (("η", trace), ("K/N", queue)) if np.ptp(values)}
    if len(varied) == 1:
        name = next(iter(varied))
        return f"Only {name} varies, so its effect and that of MTD cannot be separated."
    mtd = trace + queue
    sizes = {
        name: abs(float(np.corrcoef(np.log(mtd), np.log(values))[0, 1]))
        for name, values in varied.items()
    }
    name = max(sizes, key=lambda component: sizes[component])
    confounded = f"{name}: the correlation of their logarithms is {sizes[name]:.2f}"
    if sizes[name] <= MAX_CORRELATION:
        confounded = _constant_end(varied, mtd)
    return f"The design confounds MTD with {confounded}." if confounded else ""


def _constant_end(varied: dict[str, Floats], mtd: Floats) -> str:
    """The component that is constant over the highest or lowest MTDs, as text; else empty."""
    order = np.argsort(mtd, kind="stable")
    least = max(_MIN_CONFIGURATIONS, int(np.ceil(MAX_CONSTANT_SHARE * len(mtd))))
    for end, (name, values) in product((order[-least:], order[:least]), varied.items()):
        if np.ptp(values[end]) == 0:
            low, high = mtd[end].min(), mtd[end].max()
            value = 1 - 1 / values[end][0] if name == "η" else values[end][0]
            return f"{name}: all configurations of MTD {low:.4g} to {high:.4g} have {value:.4g}"
    return ""
