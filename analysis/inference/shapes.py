"""The shape of scores over levels of MTD.

Letters: S seeds, L levels of MTD in rising order, K contrasts, B tables. A table of scores is
(S, L) with NaN where a run is missing, as required by `Blocks`; `distance` is (L,). A difference
of two levels has one interval, simultaneous over all pairs of levels, whichever two are stated: it
may contain 0 where the test of a peak or a trend, which is of another family, is significant. Every
test uses the largest p value of several variances (`mtdlab.analysis.inference.blocks`),
and a critical value that is also valid for unequal variances and for seeds with curves of their own
(`mtdlab.analysis.inference.simultaneous`).

The test of a peak is the two-line test (Simonsohn 2018): the least-squares slopes on log MTD up to
a level and down from it are both significant, at the same inner level, which is chosen on the data.
The critical value is that of the largest slope on one side. It controls the error rate: where the
score only rises, no slope has a negative expectation, so a false peak needs a significantly
negative slope on the falling side.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mtdlab.analysis.data.runs import round_scores
from mtdlab.analysis.inference.blocks import Blocks, Fit, connected_table
from mtdlab.analysis.inference.simultaneous import Families, Null, null_for, null_of
from mtdlab.analysis.measures import Floats

Shape = Literal[
    "flat",
    "rising",
    "rising, lower at the end",
    "rising, end open",
    "falling",
    "falling, lower at the start",
    "falling, start open",
    "peaked",
    "inconclusive",
]
UNDECIDED: tuple[Shape, ...] = ("rising, end open", "falling, start open", "inconclusive")
"""The shapes of which more seeds may show more."""
LEAST_FLAT = 3
"""The fewest seeds, and levels where these have an order, with which a score is called flat."""


@dataclass(frozen=True)
class Shapes:
    """Results of the tests on B tables.

    Attributes:
        shape: (B,) names of `Shape`.
        p_peak: (B,) of the test of a peak, NaN with fewer than 3 levels.
        p_trend, slope: (B,) two-sided, of the slope over all levels, in points per unit of log MTD,
            and of the difference of the ends in its direction: the larger p value.
        best: (B,) the level with the highest estimate.
        optimal: (B, L) whether a level is statistically indistinguishable from the best; also an
            end where the shape is peaked, since the score may fall from it before it rises.
        shortfall: (B, L) upper bounds of the best level minus each one, in points, together for all
            levels.
        peak_excluded: (B,) whether a peak of at least the margin above both ends is excluded.
    """

    shape: NDArray[np.object_]
    p_peak: Floats
    p_trend: Floats
    slope: Floats
    best: NDArray[np.intp]
    optimal: NDArray[np.bool_]
    shortfall: Floats
    peak_excluded: NDArray[np.bool_]


def slope_contrasts(distance: Floats) -> tuple[Floats, Floats]:
    """Slopes on log MTD up to each inner level and, negated, down from it: (L - 2, L) each.

    In points per unit of the logarithm; a peak has both above 0.
    """
    place = np.log(distance)
    inner = range(1, len(place) - 1)
    up = [_slope(place, slice(None, level + 1)) for level in inner]
    down = [-_slope(place, slice(level, None)) for level in inner]
    return np.reshape(up, (-1, len(place))), np.reshape(down, (-1, len(place)))


def _slope(place: Floats, part: slice) -> Floats:
    """Weights of the levels in the least-squares slope over `part`, (L,); 0 outside it."""
    weights = np.zeros_like(place)
    centred = place[part] - place[part].mean()
    weights[part] = centred / (centred @ centred)
    return weights


def _differences(levels: int, reference: int) -> Floats:
    """Contrasts (L - 1, L): every other level minus the level `reference`."""
    rows = np.delete(np.eye(levels), reference, axis=0)
    rows[:, reference] = -1
    return rows


def _pairs(levels: int) -> Floats:
    """Contrasts (L (L - 1) / 2, L): every level minus each that comes before it."""
    return np.vstack([_differences(levels, first)[first:] for first in range(levels - 1)])


class ShapeTests:
    """The tests for one design, of which `null` has simulated tables.

    `items` is the covariance of the levels' effects due to the evaluation items, (L, L) in points
    squared; None: not counted. `can_be_flat`: whether there are seeds and levels enough to call a
    score flat.
    """

    def __init__(
        self, null: Null, distance: Floats, items: Floats | None = None, *, can_be_flat: bool = True
    ) -> None:
        self.distance = distance
        self.levels = len(distance)
        self.null, self._items = null, items
        self.can_be_flat = can_be_flat

    def fit(self, scores: Floats) -> Fit:
        return self.null.errors.fit(scores, self._items)

    def simultaneous(self, rows: Floats) -> Families:
        """One family of contrasts (K, L) for simultaneous two-sided intervals."""
        return Families(self.null, [rows], two_sided=True)

    def band(self, rows: Floats) -> Families:
        """The same of differences to the mean over levels."""
        return Families(self.null, [rows], two_sided=True, alone=False)

    def classify(self, fit: Fit, alpha: float, margin: float) -> Shapes:
        """The shapes of B tables at significance level alpha; margin in points.

        Flat is tested first, by equivalence tests of every pair of levels: a difference that is not
        significant does not show that there is none. A trend needs a significant slope and ends
        that differ significantly in its direction. Whether the score keeps to it up to the upper
        end is a claim of its own: it does where that end is shown to be less than the margin below
        the best level, it does not where another level is significantly better, and else it is
        open.
        """
        optimal, best = self.find_optimal(fit, alpha), fit.effects.argmax(axis=-1)
        shortfall = self.bound_shortfall(fit, alpha)
        p_peak = self.test_peak(fit)
        p_trend, slope = self.test_trend(fit)
        inside = (best > 0) & (best < self.levels - 1)
        shape = np.full(len(best), "inconclusive", dtype=object)
        for name, end, at, sign in (("rising", "end", -1, 1), ("falling", "start", 0, -1)):
            trend = (p_trend <= alpha) & (sign * slope > 0)
            kept = shortfall[:, at] < margin
            shape[trend] = f"{name}, {end} open"
            shape[trend & ~optimal[:, at]] = f"{name}, lower at the {end}"
            shape[trend & kept] = name
        flat = self.are_flat(fit, alpha, margin)
        peaked = (p_peak <= alpha) & inside & ~flat
        shape[peaked] = "peaked"
        shape[flat] = "flat"
        excluded = (shape != "peaked") & (shortfall[:, [0, -1]] < margin).any(axis=-1)
        return Shapes(shape, p_peak, p_trend, slope, best, optimal, shortfall, excluded)

    def test_peak(self, fit: Fit) -> Floats:
        """The p value of the two-line test, (B,); NaN with fewer than 3 levels."""
        if self.levels < 3:
            return np.full(fit.effects.shape[:-1], np.nan)
        return self.lines.p_value(np.minimum(*self.lines.scores(fit)).max(axis=-1))

    def test_trend(self, fit: Fit) -> tuple[Floats, Floats]:
        """The p value of a trend, and the slope over all levels, (B,) each.

        The larger of two two-sided p values: of the slope and of the last level minus the first,
        1 where their signs differ. Both must be significant, as the slope over unevenly spaced
        levels also differs from 0 where the score peaks or has a valley in their middle; no
        correction for their number is needed (intersection-union test).
        """
        slope, ends = self.trend.compare(fit), self.ends.compare(fit)
        larger = np.maximum(
            self.trend.p_value(np.abs(slope.scores())), self.ends.p_value(np.abs(ends.scores()))
        )
        agree = slope.estimate * ends.estimate >= 0
        return np.where(agree, larger, 1.0)[..., 0], slope.estimate[..., 0]

    def find_optimal(self, fit: Fit, alpha: float) -> NDArray[np.bool_]:
        """Whether no other level is significantly better than a level, (..., L).

        Multiple comparisons with the best (Hsu 1984): these levels include the best one with
        probability at least 1 - alpha.
        """
        critical = self._against_each.critical(alpha)
        largest = [scores.max(axis=-1) for scores in self._against_each.scores(fit)]
        return np.stack(largest, axis=-1) <= critical

    def bound_shortfall(self, fit: Fit, alpha: float) -> Floats:
        """Upper bounds of the best level minus each level, at least 0, (..., L).

        All hold together with probability at least 1 - alpha (Hsu 1984): all that they need is that
        the level that is truly the best is within its intervals to the others.
        """
        estimate, width = self._against_each.intervals(fit, alpha)
        above = (estimate + width).reshape(*estimate.shape[:-1], self.levels, self.levels - 1)
        return np.asarray(np.maximum(above.max(axis=-1), 0.0))

    def bound_spread(self, fit: Fit, alpha: float, among: NDArray[np.bool_]) -> float:
        """By how much any two of some levels (L,) of one table differ at most, in points.

        The bound is simultaneous over all pairs of levels.
        """
        estimate, width = self.all_pairs.intervals(fit, alpha)
        inside = np.abs(_pairs(self.levels)) @ among == 2
        return float((np.abs(estimate) + width)[inside].max(initial=0.0))

    def are_flat(
        self, fit: Fit, alpha: float, margin: float, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Whether all levels of each of B tables are equivalent: differ by less than the margin.

        Two one-sided tests (Schuirmann 1987) per pair of levels at alpha; all must be significant,
        so that no correction for their number is needed. `among`: which levels are asked about,
        (B, L); None: all.
        """
        gaps = np.abs(fit.effects @ _pairs(self.levels).T)
        near = (gaps < margin) | ~self._asks_pairs(among, fit)
        flat = np.asarray(self.can_be_flat & near.all(axis=-1))
        if flat.any():
            asked = None if among is None else among[flat]
            flat[flat] = self.bound_each(fit.part(flat), alpha, asked) < margin
        return flat

    def bound_each(self, fit: Fit, alpha: float, among: NDArray[np.bool_] | None = None) -> Floats:
        """The farthest end from 0 of the intervals on which `are_flat` rests, in points, (B,).

        A pair has its own interval at 1 - 2 alpha: two one-sided tests at alpha.
        """
        estimate, width = self.each_pair.intervals(fit, alpha)
        inside = self._asks_pairs(among, fit)
        return np.asarray(np.where(inside, np.abs(estimate) + width, 0.0).max(axis=-1))

    def _asks_pairs(self, among: NDArray[np.bool_] | None, fit: Fit) -> NDArray[np.bool_]:
        """Which pairs of levels are asked about, (B, L (L - 1) / 2)."""
        asked = np.ones(fit.effects.shape, dtype=np.bool_) if among is None else among
        return np.asarray(asked @ (_pairs(self.levels) != 0).astype(np.int64).T == 2)

    def test_best(self, fit: Fit) -> Floats:
        """The p value of the level with the highest estimate being above each other one, (B,).

        It is at most alpha where the intervals of all these differences, simultaneous over all
        pairs of levels with confidence 1 - alpha, are above 0.
        """
        best = np.eye(self.levels)[fit.effects.argmax(axis=-1)]
        [scores] = self.all_pairs.scores(fit)
        apart = np.where(best @ np.abs(_pairs(self.levels)).T > 0, scores, np.inf)
        return self.all_pairs.p_value(apart.min(axis=-1))

    def find_may_be_best(self, fit: Fit, alpha: float) -> NDArray[np.bool_]:
        """The level with the highest estimate, and those that it is not shown to be above, (B, L).

        Their differences to it have intervals that are simultaneous over all pairs and include 0,
        as in `compare_with`.
        """
        best = fit.effects.argmax(axis=-1)[..., None, None]
        return ~np.take_along_axis(self.find_above(fit, alpha), best, axis=-2)[..., 0, :]

    def find_above(self, fit: Fit, alpha: float) -> NDArray[np.bool_]:
        """Whether a level (row) is shown to be above another one (column), (..., L, L).

        The intervals of their differences are simultaneous over all pairs.
        """
        estimate, width = self.all_pairs.intervals(fit, alpha)
        first, second = np.triu_indices(self.levels, 1)
        above = np.zeros((*estimate.shape[:-1], self.levels, self.levels), dtype=np.bool_)
        # a pair is the second minus the first
        above[..., second, first], above[..., first, second] = estimate > width, -estimate > width
        return above

    def compare_with(self, fit: Fit, reference: int, alpha: float) -> Floats:
        """Each level minus the level `reference` in one table, (L, 3): mean, low, high.

        The intervals are simultaneous over all pairs, hence valid for levels that were chosen on
        the same scores.
        """
        rows = np.eye(self.levels)
        rows[:, reference] -= 1
        comparison = self.null.errors.compare(fit, self.null.errors.weigh(rows))
        mean, width = comparison.estimate, comparison.half_width(self.all_pairs.critical(alpha))
        return np.column_stack([mean, mean - width, mean + width])

    def estimate_offsets(self, fit: Fit, alpha: float) -> tuple[Floats, Floats, Floats]:
        """Each level minus the mean over levels, (L,), with pointwise and simultaneous half widths.

        The intervals have the confidence 1 - alpha.
        """
        comparison = self._offsets.compare(fit)
        simultaneous = comparison.half_width(self._offsets.critical(alpha))
        return comparison.estimate, comparison.pointwise(1 - alpha), simultaneous

    @cached_property
    def lines(self) -> Families:
        return Families(self.null, slope_contrasts(self.distance))

    @cached_property
    def trend(self) -> Families:
        return self.simultaneous(_slope(np.log(self.distance), slice(None))[None])

    @cached_property
    def ends(self) -> Families:
        """The last level minus the first one."""
        return self.simultaneous(_differences(self.levels, 0)[-1:])

    @cached_property
    def _against_each(self) -> Families:
        every = range(self.levels)
        return Families(self.null, [_differences(self.levels, level) for level in every])

    @cached_property
    def _offsets(self) -> Families:
        return self.band(np.eye(self.levels) - 1 / self.levels)

    @cached_property
    def all_pairs(self) -> Families:
        return self.simultaneous(_pairs(self.levels))

    @cached_property
    def each_pair(self) -> Families:
        """Differences of all pairs of levels, each in a separate family."""
        return self.all_pairs.apart()


@lru_cache(maxsize=64)
def _cached_tests(present: bytes, seeds: int, distance: tuple[float, ...] | None) -> ShapeTests:
    cells = np.frombuffer(present, dtype=bool).reshape(seeds, -1)
    null = null_of(Blocks(cells, None if distance is None else np.log(distance)))
    at = np.arange(1.0, cells.shape[1] + 1) if distance is None else np.array(distance)
    # without an order there is no shape, and two columns are enough
    fewest = seeds if distance is None else min(seeds, len(distance))
    return ShapeTests(null, at, can_be_flat=fewest >= LEAST_FLAT)


def design_tests(present: NDArray[np.bool_], distance: Floats | None) -> ShapeTests:
    """The tests of a design; the latest 64 designs are cached with their simulated tables.

    `present` is (S, L), S and L at least 2, as required by `Blocks`; `distance` is (L,), or None
    for columns that have no order.
    """
    known = None if distance is None else tuple(distance.tolist())
    return _cached_tests(present.tobytes(), len(present), known)


def shape_tests(
    scores: Floats, distance: Floats | None = None, items: Floats | None = None
) -> ShapeTests:
    """The tests for a table (S, L) at the levels `distance`, as for `design_tests`.

    `items` is the covariance of the levels' effects due to the evaluation items, (L, L) in points
    squared.
    """
    tests = design_tests(np.isfinite(scores), distance)
    if items is None:
        return tests
    null = null_for(tests.null, scores, items)
    return ShapeTests(null, tests.distance, items, can_be_flat=tests.can_be_flat)


def highest_column(scores: Floats) -> int:
    """The first column of an (S, C) table with the highest estimate, seeds as blocks.

    Where no columns share seeds enough, it is that with the highest mean.
    """
    seeds, columns = connected_table(scores)
    if not scores.size:
        return 0
    if not columns.any():
        return int(round_scores(np.nanmean(scores, axis=0), scores).argmax())
    table = scores[np.ix_(seeds, columns)]
    effects = Blocks(np.isfinite(table)).estimate(table)
    return int(np.flatnonzero(columns)[round_scores(effects, scores).argmax()])


def compare_columns(
    scores: Floats, reference: int, alpha: float, items: Floats | None = None
) -> Floats:
    """The columns of an (S, C) table, which have no order, minus the column `reference`.

    `compare_with` of each column, (C, 3); NaN where a column shares too few seeds with the others
    (`connected_table`). `items` are as for `shape_tests`. The columns are compared in an order of
    their own, since simulated critical values depend on it: one difference has one interval.
    """
    differences = np.full((scores.shape[1], 3), np.nan)
    seeds, connected = connected_table(scores)
    if not connected.any() or not connected[reference]:
        return differences
    columns = np.lexsort(scores)
    columns = columns[connected[columns]]
    table = scores[np.ix_(seeds, columns)]
    tests = shape_tests(table, items=None if items is None else items[np.ix_(columns, columns)])
    reference = int((columns == reference).argmax())
    differences[columns] = tests.compare_with(tests.fit(table), reference, alpha)
    return differences
