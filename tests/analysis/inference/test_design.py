"""Seeds and levels for 80 % power, before a study runs."""

import numpy as np
import pytest

from analysis.data.items import ItemScores
from analysis.inference.design import (
    compute_needs,
    count_seeds,
    estimate_precision,
    minimum_seeds,
    peak_effects,
    residual_deviation,
    slope_effects,
    smallest_margin,
)
from analysis.inference.shapes import design_tests
from tests.analysis.inference.test_interim_analysis import trials_of

MTD = np.geomspace(10, 160, 5)
DISTANCE = np.geomspace(5, 200, 7)
PLACE = np.linspace(-1, 1, 7)
EVEN = np.ones(7)


def test_the_assumed_shapes() -> None:
    assert peak_effects(MTD, 2.0) == pytest.approx([-2, -0.5, 0, -0.5, -2])
    assert slope_effects(MTD, 2.0) == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_the_seeds_give_the_stated_power() -> None:
    """By simulation: the power is 80 % with the stated seeds and lower with fewer."""
    [own, nine] = compute_needs(MTD, effect=2.0, deviation=1.5, alpha=0.05)
    assert (own.levels, nine.levels) == (5, 9)
    effects, random = peak_effects(MTD, 2.0), np.random.default_rng(0)

    def power(seeds: int) -> float:
        tests = design_tests(np.ones((seeds, 5), dtype=bool), MTD)
        tables = effects + 1.5 * random.standard_normal(size=(400, seeds, 5))
        return float((tests.test_peak(tests.fit(tables))[0] <= 0.05).mean())

    # 1,000 simulated studies decide the number, 400 others the power
    assert 0.73 < power(own.peak) < 0.92
    assert power(own.peak // 2) < 0.6


def test_a_smaller_effect_and_more_noise_need_more_seeds() -> None:
    def seeds(effect: float, deviation: float) -> int:
        own = compute_needs(MTD, effect=effect, deviation=deviation, alpha=0.05)[0]
        return own.peak

    assert seeds(4.0, 1.0) < seeds(2.0, 1.0) < seeds(2.0, 1.5)


def test_two_levels_have_a_slope_but_no_peak() -> None:
    own = compute_needs([10.0, 20.0, 20.0], effect=2.0, deviation=1.0, alpha=0.05)[0]
    assert (own.levels, own.peak) == (2, None)
    # a paired t test: power 0.79 at 6 pairs and 0.87 at 7, by the noncentral t
    assert own.slope == pytest.approx(6, abs=1)


def test_a_flat_score_is_shown_at_the_stated_margin() -> None:
    margin = smallest_margin(MTD, 8, deviation=0.5, alpha=0.05)
    tests = design_tests(np.ones((8, 5), dtype=bool), MTD)
    tables = 0.5 * np.random.default_rng(7).normal(size=(500, 8, 5))
    flat = tests.are_flat(tests.fit(tables), 0.05, margin)
    assert 0.7 < flat.mean() < 0.9
    assert smallest_margin(MTD, 2, deviation=0.5, alpha=0.05) is None
    assert smallest_margin(np.geomspace(5, 200, 31), 8, deviation=0.5, alpha=0.05) is None


def test_the_precision_tells_seeds_from_items() -> None:
    rng = np.random.default_rng(0)
    trials = trials_of([0.0, 1.0, 2.0, 1.0, 0.0], 8, 0.8).assign(number=range(40))
    # what an item adds to a run's score: common to all seeds of a level
    level = trials["mtd"].rank(method="dense").astype(int).to_numpy() - 1
    values = 50 + 20 * rng.normal(size=(5, 400))[level]
    items = ItemScores(
        trials["number"].to_numpy(), values.astype(np.float32), "mean", None, {"a": 400}, ""
    )
    found = estimate_precision(trials, [], items, 0.05)
    assert (found.seeds, found.items) == (8, 400)
    assert found.of_items == pytest.approx(20 * np.sqrt(2 / 400), rel=0.1)
    assert found.of_seeds == pytest.approx(0.8 * np.sqrt(2 / 8), rel=0.4)
    assert found.least == pytest.approx(1.96 * found.of_items, rel=1e-3)
    assert estimate_precision(trials, [], None, 0.05) is None


def test_the_residual_deviation_leaves_seeds_and_levels_out() -> None:
    trials = trials_of([0.0, 30.0, 50.0, 20.0, 5.0], 200, 1.5)
    assert residual_deviation(trials, []) == pytest.approx(1.5, rel=0.06)
    assert residual_deviation(trials[trials["seed"] == 0], []) is None


@pytest.mark.parametrize(
    ("truth", "margin"),
    [(2 * (1 - np.abs(PLACE)), 0.5), (PLACE, 0.5), (0.1 * PLACE, 0.8)],
    ids=["peaked", "rising", "flat"],
)
def test_the_counted_seeds_give_the_power(truth: np.ndarray, margin: float) -> None:
    seeds = count_seeds(DISTANCE, truth, EVEN, alpha=0.05, margin=margin)
    tests = design_tests(np.ones((seeds, 7), dtype=bool), DISTANCE)
    tables = truth + np.random.default_rng(1).normal(size=(400, seeds, 7))
    judged = tests.classify(tests.fit(tables), 0.05, margin)
    assert 0.7 <= (judged.shape != "inconclusive").mean() <= 0.95


def test_smaller_effects_and_more_scatter_take_more_seeds() -> None:
    peak = 1 - np.abs(PLACE)
    counts = [
        count_seeds(DISTANCE, height * peak, EVEN, alpha=0.05, margin=0.5) for height in (5, 2, 1)
    ]
    assert counts == sorted(counts)
    assert len(set(counts)) == 3
    noisy = count_seeds(DISTANCE, 2 * peak, 2 * EVEN, alpha=0.05, margin=0.5)
    assert noisy > counts[1]


def test_more_than_the_maximum_of_seeds_gives_none() -> None:
    assert count_seeds(DISTANCE, 0.6 * PLACE, 100 * EVEN, alpha=0.05, margin=0.5) is None
    with pytest.raises(ValueError, match="1 level of MTD; a verdict needs at least 2"):
        count_seeds(DISTANCE[:1], EVEN[:1], EVEN[:1], alpha=0.05, margin=0.5)


def test_the_most_probable_verdict_counts_and_not_the_smallest_differences() -> None:
    bump = np.array([0, 0.6, 0, 0, 0])
    seeds = count_seeds(DISTANCE[:5], bump, np.full(5, 0.1), alpha=0.05, margin=0.5)
    assert seeds <= 5


@pytest.mark.parametrize("most", [2, 3, 8, 31])
def test_the_smallest_number_of_seeds_is_found_from_any_beginning(most: int) -> None:
    for smallest in range(2, most + 3):
        for first in range(2, most + 1):
            called: list[int] = []

            def is_enough(seeds: int, smallest: int = smallest, called: list[int] = called) -> bool:
                called.append(seeds)
                return seeds >= smallest

            found = minimum_seeds(is_enough, most, first)
            assert found == (smallest if smallest <= most else None)
            assert 2 <= min(called) <= max(called) <= most
            assert len(called) == len(set(called))
