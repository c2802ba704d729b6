"""The shape of scores over levels of MTD, with seeds as blocks.

Letters: S seeds, L levels of MTD in rising order, K contrasts. A table of scores is (S, L) with NaN
where a run is missing, as required by `Blocks`; `distance` is (L,). Every test uses the larger p
value of the pooled and the heteroscedastic variance (`analysis.blocks`), and a critical value that
is also valid for unequal variances (`analysis.simultaneous`).

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

from analysis.blocks import Blocks, Fit, Floats
from analysis.intervals import Estimate
from analysis.simultaneous import Families, NullFits

Shape = Literal["flat", "rising", "falling", "peaked", "inconclusive"]


@dataclass(frozen=True)
class Offsets:
    """Each level less the mean over levels, (L,), with pointwise and simultaneous half widths."""

    mean: Floats
    pointwise: Floats
    simultaneous: Floats


@dataclass(frozen=True)
class ShapeResult:
    """Results of the tests on a table.

    p_peak   of the test of a peak, NaN with fewer than 3 levels; p_trend: two-sided, of the slope
             over all levels.
    slope    over all levels, points per unit of log MTD.
    best     the level with the highest estimate.
    optimal  (L,) whether a level is statistically indistinguishable from the best.
    peak_excluded  whether a peak of at least the margin above both ends is excluded.
    """

    shape: Shape
    p_peak: float
    p_trend: float
    slope: float
    best: int
    optimal: NDArray[np.bool_]
    peak_excluded: bool


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


def _differences(levels: int, reference: int, *, inner: bool = False) -> Floats:
    """Contrasts (K, L): every other level, or only the inner ones, less the level `reference`."""
    left_out = [0, levels - 1] if inner else [reference]
    rows = np.delete(np.eye(levels), left_out, axis=0)
    rows[:, reference] = -1
    return rows


class ShapeTests:
    """The tests for one design: which runs exist, and the MTD of each level.

    present   (S, L), S and L at least 2, as required by `Blocks`; distance: (L,) in rising order.
    """

    def __init__(self, present: NDArray[np.bool_], distance: Floats) -> None:
        self.distance = distance
        self.levels = len(distance)
        self._null = _null_fits(present.tobytes(), len(present))
        self.blocks = self._null.blocks
        self._kept: dict[bytes, Families] = {}

    def simultaneous(self, rows: Floats) -> Families:
        """One family of contrasts (K, L) for simultaneous two-sided intervals; cached."""
        key = rows.tobytes()
        if key not in self._kept:
            self._kept[key] = Families(self._null, [rows], two_sided=True)
        return self._kept[key]

    def classify(self, scores: Floats, alpha: float, margin: float) -> ShapeResult:
        """The shape of a table at significance level alpha; margin in points.

        Flat is tested first, by equivalence tests of every level with the mean over levels: a
        difference that is not significant does not show that there is none.
        """
        fit = self.blocks.fit(scores)
        p_peak, (p_trend, slope) = self.test_peak(fit), self.test_trend(fit)
        optimal, best = self.find_optimal(fit, alpha), int(fit.effects.argmax())
        shape: Shape = "inconclusive"
        if self.is_flat(fit, alpha, margin):
            shape = "flat"
        elif p_peak <= alpha and 0 < best < self.levels - 1:
            shape = "peaked"
        elif p_trend <= alpha and optimal[-1 if slope > 0 else 0]:
            shape = "rising" if slope > 0 else "falling"
        excluded = shape != "peaked" and self.excludes_peak(fit, alpha, margin)
        return ShapeResult(shape, p_peak, p_trend, slope, best, optimal, excluded)

    def test_peak(self, fit: Fit) -> float:
        """p value of the two-line test over all inner levels; NaN below 3 levels."""
        if self.levels < 3:
            return float("nan")
        rise, fall = self.lines.scores(fit)
        return self.lines.p_value(float(np.minimum(rise, fall).max()))

    def test_trend(self, fit: Fit) -> tuple[float, float]:
        """Two-sided p value of the slope over all levels, and the slope."""
        comparison = self.trend.compare(fit)
        score = float(np.abs(comparison.scores())[0])
        return self.trend.p_value(score), float(comparison.estimate[0])

    def find_optimal(self, fit: Fit, alpha: float) -> NDArray[np.bool_]:
        """Whether no other level is significantly better than a level, (L,).

        Multiple comparisons with the best (Hsu 1984): these levels include the best one with
        probability at least 1 - alpha.
        """
        critical = self._against_each.critical(alpha)
        return np.array([each.max() <= critical for each in self._against_each.scores(fit)])

    def is_flat(self, fit: Fit, alpha: float, margin: float) -> bool:
        """Whether every level is equivalent to the mean over levels within the margin.

        Two one-sided tests (Schuirmann 1987) per level at alpha; all must be significant, so that
        no correction for their number is needed.
        """
        comparison = self.each_offset.compare(fit)
        width = comparison.half_width(self.each_offset.critical(alpha))
        return bool((np.abs(comparison.estimate) + width < margin).all())

    def excludes_peak(self, fit: Fit, alpha: float, margin: float) -> bool:
        """Whether every inner level is significantly less than the margin above one of the ends.

        One of two bounds suffices for a level, so each is at alpha / 2; all levels must be
        significant, so that no correction for their number is needed.
        """
        if self.levels < 3:
            return False
        comparison = self._inner_above_ends.compare(fit)
        width = comparison.half_width(self._inner_above_ends.critical(alpha / 2))
        above_first, above_last = np.split(comparison.estimate + width, 2)
        return bool((np.minimum(above_first, above_last) < margin).all())

    def compare_with_ends(
        self, scores: Floats, level: int, alpha: float
    ) -> tuple[Estimate, Estimate]:
        """A level less the first level and less the last level.

        The intervals are simultaneous over all levels and both ends, hence valid for a level that
        was chosen on the same scores.
        """
        comparison = self._above_ends.compare(self.blocks.fit(scores))
        width = comparison.half_width(self._above_ends.critical(alpha))
        return self._above(comparison.estimate, width, level, 0), self._above(
            comparison.estimate, width, level, self.levels - 1
        )

    def _above(self, mean: Floats, width: Floats, level: int, end: int) -> Estimate:
        """The row of `_above_ends` that compares a level with an end."""
        if level == end:
            return Estimate(0.0, 0.0, 0.0)
        row = level - 1 if end == 0 else self.levels - 1 + level
        return Estimate(mean[row], mean[row] - width[row], mean[row] + width[row])

    def estimate_offsets(self, scores: Floats, alpha: float) -> Offsets:
        """Each level less the mean over levels, with intervals of confidence 1 - alpha."""
        comparison = self._offsets.compare(self.blocks.fit(scores))
        return Offsets(
            comparison.estimate,
            comparison.pointwise(1 - alpha),
            comparison.half_width(self._offsets.critical(alpha)),
        )

    @cached_property
    def lines(self) -> Families:
        """Slopes up to each inner level, and down from it."""
        return Families(self._null, slope_contrasts(self.distance))

    @cached_property
    def trend(self) -> Families:
        """The slope over all levels."""
        slope = _slope(np.log(self.distance), slice(None))[None]
        return Families(self._null, [slope], two_sided=True)

    @cached_property
    def _against_each(self) -> Families:
        every = range(self.levels)
        return Families(self._null, [_differences(self.levels, level) for level in every])

    @cached_property
    def _above_ends(self) -> Families:
        rows = [_differences(self.levels, end) for end in (0, self.levels - 1)]
        return Families(self._null, [np.vstack(rows)], two_sided=True)

    @cached_property
    def _inner_above_ends(self) -> Families:
        rows = [_differences(self.levels, end, inner=True) for end in (0, self.levels - 1)]
        return self._single(np.vstack(rows))

    @cached_property
    def _offsets(self) -> Families:
        return Families(self._null, [_offset_contrasts(self.levels)], two_sided=True)

    @cached_property
    def each_offset(self) -> Families:
        """Each level less the mean over levels, each in a separate family."""
        return self._single(_offset_contrasts(self.levels))

    def _single(self, rows: Floats) -> Families:
        """A separate family for each contrast, hence without correction for their number."""
        return Families(self._null, [row[None] for row in rows])


def _offset_contrasts(levels: int) -> Floats:
    return np.eye(levels) - 1 / levels


@lru_cache(maxsize=64)
def _null_fits(present: bytes, seeds: int) -> NullFits:
    """The simulated tables of a design, which tests at other distances share."""
    return NullFits(Blocks(np.frombuffer(present, dtype=bool).reshape(seeds, -1)))


@lru_cache(maxsize=64)
def _cached_tests(present: bytes, seeds: int, distance: tuple[float, ...]) -> ShapeTests:
    cells = np.frombuffer(present, dtype=bool).reshape(seeds, len(distance))
    return ShapeTests(cells, np.array(distance))


def shape_tests(scores: Floats, distance: Floats) -> ShapeTests:
    """The tests for the design of a table; the latest 64 designs are cached with their draws."""
    present = np.isfinite(scores)
    return _cached_tests(present.tobytes(), len(scores), tuple(distance.tolist()))


def compare_pair(scores: Floats, above: int, below: int, alpha: float) -> Estimate:
    """A column of an (S, L) table less another, with an interval simultaneous over all pairs.

    It is valid for columns that were chosen on the same scores. scores: as required by `Blocks`.
    """
    levels = scores.shape[1]
    tests = shape_tests(scores, np.arange(1.0, levels + 1))
    pairs = tests.simultaneous(
        np.vstack([_differences(levels, each)[each:] for each in range(levels - 1)])
    )
    row = np.zeros((1, levels))
    row[0, [above, below]] = 1, -1
    comparison = tests.blocks.compare(tests.blocks.fit(scores), tests.blocks.weigh(row))
    mean, width = float(comparison.estimate[0]), comparison.half_width(pairs.critical(alpha))[0]
    return Estimate(mean, mean - width, mean + width)
