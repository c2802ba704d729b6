"""What a verdict takes with 80 % power, before a study runs and after it was inconclusive."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from mtdlab.analysis.inference.looks import boundaries_at
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.power import (
    ANY_SEEDS,
    Needed,
    compute_best_needs,
    compute_flatness,
    compute_needs,
    compute_precision,
    count_needed,
    design_levels,
    fewest_seeds,
    find_best_power,
    find_power,
    need_for_verdict,
    peak_effects,
    slope_effects,
)
from mtdlab.analysis.inference.scatter import Interpolated, Scatter, assume_scatter
from mtdlab.analysis.inference.shapes import design_tests
from mtdlab.analysis.inference.verdict import judge_levels

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
TWO = np.array([10.0, 20.0])
THREE = np.array([10.0, 18, 208])
MTD = np.geomspace(10, 160, 5)
DISTANCE = np.geomspace(5, 200, 7)
PLACE = np.linspace(-1, 1, 7)


def independent(distance: np.ndarray, deviation: float) -> Scatter:
    return Scatter(Interpolated(distance, deviation**2 * np.eye(len(distance))))


def with_items(distance: np.ndarray, deviation: float, of_items: float, count: int) -> Scatter:
    """Also a standard error of a difference between two levels due to items."""
    covariance = of_items**2 / 2 * np.eye(len(distance))
    return replace(
        independent(distance, deviation), items=Interpolated(distance, covariance), count=count
    )


def test_the_assumed_shapes() -> None:
    assert peak_effects(MTD, 2.0) == pytest.approx([-2, -0.5, 0, -0.5, -2])
    assert slope_effects(MTD, 2.0) == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_the_seeds_give_the_stated_power() -> None:
    """By simulation: the power is 80 % with the stated seeds and lower with fewer."""
    scatter = independent(MTD, 1.5)
    [own, nine] = compute_needs(MTD, effect=2.0, scatter=scatter, alpha=0.05)
    assert (own.levels, nine.levels) == (5, 9)
    effects, random = peak_effects(MTD, 2.0), np.random.default_rng(0)

    def power(seeds: int) -> float:
        tests = design_tests(np.ones((seeds, 5), dtype=bool), MTD)
        tables = effects + 1.5 * random.standard_normal(size=(400, seeds, 5))
        return float((tests.test_peak(tests.fit(tables)) <= 0.05).mean())

    # 1,000 simulated studies decide the number, 400 others the power
    assert 0.73 < power(own.peak.seeds) < 0.9
    assert power(own.peak.seeds // 2) < 0.6


def test_a_smaller_effect_needs_more_seeds() -> None:
    def seeds(effect: float) -> int:
        scatter = independent(MTD, 1.0)
        return compute_needs(MTD, effect=effect, scatter=scatter, alpha=0.05)[0].peak.seeds

    assert seeds(4.0) < seeds(2.0)


def test_two_levels_have_a_slope_but_no_peak() -> None:
    levels = design_levels([10.0, 20.0, 20.0])
    own = compute_needs(levels, effect=2.0, scatter=independent(levels, 1.0), alpha=0.05)[0]
    assert (own.levels, own.peak) == (2, None)
    # a paired t test: power 0.79 at 6 pairs and 0.87 at 7, by the noncentral t
    assert own.slope.seeds in (6, 7, 8)


def test_many_seeds_are_those_of_a_paired_t_test() -> None:
    """More seeds than are simulated."""
    own = compute_needs(TWO, effect=0.5, scatter=independent(TWO, 1.0), alpha=0.05)[0]

    def power(seeds: int) -> float:
        shift = 0.5 / math.sqrt(2 / seeds)
        critical = stats.t.isf(0.025, seeds - 1)
        return float(stats.nct.sf(critical, seeds - 1, shift))

    # few simulated tables make critical values too large
    assert 0.75 < power(own.slope.seeds) < 0.88
    assert own.slope.seeds > 40


def test_items_bound_the_power_as_in_a_z_test() -> None:
    """With any number of seeds a difference has the known standard error of the items."""
    scatter = with_items(TWO, 1.0, 0.6, 1_000)
    [_, power] = find_power(TWO, (ANY_SEEDS,), (0.05,), effect=1.0, scatter=scatter)
    reached = special.ndtr(1 / 0.6 - special.ndtri(0.975))
    # few simulated tables make critical values too large
    assert power == pytest.approx(reached, abs=0.08)
    slope = compute_needs(TWO, effect=1.0, scatter=scatter, alpha=0.05)[0].slope
    assert slope.seeds is None
    # power of 80 % takes an effect of 2.8 standard errors
    factor = (special.ndtri(0.975) + special.ndtri(0.8)) * 0.6
    assert slope.items == pytest.approx(1_000 * factor**2, rel=0.25)
    with_those = with_items(TWO, 1.0, 0.6 * math.sqrt(1_000 / slope.items), slope.items + 1)
    assert compute_needs(TWO, effect=1.0, scatter=with_those, alpha=0.05)[0].slope.items is None


def test_few_seeds_are_few() -> None:
    """A large effect takes three seeds with their one or two degrees of freedom, not sixteen."""
    [own, *_] = compute_needs(MTD, effect=8.0, scatter=independent(MTD, 1.0), alpha=0.05)
    assert 2 <= own.peak.seeds <= 4
    assert 2 <= own.slope.seeds <= 6


def test_looks_cost_power() -> None:
    looks, scatter = (4, 6, 10), independent(MTD, 1.5)
    alphas = boundaries_at(looks, 0.05).nominal.tolist()
    once = find_power(MTD, looks[-1:], (0.05,), effect=2.0, scatter=scatter)
    several = find_power(MTD, looks, alphas, effect=2.0, scatter=scatter)
    last = find_power(MTD, looks[-1:], alphas[-1:], effect=2.0, scatter=scatter)
    for one, some, end in zip(once, several, last, strict=True):
        assert end <= some < one
    assert find_power(MTD, (1,), (0.05,), effect=2.0, scatter=scatter) == (0.0, 0.0)
    two = find_power(TWO, (5,), (0.05,), effect=2.0, scatter=independent(TWO, 1.5))
    assert two[0] is None


def test_a_flat_score_is_shown_at_the_stated_margin() -> None:
    flat = compute_flatness(MTD, 8, margin=0.5, scatter=independent(MTD, 0.5), alpha=0.05)
    assert (flat.least, flat.items) == (0.0, None)
    tests = design_tests(np.ones((8, 5), dtype=bool), MTD)
    tables = 0.5 * np.random.default_rng(7).normal(size=(500, 8, 5))
    assert 0.7 < tests.are_flat(tests.fit(tables), 0.05, flat.margin).mean() < 0.9
    for seeds, levels in ((2, MTD), (8, TWO), (8, np.geomspace(5, 200, 31))):
        scatter = independent(levels, 0.5)
        found = compute_flatness(levels, seeds, margin=0.5, scatter=scatter, alpha=0.05)
        assert found is None


def test_items_bound_the_margin_of_a_flat_score() -> None:
    scatter = with_items(THREE, 0.5, 0.6, 1_000)
    flat = compute_flatness(THREE, 10, margin=0.5, scatter=scatter, alpha=0.05)
    # the largest difference of three normal means, with its one-sided half width at 5 %
    drawn = 0.6 / math.sqrt(2) * np.random.default_rng(0).standard_normal((20_000, 3))
    widest = np.ptp(drawn, axis=1) + 0.6 * special.ndtri(0.95)
    assert flat.least == pytest.approx(np.quantile(widest, 0.8), rel=0.1)
    assert flat.least < flat.margin
    assert flat.items == pytest.approx(1_000 * (flat.least / 0.5) ** 2, rel=1e-3)
    wide = compute_flatness(THREE, 10, margin=5.0, scatter=scatter, alpha=0.05)
    assert wide.items is None


def test_the_precision_tells_seeds_from_items() -> None:
    found = compute_precision(THREE, 8, with_items(THREE, 0.8, 0.6, 1_000))
    assert found.residual_sd == pytest.approx(0.8)
    assert found.of_seeds == pytest.approx(0.8 * np.sqrt(2 / 8))
    assert found.of_items == pytest.approx(0.6)
    assert compute_precision(THREE, 8, independent(THREE, 0.8)).of_items == 0


@pytest.mark.parametrize(
    ("truth", "margin"),
    [
        pytest.param(2 * (1 - np.abs(PLACE)), 0.5, id="peaked"),
        pytest.param(0.1 * PLACE, 0.8, id="flat", marks=pytest.mark.slow),
    ],
)
def test_the_counted_seeds_give_the_power(truth: np.ndarray, margin: float) -> None:
    scatter = independent(DISTANCE, 1.0)
    seeds = count_needed(DISTANCE, truth, scatter=scatter, alpha=0.05, margin=margin).seeds
    tests = design_tests(np.ones((seeds, 7), dtype=bool), DISTANCE)
    tables = truth + np.random.default_rng(1).normal(size=(400, seeds, 7))
    judged = tests.classify(tests.fit(tables), 0.05, margin)
    assert 0.7 <= (judged.shape != "inconclusive").mean() <= 0.95


def test_more_than_the_maximum_of_seeds_gives_none() -> None:
    scatter = independent(DISTANCE, 100.0)
    needed = count_needed(DISTANCE, 0.6 * PLACE, scatter=scatter, alpha=0.05, margin=0.5)
    assert needed == Needed(None, None)


def test_the_most_probable_verdict_counts_and_not_the_smallest_differences() -> None:
    bump, levels = np.array([0, 0.6, 0, 0, 0]), DISTANCE[:5]
    scatter = independent(levels, 0.1)
    needed = count_needed(levels, bump, scatter=scatter, alpha=0.05, margin=0.5)
    assert needed.seeds <= 5


def test_an_inconclusive_study_asks_for_seeds_or_for_items() -> None:
    rng = np.random.default_rng(3)
    scores = np.array([0.0, 1.5, 0.0]) + rng.standard_normal((6, 3))
    table = pd.DataFrame(scores, columns=THREE)
    for of_items, limited in ((0.1, False), (1.5, True)):
        runs = pd.DataFrame({"mtd": THREE, "score": 0.0})
        levels = LevelScores(table, of_items**2 / 2 * (np.eye(3) - 1 / 3), 500, runs)
        verdict = judge_levels(levels)
        needed = need_for_verdict(levels, verdict)
        assert (needed.seeds is None, needed.items is None) == (limited, not limited)
    assert need_for_verdict(LevelScores(table.iloc[:1]), verdict) is None


@pytest.mark.parametrize("most", [2, 3, 8, 31])
def test_the_smallest_number_of_seeds_is_found_from_any_beginning(most: int) -> None:
    for smallest in range(2, most + 3):
        for first in range(2, most + 1):
            called: list[int] = []

            def is_enough(seeds: int, smallest: int = smallest, called: list[int] = called) -> bool:
                called.append(seeds)
                return seeds >= smallest

            found = fewest_seeds(is_enough, range(2, most + 1), first)
            assert found == (smallest if smallest <= most else None)
            assert 2 <= min(called) <= max(called) <= most
            assert len(called) == len(set(called))


def unordered(count: int, deviation: float) -> Scatter:
    return assume_scatter(np.arange(1.0, count + 1), deviation, ordered=False)


def seeds_of_paired_t(effect: float) -> int:
    """The fewest seeds with which a paired t test finds the effect in 80 %; effect in its sd."""
    return next(
        seeds
        for seeds in range(2, 500)
        if stats.nct.sf(stats.t.ppf(0.975, seeds - 1), seeds - 1, effect * seeds**0.5) > 0.8
    )


@pytest.mark.parametrize("effect", [1.0, 2.0])
def test_a_best_of_two_takes_the_seeds_of_the_paired_t_test(effect: float) -> None:
    need = compute_best_needs(2, effect=effect, scatter=unordered(2, 1.0), alpha=0.05, margin=1)
    assert need.separated.seeds == pytest.approx(seeds_of_paired_t(effect / 2**0.5), rel=0.35)


def test_equivalence_of_two_takes_the_seeds_of_two_one_sided_tests() -> None:
    """Where nothing differs each test has 90 % power: 2 (z(0.95) + z(0.9))^2 sd^2 / margin^2."""
    need = compute_best_needs(2, effect=2, scatter=unordered(2, 0.5), alpha=0.05, margin=0.5)
    normal = 2 * (special.ndtri(0.95) + special.ndtri(0.9)) ** 2
    # t statistics, and critical values at the upper end of their intervals, take more
    assert normal < need.equivalent.seeds < 1.4 * normal


def test_more_configurations_take_more_seeds_and_looks_have_less_power() -> None:
    few, many = (
        compute_best_needs(count, effect=2, scatter=unordered(count, 1), alpha=0.05, margin=1)
        for count in (2, 5)
    )
    assert few.separated.seeds < many.separated.seeds
    assert few.equivalent.seeds < many.equivalent.seeds
    at_end, with_looks = (
        find_best_power(
            looks,
            boundaries_at(looks, 0.05).nominal.tolist(),
            count=3,
            effect=1.5,
            scatter=unordered(3, 1),
        )
        for looks in ((8,), (3, 4, 6, 8))
    )
    assert with_looks < at_end
    assert find_best_power((1,), (0.05,), count=3, effect=9, scatter=unordered(3, 1)) == 0


def test_where_items_limit_a_comparison_their_number_is_stated() -> None:
    limited = assume_scatter(np.arange(1.0, 5), 1.0, 100, ordered=False)
    need = compute_best_needs(4, effect=2, scatter=limited, alpha=0.05, margin=1)
    assert need.separated.seeds is None
    # with as many items the largest of all pairs has the stated power, whatever the seeds
    assert need.separated.items is not None
    assert need.separated.items > 100
