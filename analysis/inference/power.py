"""Power of the verdict by simulation: the seeds and the evaluation items that a study needs.

Studies of a design are simulated with normal errors and effects of the items
(`mtdlab.analysis.inference.scatter`), and tested as their runs will be. Letters: L levels of MTD, S
seeds, B simulated studies, K looks.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from mtdlab.analysis.inference.best import BestVerdict, classify_best
from mtdlab.analysis.inference.blocks import Fit
from mtdlab.analysis.inference.differences import Differences, are_within, find_difference
from mtdlab.analysis.inference.pairing import MOST_LEVELS, LevelScores, merge_levels
from mtdlab.analysis.inference.scatter import Scatter, difference_variance, estimate_scatter
from mtdlab.analysis.inference.shapes import LEAST_FLAT, UNDECIDED, ShapeTests, design_tests
from mtdlab.analysis.inference.simultaneous import null_with_items, root_of
from mtdlab.analysis.inference.verdict import Verdict
from mtdlab.analysis.measures import Floats

OTHER_LEVELS = (5, 9)
POWER, MOST_SEEDS = 0.8, 512
ANY_SEEDS = 10**8
"""A number of seeds whose errors are negligible beside those of the items."""
_TRIED: tuple[int, ...] = (
    *range(2, 21),
    *(int(20 * 1.05**step) for step in range(2, 67)),
    MOST_SEEDS,
)
"""Numbers of seeds that are tried; above 20 in steps of 5 %, as 1,000 studies resolve no more."""
_SIMULATED: tuple[int, ...] = (*range(2, 11), 13, 16, 20, 25, 32, 40)
"""Numbers of seeds that are simulated in place of those that are tried, with errors that are larger
or smaller in proportion, since critical values take long: the last one for all above it (a t
quantile with 39 degrees of freedom is 3 % above a normal one)."""
_STAND_INS = {seeds: max(fewer for fewer in _SIMULATED if fewer <= seeds) for seeds in _TRIED}
_FIRST = 16
"""The number of seeds with which a search begins."""
_DRAWS = 1_000
_FURTHEST = 64.0
"""The largest factor of an effect that is tried."""

Find = Callable[[ShapeTests, Fit, float, float], NDArray[np.bool_]]
"""Whether each of B simulated studies finds an effect, from tests, fit, alpha and margin."""


@dataclass(frozen=True)
class Needed:
    """What a verdict takes with 80 % power.

    Attributes:
        seeds: None where more than 512 are needed, or no number is enough.
        items: where no number of seeds is enough with the items that are counted: how many items
            are needed at least; None elsewhere.
    """

    seeds: int | None
    items: int | None = None


@dataclass(frozen=True, eq=False)
class PlannedDesign:
    """What planned configurations compare.

    Attributes:
        distance: levels of MTD in rising order, or places of configurations without an order, (L,).
        ordered: whether they are levels of MTD.
        rows: the differences between configurations that are asked about, (K, L); None: all.
        shared: how many such designs share the error rate.
    """

    distance: Floats
    ordered: bool = True
    rows: Floats | None = None
    shared: int = 1


@dataclass(frozen=True)
class Target:
    """What a study is to show, in points, how often it does, and what showing it takes.

    Attributes:
        kind: a peak, a slope, the end of that slope ("rising"), or no difference over levels of
            MTD; that the best configuration is above all others, which are alike, or that all of
            them are equivalent; that a difference is shown.
        points: the peak, the slope, the lead of the best, the difference, or the margin: that of
            the end is by how much less the best level is above it.
        compared: how many levels of MTD or configurations.
        found: the share of studies with the planned seeds that show it; None where it is unknown.
        needed: what 80 % power takes.
    """

    kind: Literal["peak", "slope", "end", "flat", "best", "equivalent", "difference"]
    points: float
    compared: int
    found: float | None
    needed: Needed


class _Studies:
    """B simulated studies without differences between levels, at each of K looks.

    Of the last look `simulated` seeds are drawn, by default at most 40, with errors in proportion.
    """

    def __init__(
        self, distance: Floats, looks: Sequence[int], scatter: Scatter, simulated: int | None = None
    ) -> None:
        simulated = simulated or min(looks[-1], _SIMULATED[-1])
        share, levels = simulated / looks[-1], len(distance)
        items = None if scatter.items is None else scatter.items.at(distance)
        tables = _draw(scatter.errors.at(distance) * share, items, simulated)
        drawn = [max(round(share * seeds), 2) for seeds in looks]
        places = distance if scatter.ordered else None
        # one seed finds nothing
        self._looks = [_fit(tables[:, :n], places, items) for n in drawn] if looks[-1] > 1 else []
        self._centre = np.eye(levels) - 1 / levels

    def find(
        self, find: Find, effects: Floats, alphas: Sequence[float], margin: float = 0.0
    ) -> float:
        """The share of studies that find something at one of the looks, with effects (L,)."""
        shifted = effects @ self._centre
        significant = [
            find(tests, replace(fit, effects=fit.effects + shifted), alpha, margin)
            for (tests, fit), alpha in zip(self._looks, alphas, strict=bool(self._looks))
        ]
        return float(np.any(significant, axis=0).mean())

    def flat_margin(self, alpha: float) -> float:
        """The margin in points within which 80 % of the studies are flat at the last look."""
        tests, fit = self._looks[-1]
        estimate, width = tests.each_pair.intervals(fit, alpha)
        return float(np.quantile((np.abs(estimate) + width).max(axis=-1), POWER))


def _fit(tables: Floats, distance: Floats | None, items: Floats | None) -> tuple[ShapeTests, Fit]:
    """Simulated tables (B, S, L) with the tests of their design; without a distance, no order."""
    tests = design_tests(np.ones(tables.shape[1:], dtype=bool), distance)
    fit = tests.fit(tables)
    if items is None:
        return tests, fit
    # the variance as a power of 2: critical values hardly depend on it, and take long to simulate
    variance = 2.0 ** round(math.log2(fit.typical.mean()))
    null = null_with_items(tests.null, items / variance)
    with_items = ShapeTests(null, tests.distance, items, can_be_flat=tests.can_be_flat)
    return with_items, replace(fit, items=items)


def _draw(errors: Floats, items: Floats | None, seeds: int) -> Floats:
    """Simulated tables, (B, S, L); the same for the same arguments."""
    levels = len(errors)
    draws = int(np.clip(2_000_000 // (seeds * levels), 100, _DRAWS))
    rng = np.random.default_rng(0)
    tables = rng.standard_normal((draws, seeds, levels)) @ root_of(errors)
    if items is not None:
        tables += rng.standard_normal((draws, 1, levels)) @ root_of(items)
    return np.asarray(tables)


def _find_peak(tests: ShapeTests, fit: Fit, alpha: float, _: float) -> NDArray[np.bool_]:
    best = fit.effects.argmax(axis=-1)
    inside = (best > 0) & (best < tests.levels - 1)
    return np.asarray((tests.test_peak(fit) <= alpha) & inside)


def _find_slope(tests: ShapeTests, fit: Fit, alpha: float, _: float) -> NDArray[np.bool_]:
    return np.asarray(tests.test_trend(fit)[0] <= alpha)


def _find_end(tests: ShapeTests, fit: Fit, alpha: float, margin: float) -> NDArray[np.bool_]:
    is_near = tests.bound_shortfall(fit, alpha)[..., -1] < margin
    return np.asarray(_find_slope(tests, fit, alpha, margin) & is_near)


def _separate_first(tests: ShapeTests, fit: Fit, alpha: float, _: float) -> NDArray[np.bool_]:
    return np.asarray((tests.test_best(fit) <= alpha) & (fit.effects.argmax(axis=-1) == 0))


def _are_equivalent(tests: ShapeTests, fit: Fit, alpha: float, margin: float) -> NDArray[np.bool_]:
    return np.asarray(classify_best(tests, fit, alpha, margin) == "equivalent")


def peak_effects(distance: Floats, height: float) -> Floats:
    """A parabola in log MTD, (L,): the maximum in the middle, `height` points above both ends."""
    place = np.log(distance)
    middle, half = (place[0] + place[-1]) / 2, (place[-1] - place[0]) / 2
    return np.asarray(-height * ((place - middle) / half) ** 2, dtype=np.float64)


def slope_effects(distance: Floats, height: float) -> Floats:
    """A line in log MTD, (L,), `height` points higher at the last level than at the first."""
    place = np.log(distance)
    return np.asarray(height * (place - place[0]) / (place[-1] - place[0]), dtype=np.float64)


def design_levels(levels: ArrayLike) -> Floats:
    """The levels of a design that are compared, (L,), in rising order: more than 30 are merged."""
    return np.unique(merge_levels(pd.Series(np.asarray(levels, dtype=np.float64))))


def _show_difference(rows: Floats) -> Find:
    """Whether a difference of `rows` (K, L) is shown."""
    return lambda tests, fit, alpha, _: find_difference(tests.simultaneous(rows), fit, alpha)


def _show_equivalence(rows: Floats) -> Find:
    """Whether all differences of `rows` (K, L) are shown to be smaller than the margin."""
    return lambda tests, fit, alpha, margin: are_within(
        tests.simultaneous(rows), fit, alpha, margin
    )


def compute_targets(
    planned: PlannedDesign,
    looks: Sequence[int],
    alphas: Sequence[float],
    *,
    effect: float,
    margin: float,
    scatter: Scatter,
    alpha: float,
) -> list[Target]:
    """What a study with K looks is to show, at `effect` points and within the margin.

    Targets over MTD are a peak, also at 5 and 9 levels that are evenly spaced in log MTD over the
    same range, a slope, that its end is within the margin of the best level, and, with three seeds
    and levels or more, the margins at which a flat score is shown to be flat: that of the seeds,
    and the wanted one where it takes more items. Targets of configurations are the best one and
    their equivalence, or the differences that are asked about.

    Args:
        planned: the design, of at least two levels or configurations.
        looks: the seeds of each look, in rising order; all levels have them; alphas: the
            significance levels of the looks.
        alpha: that of the one test for which seeds are counted.
    """
    distance, alpha = planned.distance, alpha / planned.shared
    count, studies = len(distance), _Studies(distance, looks, scatter)
    find = partial(studies.find, alphas=[nominal / planned.shared for nominal in alphas])
    if not planned.ordered:
        design = _Design(distance, scatter, alpha)
        find_lead: Find = _separate_first
        find_alike: Find = _are_equivalent
        lead = np.where(np.arange(count) == 0, effect, 0.0)
        if (rows := planned.rows) is not None:
            find_lead, find_alike = _show_difference(rows), _show_equivalence(rows)
            lead = effect * rows[0] / (rows[0] @ rows[0])
        kind: Literal["best", "difference"] = "best" if rows is None else "difference"
        needed = design.need(find_lead, lead)
        alike = design.need(find_alike, np.zeros(count), margin)
        return [
            Target(kind, effect, count, find(find_lead, lead), needed),
            Target("equivalent", margin, count, None, alike),
        ]
    targets = _shape_targets(distance, find, effect, margin, scatter, alpha)
    if min(looks[-1], count) < LEAST_FLAT:
        return targets
    reached = studies.flat_margin(alphas[-1])
    targets.append(Target("flat", reached, count, POWER, Needed(looks[-1])))
    if scatter.items is not None:
        least = _Studies(distance, (ANY_SEEDS,), scatter, _FIRST).flat_margin(alphas[-1])
        if least > margin:
            items = math.ceil(scatter.count * (least / margin) ** 2)
            targets.append(Target("flat", margin, count, None, Needed(None, items)))
    return targets


def _shape_targets(
    distance: Floats,
    find: Callable[..., float],
    effect: float,
    margin: float,
    scatter: Scatter,
    alpha: float,
) -> list[Target]:
    """The peaks, the slope and its end; `find` gives the share of a study's own."""
    targets, count, first = [], len(distance), _FIRST
    others = (levels for levels in OTHER_LEVELS if levels != count)
    for levels in (distance, *(np.geomspace(distance[0], distance[-1], n) for n in others)):
        design, is_own = _Design(levels, scatter, alpha), levels is distance
        if len(levels) > 2:
            peak = peak_effects(levels, effect)
            found = find(_find_peak, peak) if is_own else None
            needed = design.need(_find_peak, peak, first=first)
            targets.append(Target("peak", effect, len(levels), found, needed))
            # one answer is a good beginning for the search of the next
            first = needed.seeds or first
        if is_own:
            slope = slope_effects(levels, effect)
            needed = design.need(_find_slope, slope, first=first)
            of_slope = Target("slope", effect, count, find(_find_slope, slope), needed)
            needed = design.need(_find_end, slope, margin, first=needed.seeds or first)
            found = find(_find_end, slope, margin=margin)
            of_end = Target("end", margin, count, found, needed)
    return [*targets, of_slope, of_end]


class _Design:
    """The search of what one design needs; each number of seeds is simulated once."""

    def __init__(self, distance: Floats, scatter: Scatter, alpha: float) -> None:
        self._scatter, self._alpha = scatter, alpha
        self._simulate = cache(lambda seeds, drawn: _Studies(distance, (seeds,), scatter, drawn))

    def need(self, find: Find, effects: Floats, margin: float = 0.0, first: int = _FIRST) -> Needed:
        """Seeds, or items where no number of seeds is enough; the search begins at `first` seeds.

        As there are no errors beside those of the items then, effects and margins that are larger
        by a factor are as if the items were more by its square.
        """

        def is_enough(seeds: int, simulated: int, factor: float = 1.0) -> bool:
            studies, larger = self._simulate(seeds, simulated), factor * effects
            return bool(studies.find(find, larger, (self._alpha,), factor * margin) >= POWER)

        if self._scatter.items is not None and not is_enough(ANY_SEEDS, _FIRST):
            factor = _smallest_factor(partial(is_enough, ANY_SEEDS, _FIRST))
            count = self._scatter.count
            return Needed(None, None if factor is None else math.ceil(count * factor**2))
        # a beginning that takes one simulation of critical values, then each number with its own
        near = fewest_seeds(lambda seeds: is_enough(seeds, _FIRST), _TRIED, first) or MOST_SEEDS
        return Needed(fewest_seeds(lambda seeds: is_enough(seeds, _STAND_INS[seeds]), _TRIED, near))


def _smallest_factor(is_enough: Callable[[float], bool]) -> float | None:
    """The smallest factor from 1 to `_FURTHEST` that is enough, to 1 %; None if none is."""
    low, high = 1.0, _FURTHEST
    if not is_enough(high):
        return None
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Precision:
    """What limits the comparison of two levels, in points.

    Attributes:
        residual_sd: residual standard deviation of a run.
        of_seeds, of_items: standard error of a difference between two levels due to the seeds, and
            due to the evaluation items, the root mean square over pairs of levels; 0 where items
            are not counted.
    """

    residual_sd: float
    of_seeds: float
    of_items: float


def compute_precision(distance: Floats, seeds: int, scatter: Scatter) -> Precision:
    """The precision of a study with so many seeds at each level."""
    residual, of_items = difference_variance(scatter.errors.at(distance)), 0.0
    if scatter.items is not None:
        of_items = 2 * difference_variance(scatter.items.at(distance))
    return Precision(math.sqrt(residual), math.sqrt(2 * residual / seeds), math.sqrt(of_items))


def need_for_verdict(levels: LevelScores, verdict: Verdict | BestVerdict) -> Needed | None:
    """What a verdict that is decided takes, if all is as estimated.

    The estimate, of the scores that gave the verdict, favours what was seen: an order of magnitude.
    None with fewer than two columns or seeds, and for more than 30 configurations.
    """
    if not levels.comparable or levels.scores.shape[1] > MOST_LEVELS:
        return None
    return count_needed(
        levels.distance,
        levels.fit.effects,
        scatter=estimate_scatter(levels),
        alpha=1 - verdict.level,
        margin=verdict.margin,
    )


def need_for_differences(
    table: pd.DataFrame, covariance: Floats | None, rows: Floats, judged: Differences
) -> Needed | None:
    """What showing a difference of `rows` (K, C), or that all are small, takes with 80 % power.

    If all is as estimated, of scores by seed and configuration (S, C). None for more than 30
    configurations.
    """
    if table.shape[1] > MOST_LEVELS:
        return None
    scores = LevelScores(table, covariance, judged.items, ordered=False)
    show, show_alike = _show_difference(rows), _show_equivalence(rows)

    def decides(tests: ShapeTests, fit: Fit, level: float, least: float) -> NDArray[np.bool_]:
        return show(tests, fit, level, least) | show_alike(tests, fit, level, least)

    design = _Design(scores.distance, estimate_scatter(scores), 1 - judged.level)
    return design.need(decides, scores.fit.effects, judged.margin)


def count_needed(
    distance: Floats, effects: Floats, *, scatter: Scatter, alpha: float, margin: float
) -> Needed:
    """What a verdict that is decided takes with 80 % power.

    `distance` is MTD in rising order, or places where the scatter is that of configurations,
    `effects` the score in points, (L,) each.
    """

    def decides(tests: ShapeTests, fit: Fit, level: float, least: float) -> NDArray[np.bool_]:
        if scatter.ordered:
            return ~np.isin(tests.classify(fit, level, least).shape.astype(str), UNDECIDED)
        return np.asarray(classify_best(tests, fit, level, least) != "inconclusive")

    return _Design(distance, scatter, alpha).need(decides, effects, margin)


def fewest_seeds(is_enough: Callable[[int], bool], tried: Sequence[int], first: int) -> int | None:
    """The smallest of some rising numbers of seeds for which `is_enough`, None if none.

    `is_enough` is true for all numbers above the smallest for which it is. The search begins at
    `first`: it takes the fewest calls if this is close.
    """
    low, high, step = -1, len(tried), 1
    at = min(int(np.searchsorted(tried, first)), high - 1)
    while high - low > 1:
        if is_enough(tried[at]):
            high, at = at, max(at - step, low + 1)
        else:
            low, at = at, min(at + step, high - 1)
        step *= 2
        if low >= 0 and high < len(tried):
            at = (low + high) // 2
    return tried[high] if high < len(tried) else None
