"""Seeds and levels for 80 % power, before a study runs."""

import numpy as np
import pytest

from analysis.design import compute_needs, peak_effects, residual_deviation, slope_effects
from analysis.inference import ShapeTests
from tests.analysis.test_looks import trials_of

MTD = np.geomspace(10, 160, 5)


def test_the_assumed_shapes() -> None:
    assert peak_effects(MTD, 2.0) == pytest.approx([-2, -0.5, 0, -0.5, -2])
    assert slope_effects(MTD, 2.0) == pytest.approx([0, 0.5, 1, 1.5, 2])


def test_the_seeds_give_the_stated_power() -> None:
    """By simulation: the power is 80 % with the stated seeds and lower with fewer."""
    [own, nine] = compute_needs(MTD, effect=2.0, deviation=1.5, alpha=0.05)
    assert (own.levels, nine.levels) == (5, 9)
    assert own.peak is not None
    effects, random = peak_effects(MTD, 2.0), np.random.default_rng(0)

    def power(seeds: int) -> float:
        tests = ShapeTests(np.ones((seeds, 5), dtype=bool), MTD)
        tables = effects + 1.5 * random.standard_normal(size=(400, seeds, 5))
        return float(np.mean([tests.test_peak(tests.blocks.fit(each)) <= 0.05 for each in tables]))

    # 1,000 simulated studies decide the number, 400 others the power
    assert 0.73 < power(own.peak) < 0.92
    assert power(own.peak // 2) < 0.6


def test_a_smaller_effect_and_more_noise_need_more_seeds() -> None:
    def seeds(effect: float, deviation: float) -> int:
        own = compute_needs(MTD, effect=effect, deviation=deviation, alpha=0.05)[0]
        assert own.peak is not None
        return own.peak

    assert seeds(4.0, 1.0) < seeds(2.0, 1.0) < seeds(2.0, 1.5)


def test_two_levels_have_a_slope_but_no_peak() -> None:
    own = compute_needs([10.0, 20.0, 20.0], effect=2.0, deviation=1.0, alpha=0.05)[0]
    assert (own.levels, own.peak) == (2, None)
    # a paired t test: power 0.79 at 6 pairs and 0.87 at 7, by the noncentral t
    assert own.slope == pytest.approx(6, abs=1)


def test_the_residual_deviation_leaves_seeds_and_levels_out() -> None:
    trials = trials_of([0.0, 30.0, 50.0, 20.0, 5.0], 200, 1.5)
    assert residual_deviation(trials, []) == pytest.approx(1.5, rel=0.06)
    assert residual_deviation(trials[trials["seed"] == 0], []) is None
