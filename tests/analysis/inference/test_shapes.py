"""The tests of a shape: error rates, power, and each rule on scores with known result."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.shapes import (
    compare_columns,
    design_tests,
    shape_tests,
    slope_contrasts,
)
from mtdlab.analysis.inference.simultaneous import Families, null_of

DISTANCE = np.geomspace(5, 200, 7)
FULL = design_tests(np.ones((5, 7), dtype=bool), DISTANCE)
PLACE = np.linspace(-1, 1, 7)
BLOCKS = Blocks(np.ones((5, 7), dtype=bool), np.log(DISTANCE))
CENTRE = 3


def draw(truth: np.ndarray, *, tables: int = 300, noisy: float = 1.0, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(tables, 5, 7))
    noise[:, :, 0] *= noisy
    return 40 + truth + rng.normal(scale=5, size=(tables, 5, 1)) + noise


def count_shapes(tables: np.ndarray) -> Counter[str]:
    """How often each shape is found, and under "trend" how often any that rises or falls."""
    shapes = FULL.classify(FULL.fit(tables), 0.05, 0.5).shape.tolist()
    trends = [shape for shape in shapes if shape.startswith(("rising", "falling"))]
    return Counter([*shapes, *(len(trends) * ["trend"])])


def classify(scores: np.ndarray, distance: np.ndarray = DISTANCE) -> SimpleNamespace:
    """`Shapes` of one table."""
    tests = shape_tests(scores, distance)
    found = tests.classify(tests.fit(scores[None]), 0.05, 0.5)
    return SimpleNamespace(**{name: values[0] for name, values in vars(found).items()})


def test_slopes_are_those_of_least_squares() -> None:
    up, down = slope_contrasts(DISTANCE)
    scores = np.random.default_rng(0).normal(size=7)
    for row, level in enumerate(range(1, 6)):
        rise = np.polyfit(np.log(DISTANCE[: level + 1]), scores[: level + 1], 1)[0]
        fall = np.polyfit(np.log(DISTANCE[level:]), scores[level:], 1)[0]
        assert (up[row] @ scores, -down[row] @ scores) == pytest.approx((rise, fall))


@pytest.mark.parametrize("noisy", [1.0, 4.0])
@pytest.mark.parametrize("step", [(0, 8), (8, 0), (0, 0)])
def test_scores_that_only_rise_or_fall_are_seldom_called_peaked(
    noisy: float, step: tuple[int, int]
) -> None:
    """The least favourable curves: the whole change is between the first or last two levels."""
    truth = np.full(7, float(step[1]))
    truth[0] = step[0]
    for curve in (truth, truth[::-1]):
        shapes = count_shapes(draw(curve, noisy=noisy))
        # 300 tables at a rate of 0.05: more than 28 has a probability below 0.001
        assert shapes["peaked"] <= 28
    if step == (0, 0):
        assert shapes["trend"] <= 28


@pytest.mark.parametrize(
    ("truth", "noisy", "shape", "least"),
    [
        (3 * (1 - np.abs(PLACE)), 1.0, "peaked", 270),
        # a noisy level does not mask a peak
        (np.array([-12.0, 0, 3, 4, 3, 1.5, 0]), 6.0, "peaked", 150),
        (12 * PLACE, 1.0, "rising", 270),
        (-12 * PLACE, 1.0, "falling", 270),
        (2 * PLACE, 1.0, "rising, end open", 220),
        (-2 * PLACE, 1.0, "falling, start open", 220),
    ],
)
def test_a_shape_is_found(truth: np.ndarray, noisy: float, shape: str, least: int) -> None:
    shapes = count_shapes(draw(truth, noisy=noisy))
    assert shapes[shape] >= least
    opposite = {"rising": "falling", "falling": "rising", "peaked": "flat"}
    assert not [name for name in shapes if name.startswith(opposite[shape.split(",")[0]])]


def test_the_bound_of_what_the_best_level_is_above_the_last_holds() -> None:
    """Also where the last level, or one much worse, is far noisier than the best."""
    truth = np.array([-12.0, 0, 1, 3, 4, 4.5, 4])
    tests = design_tests(np.ones((8, 7), dtype=bool), DISTANCE)
    for noisy in ([1, 1, 1, 1, 1, 1, 4], [6, 1, 1, 1, 1, 1, 1]):
        errors = np.random.default_rng(9).normal(size=(1000, 8, 7)) * noisy
        fit = tests.fit(truth + errors)
        bounds = tests.bound_shortfall(fit, 0.05)
        # 1,000 tables at a rate of 0.05: more than 73 has a probability below 0.001
        assert (bounds < truth.max() - truth - 1e-9).any(axis=1).sum() <= 73
        found = tests.classify(fit, 0.05, 0.5)
        assert (found.shape == "rising").sum() <= 73
        np.testing.assert_array_equal(found.shortfall, bounds)


@pytest.mark.parametrize(("seeds", "is_hidden"), [(7, True), (8, False)])
def test_a_noisy_level_does_not_widen_the_difference_of_two_others(
    seeds: int, is_hidden: bool
) -> None:
    """With 7 degrees of freedom a difference has the variance of its own values alone."""
    scores = np.random.default_rng(10).normal(size=(seeds, 7))
    louder = scores * [20, 1, 1, 1, 1, 1, 1]
    pair = np.array([[0, 0, 0, 0, 0, -1.0, 1]])
    tests = design_tests(np.ones((seeds, 7), dtype=bool), DISTANCE)
    widths = [
        tests.simultaneous(pair).intervals(tests.fit(table), 0.05)[1].item()
        for table in (scores, louder)
    ]
    assert (widths[1] > 1.05 * widths[0]) == is_hidden
    if not is_hidden:
        assert widths[1] == pytest.approx(widths[0])
        own = scores[:, 6] - scores[:, 5]
        expected = stats.t.ppf(0.975, seeds - 1) * own.std(ddof=1) / np.sqrt(seeds)
        assert widths[0] == pytest.approx(expected, rel=0.05)


def test_a_design_with_missing_runs_mixes_both_variances() -> None:
    """A contrast of levels that few seeds have is compared as with few seeds."""
    table = draw(np.zeros(7), tables=1)[0]
    table = np.vstack([table, table + 1, np.random.default_rng(1).normal(size=(2, 7))])
    table[3:, 6] = np.nan
    blocks = Blocks(np.isfinite(table), np.log(DISTANCE))
    contrasts = blocks.weigh(np.array([[-1.0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, -1, 1]]))
    assert contrasts.freedom[0] > 7 > contrasts.freedom[1]
    found = blocks.compare(blocks.fit(table), contrasts)
    own = table[:, 1] - table[:, 0]
    np.testing.assert_allclose(found.errors[0, :, 0], own.std(ddof=1) / np.sqrt(12), rtol=0.05)
    assert np.ptp(found.errors[0, :, 1]) > 0


def test_the_optimal_range_contains_the_best_level() -> None:
    truth = 1.5 * (1 - np.abs(PLACE))
    kept = FULL.find_optimal(FULL.fit(draw(truth)), 0.05)
    assert kept[:, CENTRE].mean() >= 0.95
    assert kept[:, 0].mean() < 0.6


def test_the_best_level_is_always_in_the_optimal_range() -> None:
    for table in draw(3 * PLACE, tables=50):
        judged = classify(table)
        assert judged.optimal[judged.best]


def test_flat_requires_significant_equivalence_tests() -> None:
    quiet = 40 + 0.1 * (draw(np.zeros(7)) - 40)
    assert count_shapes(quiet)["flat"] == 300
    # with two levels a margin apart, flat has a probability of at most 0.05
    bent = np.zeros(7)
    bent[CENTRE] = 0.5
    assert count_shapes(40 + 0.1 * (draw(bent * 10) - 40))["flat"] <= 28


def test_an_inner_peak_is_not_excluded_where_there_is_one() -> None:
    steep = draw(6 * PLACE, tables=50)
    assert all(classify(table).peak_excluded for table in 40 + 0.1 * (steep - 40))
    bump = 6 * PLACE
    bump[5] = bump[6] + 1
    assert not any(classify(table).peak_excluded for table in draw(bump, tables=50))


def test_intervals_have_simultaneous_coverage() -> None:
    tables = draw(np.zeros(7), tables=1000, noisy=4.0)
    mean, pointwise, simultaneous = FULL.estimate_offsets(FULL.fit(tables), 0.05)
    assert (np.abs(mean) < simultaneous).all(axis=1).mean() >= 0.93
    assert (simultaneous.mean(axis=1) > pointwise.mean(axis=1)).all()


def test_differences_from_a_level_are_valid_for_chosen_levels() -> None:
    missed = 0
    for table in draw(np.zeros(7)):
        fit = FULL.fit(table)
        best, worst = int(fit.effects.argmax()), int(fit.effects.argmin())
        found = FULL.compare_with(fit, worst, 0.05)
        missed += found[best, 1] > 0
        assert found[best, 0] == pytest.approx((table[:, best] - table[:, worst]).mean())
    assert missed <= 28


@pytest.mark.parametrize("curves", [0.0, 1.0, 3.0])
def test_seeds_with_slopes_of_their_own_seldom_show_a_trend(curves: float) -> None:
    own = np.random.default_rng(5).normal(size=(1000, 5, 1))
    tables = draw(0 * PLACE, tables=1000) + curves * own * PLACE
    found = FULL.classify(FULL.fit(tables), 0.05, 0.5)
    # 1,000 tables at a rate of 0.05: more than 73 has a probability below 0.001
    assert np.isin(found.shape, ("rising", "falling", "peaked")).sum() <= 73


def test_two_levels_or_two_seeds_are_not_called_flat() -> None:
    rng = np.random.default_rng(0)
    for shape in ((2, 7), (7, 2)):
        quiet = 40 + 1e-3 * rng.normal(size=shape)
        assert classify(quiet, DISTANCE[: shape[1]]).shape != "flat"


def test_items_widen_every_interval_and_raise_every_p_value() -> None:
    table = draw(2 * (1 - np.abs(PLACE)), tables=1)[0]
    covariance = 0.5 * (np.eye(7) - 1 / 7)
    counted, fixed = shape_tests(table, DISTANCE, covariance), FULL
    first, second = (tests.fit(table) for tests in (counted, fixed))
    offsets = [tests.estimate_offsets(tests.fit(table), 0.05) for tests in (counted, fixed)]
    assert (offsets[0][1] > offsets[1][1]).all()
    assert (offsets[0][2] > offsets[1][2]).all()
    assert counted.test_peak(first) > fixed.test_peak(second)


def test_intervals_that_count_items_cover_them() -> None:
    """Effects of the items with the given covariance, added to the scores of all seeds."""
    rng = np.random.default_rng(4)
    covariance = np.exp(-np.abs(np.subtract.outer(PLACE, PLACE)))
    shared = rng.multivariate_normal(np.zeros(7), covariance, size=200)
    tables = draw(np.zeros(7), tables=200)
    tests = shape_tests(tables[0], DISTANCE, covariance)
    mean, _, width = tests.estimate_offsets(tests.fit(tables + shared[:, None]), 0.05)
    covered = (np.abs(mean) < width).all(axis=1).sum()
    # 200 tables: fewer than 180 has a probability below 0.002 at a coverage of 0.95
    assert covered >= 180


def test_the_optimal_range_of_a_flat_score_has_the_ends_that_are_not_worse() -> None:
    """A peak below the margin may be significant; the ends then are not left out for it."""
    bent = -0.5 * PLACE**2
    tables = 40 + bent + 0.35 * np.random.default_rng(5).normal(size=(200, 5, 7))
    fit = FULL.fit(tables)
    found = FULL.classify(fit, 0.05, 2.0)
    both = (found.shape == "flat") & (found.p_peak <= 0.05)
    assert both.sum() >= 5
    np.testing.assert_array_equal(found.optimal[both], FULL.find_optimal(fit, 0.05)[both])
    assert found.optimal[both][:, [0, -1]].any()


def test_scores_without_scatter() -> None:
    level = np.full((3, 7), 40.1) + np.array([[0.3], [5.7], [-2.9]])
    assert classify(level).shape == "flat"
    peaked = level - 3 * np.abs(PLACE)
    assert classify(peaked).shape == "peaked"
    rising = level + 3 * PLACE
    judged = classify(rising)
    assert (judged.shape, judged.peak_excluded) == ("rising", True)


def test_two_levels_have_a_trend_and_no_peak() -> None:
    scores = np.array([[1.0, 3.0], [2.0, 4.1], [0.0, 1.9]])
    judged = classify(scores, np.array([5.0, 9.0]))
    assert judged.shape == "rising"
    assert np.isnan(judged.p_peak)


def test_a_missing_run_changes_the_design_and_not_the_verdict() -> None:
    table = draw(4 * (1 - np.abs(PLACE)), tables=1)[0]
    table[2, 3] = table[4, 0] = np.nan
    assert classify(table).shape == "peaked"


def test_critical_values_are_deterministic_and_fall_with_alpha() -> None:
    first, again = (Families(null_of(BLOCKS), slope_contrasts(DISTANCE)) for _ in range(2))
    assert first.critical(0.05) == again.critical(0.05)
    assert first.critical(0.01) > first.critical(0.05) > first.critical(0.2)
    assert first.p_value(np.array(first.critical(0.05))) == pytest.approx(0.05, abs=0.002)


def test_the_interval_of_a_chosen_pair_holds() -> None:
    missed = 0
    for table in draw(np.zeros(7)):
        means = table.mean(axis=0)
        found = compare_columns(table, int(means.argmin()), 0.05)[means.argmax()]
        assert found[0] == pytest.approx(means.max() - means.min())
        missed += found[1] > 0
    assert missed <= 28


@pytest.mark.parametrize("own", [1.0, 2.0, 3.0])
def test_pairs_of_two_correlated_families_are_seldom_significant(own: float) -> None:
    rng = np.random.default_rng(6)
    tables = rng.normal(size=(1000, 3, 8))
    tables += own * np.repeat(rng.normal(size=(1000, 3, 2)), 4, axis=2)
    tests = design_tests(np.ones((3, 8), dtype=bool), None)
    estimates, widths = tests.all_pairs.intervals(tests.fit(tables), 0.05)
    # 1,000 tables at a rate of 0.05: more than 73 has a probability below 0.001
    assert (np.abs(estimates) > widths).any(axis=1).sum() <= 73


@pytest.mark.parametrize(("truth", "is_best"), [((5, 0, 0, 0), True), ((5, 5, 2, 0), False)])
def test_a_best_level_is_one_above_each_other_whether_or_not_these_differ(
    truth: tuple[float, ...], is_best: bool
) -> None:
    tests = design_tests(np.ones((8, 4), dtype=bool), None)
    scores = truth + 0.5 * np.random.default_rng(7).normal(size=(1, 8, 4))
    assert (tests.test_best(tests.fit(scores)) <= 0.05) == [is_best]


@pytest.mark.parametrize("truth", [(5, 0, 3, 4.8, 0), (4.1, 0, 0, 2, 3, 4, 0)])
@pytest.mark.parametrize("noise", [0.5, 1.0])
def test_a_best_level_at_an_end_stays_in_the_range_of_a_peak(
    truth: tuple[float, ...], noise: float
) -> None:
    tables = truth + noise * np.random.default_rng(7).normal(size=(1000, 8, len(truth)))
    tests = design_tests(np.ones((8, len(truth)), bool), np.geomspace(5, 200, len(truth)))
    found = tests.classify(tests.fit(tables), 0.05, 0.5)
    assert (found.shape == "peaked").sum() >= 100
    # 1,000 tables at a rate of 0.05: more than 73 has a probability below 0.001
    assert (~found.optimal[:, 0]).sum() <= 73


@pytest.mark.parametrize("height", [5, -5, 2, -2])
@pytest.mark.parametrize("distance", [(10, 18, 208), (5, 6, 7, 8, 200)])
def test_a_symmetric_peak_or_valley_over_uneven_levels_is_seldom_a_trend(
    height: float, distance: tuple[float, ...]
) -> None:
    tent = height * (1 - np.abs(np.linspace(-1, 1, len(distance))))
    tables = tent + np.random.default_rng(8).normal(size=(1000, 8, len(distance)))
    tests = design_tests(np.ones((8, len(distance)), bool), np.array(distance, float))
    shapes = tests.classify(tests.fit(tables), 0.05, 0.5).shape
    assert sum(shape.startswith(("rising", "falling")) for shape in shapes) <= 73


def test_a_peak_needs_its_best_level_inside_the_range() -> None:
    """A high first level, a minimum, and then a lower peak."""
    truth = np.r_[6, np.linspace(0, 5, 5), np.linspace(4, 0, 3)]
    distance = np.geomspace(5, 200, 9)
    noise = np.random.default_rng(0).normal(scale=0.3, size=(5, 9))
    judged = classify(truth + noise, distance)
    assert judged.best == 0
    assert judged.p_peak < 0.05
    assert judged.shape != "peaked"
