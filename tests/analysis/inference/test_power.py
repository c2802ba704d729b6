"""What a verdict takes with 80 % power, before a study runs and after it was inconclusive."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from mtdlab.analysis.inference.looks import boundaries_at
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.power import (
    ANY_SEEDS,
    Needed,
    PlannedDesign,
    Target,
    compute_precision,
    compute_targets,
    count_needed,
    design_levels,
    fewest_seeds,
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


def plan(
    distance: np.ndarray, scatter: Scatter, *, ordered: bool = True, **changed: Any
) -> dict[str, list[Target]]:
    """The targets of each kind: 2 points and a margin of 0.5 at one look at 8 seeds, at 5 %."""
    given = {"looks": (8,), "alphas": (0.05,), "effect": 2.0, "margin": 0.5, "alpha": 0.05}
    design = PlannedDesign(distance, ordered=ordered)
    found = compute_targets(design, scatter=scatter, **{**given, **changed})
    kinds = dict.fromkeys(target.kind for target in found)
    return {kind: [target for target in found if target.kind == kind] for kind in kinds}


def test_the_assumed_shapes() -> None:
    assert peak_effects(MTD, 2.0) == pytest.approx([-2, -0.5, 0, -0.5, -2])
    assert slope_effects(MTD, 2.0) == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_the_seeds_give_the_stated_power() -> None:
    """By simulation: the power is 80 % with the stated seeds and lower with fewer."""
    scatter = independent(MTD, 1.5)
    [own, nine] = plan(MTD, scatter)["peak"]
    assert (own.compared, nine.compared, nine.found) == (5, 9, None)
    effects, random = peak_effects(MTD, 2.0), np.random.default_rng(0)

    def power(seeds: int) -> float:
        tests = design_tests(np.ones((seeds, 5), dtype=bool), MTD)
        tables = effects + 1.5 * random.standard_normal(size=(400, seeds, 5))
        return float((tests.test_peak(tests.fit(tables)) <= 0.05).mean())

    # 1,000 simulated studies decide the number, 400 others the power
    assert 0.73 < power(own.needed.seeds) < 0.9
    assert power(own.needed.seeds // 2) < 0.6


def test_a_smaller_effect_needs_more_seeds() -> None:
    def seeds(effect: float) -> int:
        return plan(MTD, independent(MTD, 1.0), effect=effect)["peak"][0].needed.seeds

    assert seeds(4.0) < seeds(2.0)


def test_two_levels_have_a_slope_but_no_peak() -> None:
    levels = design_levels([10.0, 20.0, 20.0])
    found = plan(levels, independent(levels, 1.0))
    [own] = found["slope"]
    assert (own.compared, [peak.compared for peak in found["peak"]]) == (2, [5, 9])
    # a paired t test: power 0.79 at 6 pairs and 0.87 at 7, by the noncentral t
    assert own.needed.seeds in (6, 7, 8)


def test_many_seeds_are_those_of_a_paired_t_test() -> None:
    """More seeds than are simulated."""
    [own] = plan(TWO, independent(TWO, 1.0), effect=0.5)["slope"]

    def power(seeds: int) -> float:
        shift = 0.5 / math.sqrt(2 / seeds)
        critical = stats.t.isf(0.025, seeds - 1)
        return float(stats.nct.sf(critical, seeds - 1, shift))

    # few simulated tables make critical values too large
    assert 0.75 < power(own.needed.seeds) < 0.88
    assert own.needed.seeds > 40


def test_items_bound_the_power_as_in_a_z_test() -> None:
    """With any number of seeds a difference has the known standard error of the items."""
    scatter = with_items(TWO, 1.0, 0.6, 1_000)
    [own] = plan(TWO, scatter, looks=(ANY_SEEDS,), effect=1.0)["slope"]
    reached = special.ndtr(1 / 0.6 - special.ndtri(0.975))
    # few simulated tables make critical values too large
    assert own.found == pytest.approx(reached, abs=0.08)
    slope = own.needed
    assert slope.seeds is None
    # power of 80 % takes an effect of 2.8 standard errors
    factor = (special.ndtri(0.975) + special.ndtri(0.8)) * 0.6
    assert slope.items == pytest.approx(1_000 * factor**2, rel=0.25)
    with_those = with_items(TWO, 1.0, 0.6 * math.sqrt(1_000 / slope.items), slope.items + 1)
    assert plan(TWO, with_those, effect=1.0)["slope"][0].needed.items is None


def test_few_seeds_are_few() -> None:
    """A large effect takes three seeds with their one or two degrees of freedom, not sixteen."""
    found = plan(MTD, independent(MTD, 1.0), effect=8.0)
    assert 2 <= found["peak"][0].needed.seeds <= 4
    assert 2 <= found["slope"][0].needed.seeds <= 6


def test_looks_cost_power() -> None:
    looks, scatter = (4, 6, 10), independent(MTD, 1.5)
    alphas = boundaries_at(looks, 0.05).nominal.tolist()
    once, several, last = (
        plan(MTD, scatter, looks=seeds, alphas=levels)
        for seeds, levels in (
            (looks[-1:], (0.05,)),
            (looks, alphas),
            (looks[-1:], alphas[-1:]),
        )
    )
    for kind in ("peak", "slope"):
        assert last[kind][0].found <= several[kind][0].found < once[kind][0].found
    one = plan(MTD, scatter, looks=(1,))
    assert one["peak"][0].found == pytest.approx(0)
    assert one["slope"][0].found == pytest.approx(0)
    assert "flat" not in one


def test_a_flat_score_is_shown_at_the_stated_margin() -> None:
    [flat] = plan(MTD, independent(MTD, 0.5))["flat"]
    assert (flat.found, flat.needed) == (0.8, Needed(8))
    tests = design_tests(np.ones((8, 5), dtype=bool), MTD)
    tables = 0.5 * np.random.default_rng(7).normal(size=(500, 8, 5))
    assert 0.7 < tests.are_flat(tests.fit(tables), 0.05, flat.points).mean() < 0.9
    for seeds, levels in ((2, MTD), (8, TWO)):
        assert "flat" not in plan(levels, independent(levels, 0.5), looks=(seeds,))


@pytest.mark.slow
def test_items_bound_the_margin_of_a_flat_score() -> None:
    scatter = with_items(THREE, 0.5, 0.6, 1_000)
    [flat, wanted] = plan(THREE, scatter, looks=(10,))["flat"]
    # the largest difference of three normal means, with its one-sided half width at 5 %
    drawn = 0.6 / math.sqrt(2) * np.random.default_rng(0).standard_normal((20_000, 3))
    widest = np.ptp(drawn, axis=1) + 0.6 * special.ndtri(0.95)
    least = 0.5 * math.sqrt(wanted.needed.items / 1_000)
    assert least == pytest.approx(np.quantile(widest, 0.8), rel=0.1)
    assert least < flat.points
    assert (wanted.points, wanted.found, wanted.needed.seeds) == (0.5, None, None)
    assert len(plan(THREE, scatter, looks=(10,), margin=5.0)["flat"]) == 1


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
        pytest.param(0.1 * PLACE, 0.8, id="flat"),
    ],
)
@pytest.mark.slow
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


def plan_best(
    count: int, deviation: float, items: int = 0, **changed: Any
) -> tuple[Target, Target]:
    """The targets of configurations: the best, and that all are equivalent."""
    places = np.arange(1.0, count + 1)
    scatter = assume_scatter(places, deviation, items, ordered=False)
    found = plan(places, scatter, ordered=False, **changed)
    [best], [equivalent] = found["best"], found["equivalent"]
    return best, equivalent


def seeds_of_paired_t(effect: float) -> int:
    """The fewest seeds with which a paired t test finds the effect in 80 %; effect in its sd."""
    return next(
        seeds
        for seeds in range(2, 500)
        if stats.nct.sf(stats.t.ppf(0.975, seeds - 1), seeds - 1, effect * seeds**0.5) > 0.8
    )


@pytest.mark.parametrize("effect", [1.0, 2.0])
def test_a_best_of_two_takes_the_seeds_of_the_paired_t_test(effect: float) -> None:
    best, _ = plan_best(2, 1.0, effect=effect, margin=1)
    assert best.needed.seeds == pytest.approx(seeds_of_paired_t(effect / 2**0.5), rel=0.35)


def test_equivalence_of_two_takes_the_seeds_of_two_one_sided_tests() -> None:
    """Where nothing differs each test has 90 % power: 2 (z(0.95) + z(0.9))^2 sd^2 / margin^2."""
    _, equivalent = plan_best(2, 0.5)
    normal = 2 * (special.ndtri(0.95) + special.ndtri(0.9)) ** 2
    # t statistics, and critical values at the upper end of their intervals, take more
    assert normal < equivalent.needed.seeds < 1.4 * normal


@pytest.mark.slow
def test_more_configurations_take_more_seeds_and_looks_have_less_power() -> None:
    few, many = (plan_best(count, 1.0, margin=1) for count in (2, 5))
    for small, large in zip(few, many, strict=True):
        assert small.needed.seeds < large.needed.seeds
    at_end, with_looks, one = (
        plan_best(3, 1.0, looks=looks, alphas=boundaries_at(looks, 0.05).nominal, effect=1.5)[0]
        for looks in ((8,), (3, 4, 6, 8), (1,))
    )
    assert one.found == 0 < with_looks.found < at_end.found


def test_where_items_limit_a_comparison_their_number_is_stated() -> None:
    best, _ = plan_best(4, 1.0, 100, margin=1)
    assert best.needed.seeds is None
    # with as many items the largest of all pairs has the stated power, whatever the seeds
    assert best.needed.items is not None
    assert best.needed.items > 100
