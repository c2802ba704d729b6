"""Estimates over seeds against SciPy, and each condition of a peak by itself."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.frames import Settings
from analysis.inference import estimate, judge_shape
from analysis.verdict import compute_verdict

LEVELS = np.array([5.0, 8.0, 12.0, 20.0, 40.0])


@pytest.mark.parametrize("level", [0.9, 0.95])
def test_an_estimate_is_scipys_t_interval(level: float) -> None:
    values = np.array([1.0, 2.0, 4.0, 4.5])
    found = estimate(values, level)
    low, high = stats.t.interval(level, 3, loc=values.mean(), scale=stats.sem(values))
    assert (found.mean, found.low, found.high) == pytest.approx((values.mean(), low, high))


def test_one_seed_has_no_interval() -> None:
    found = estimate(np.array([3.0]), 0.95)
    assert found.mean == 3
    assert np.isnan([found.low, found.high]).all()


def with_slope(up: list[float]) -> np.ndarray:
    """Scores (seeds, 5) that rise to the middle by these slopes and fall clearly from it."""
    middle = np.log(LEVELS[2])
    distance = np.log(LEVELS) - middle
    rows = [np.where(distance < 0, slope * distance, -3 * distance) for slope in up]
    return 40 + np.array(rows)


def test_a_peak_needs_a_rise_whose_interval_is_above_zero() -> None:
    """Mean slope 0.9 with an interval from about -0.2: the middle is best, but not for sure."""
    clear, unclear = [0.9, 1.0, 1.1], [0.45, 0.9, 1.35]
    low = estimate(np.array(unclear), 0.95).low
    assert -1 < low < 0
    assert judge_shape(with_slope(clear), LEVELS, 0.95, 0.5) == "peaked inside"
    assert judge_shape(with_slope(unclear), LEVELS, 0.95, 0.5) != "peaked inside"


def test_a_peak_needs_a_fall_whose_interval_is_below_zero() -> None:
    mirrored = with_slope([0.45, 0.9, 1.35])[:, ::-1]
    assert judge_shape(mirrored, 200 / LEVELS[::-1], 0.95, 0.5) != "peaked inside"


def test_the_fields_of_a_verdict_by_hand(
    trials_of: Callable[..., pd.DataFrame], settings: Settings
) -> None:
    trials = trials_of(seeds=(0, 1, 2), decays=(0.75,), times=(1, 4, 8), noise=0.3)
    table = trials.pivot_table(index="seed", columns="mtd", values="score")
    assert table.columns.tolist() == [5, 8, 12]
    verdict = compute_verdict(trials, settings)
    assert (verdict.first, verdict.last, verdict.peak.mtd) == (5, 12, 8)
    assert (verdict.seeds, verdict.levels, verdict.levels_run) == (3, 3, 3)
    rise, fall = table[8] - table[5], table[8] - table[12]
    for found, values in ((verdict.rise, rise), (verdict.fall, fall)):
        assert found == estimate(values.to_numpy(), 0.95)
        assert found.mean == pytest.approx(values.mean())
