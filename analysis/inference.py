"""The shape of scores over levels of MTD, with seeds as blocks.

Letters: S seeds, L levels of MTD in rising order, K contrasts. A table of scores is (S, L) with
NaN where a run is missing, as `Blocks` wants it; `distance` is (L,). Every test uses the weaker of
a typical and each level's own variance, and a critical value that holds for unequal variances too
(`analysis.simultaneous`).

A peak needs two lines (Simonsohn 2018): a least-squares slope on log MTD up to a level and one down
from it, both clear of 0 at the same level, which may be any inner one. The critical value is that
of the largest slope on one side: where the score only rises, every slope down from a level has an
expectation of at least 0 and a false peak needs one of them below 0.
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
    """Each level less the mean of all, (L,), with half widths: pointwise, and for all at once."""

    mean: Floats
    pointwise: Floats
    simultaneous: Floats


@dataclass(frozen=True)
class Judgement:
    """What the tests of a table say.

    p_peak   of the test of a peak, NaN with fewer than 3 levels; p_trend: two-sided, of the slope
             over all levels.
    slope    over all levels, points per unit of log MTD.
    best     the level with the highest estimate.
    optimal  (L,) the levels that cannot be told from the best.
    peak_excluded  whether no inner level can lie the margin above both ends.
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
    """Weights of the levels in the least-squares slope over some of them, (L,)."""
    weights = np.zeros_like(place)
    centred = place[part] - place[part].mean()
    weights[part] = centred / (centred @ centred)
    return weights


def _differences(levels: int, reference: int, *, inner: bool = False) -> Floats:
    """Other levels, all or only the inner ones, less the one at `reference`, (K, L)."""
    left_out = [0, levels - 1] if inner else [reference]
    rows = np.delete(np.eye(levels), left_out, axis=0)
    rows[:, reference] = -1
    return rows


class ShapeTests:
    """The tests for one design: which runs there are, and the MTD of each level.

    present   (S, L), at least 2 of both, as `Blocks` wants it; distance: (L,) in rising order.
    """

    def __init__(self, present: NDArray[np.bool_], distance: Floats) -> None:
        self.distance = distance
        self.levels = len(distance)
        self.blocks = Blocks(present)
        self._null = NullFits(self.blocks)
        self._kept: dict[bytes, Families] = {}

    def simultaneous(self, rows: Floats) -> Families:
        """Contrasts (K, L) with two-sided intervals for all at once; kept with their draws."""
        key = rows.tobytes()
        if key not in self._kept:
            self._kept[key] = Families(self._null, [rows], two_sided=True)
        return self._kept[key]

    def judge(self, scores: Floats, alpha: float, margin: float) -> Judgement:
        """The shape of a table at an error probability; less than `margin` points is no difference.

        Flat comes first and needs every level shown to lie within the margin of their mean: a
        difference that was not found is not a difference ruled out.
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
        return Judgement(shape, p_peak, p_trend, slope, best, optimal, excluded)

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
        """The levels that no other level is shown to exceed, (L,).

        Multiple comparisons with the best (Hsu 1984): it holds the best level with a probability
        of at least 1 - alpha.
        """
        critical = self._against_each.critical(alpha)
        return np.array([each.max() <= critical for each in self._against_each.scores(fit)])

    def is_flat(self, fit: Fit, alpha: float, margin: float) -> bool:
        """Whether each level's offset from the mean is shown to be below the margin.

        Two one-sided tests (Schuirmann 1987) per level at alpha; all must hold, so there is no
        correction.
        """
        comparison = self.each_offset.compare(fit)
        width = comparison.half_width(self.each_offset.critical(alpha))
        return bool((np.abs(comparison.estimate) + width < margin).all())

    def excludes_peak(self, fit: Fit, alpha: float, margin: float) -> bool:
        """Whether every inner level is shown to lie less than the margin above one of the ends.

        One of two bounds is enough for a level, so each is at alpha / 2; all levels must hold.
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
        """A level less the first and less the last one.

        The intervals hold for all levels and both ends at once, so that the level may be chosen
        on the same scores.
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
        """Each level less the mean of all, with intervals of confidence 1 - alpha."""
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
        """Each level less the mean of all, a family by itself."""
        return self._single(_offset_contrasts(self.levels))

    def _single(self, rows: Floats) -> Families:
        """Each contrast a family of its own."""
        return Families(self._null, [row[None] for row in rows])


def _offset_contrasts(levels: int) -> Floats:
    return np.eye(levels) - 1 / levels


@lru_cache(maxsize=64)
def _cached_tests(present: bytes, seeds: int, distance: tuple[float, ...]) -> ShapeTests:
    cells = np.frombuffer(present, dtype=bool).reshape(seeds, len(distance))
    return ShapeTests(cells, np.array(distance))


def shape_tests(scores: Floats, distance: Floats) -> ShapeTests:
    """The tests for the design of a table; those of recent designs are kept with their draws."""
    present = np.isfinite(scores)
    return _cached_tests(present.tobytes(), len(scores), tuple(distance.tolist()))


def compare_pair(scores: Floats, above: int, below: int, alpha: float) -> Estimate:
    """A column of an (S, L) table less another, with an interval that holds for all pairs at once.

    So the two may be chosen on the same scores. `scores` as `Blocks` wants it, 2 columns at least.
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
