"""Effects of settings and their interactions, on scores with known effects."""

import numpy as np
import pandas as pd
import pytest

from analysis.statistics.configurations import compute_effects


def factorial(interaction: float, *, noise: float = 0.3, seeds: int = 3) -> pd.DataFrame:
    """Three rates, whose best is 3 points above the worst, times three widths without effect."""
    rng = np.random.default_rng(0)
    rows = [
        (seed, rate, width, 40 + 3 * at + interaction * (at == 2) * (width == 8))
        for seed in range(seeds)
        for at, rate in enumerate((0.1, 0.3, 1.0))
        for width in (2, 4, 8)
    ]
    trials = pd.DataFrame(rows, columns=["seed", "rate", "width", "score"])
    shift = rng.normal(scale=5, size=seeds)[trials["seed"]]
    trials["score"] += shift + noise * rng.normal(size=len(trials))
    return trials.assign(number=range(len(trials)), state="COMPLETE")


def test_a_main_effect_is_the_difference_of_means_over_the_others() -> None:
    trials = factorial(0.0)
    found = compute_effects(trials, ["rate", "width"])
    row = found.settings.iloc[0]
    assert (row["setting"], row["best"], row["worst"]) == ("rate", 1.0, 0.1)
    means = trials.groupby("rate")["score"].mean()
    assert row["difference"] == pytest.approx(means[1.0] - means[0.1])
    assert 4.5 < row["low"] < row["difference"] < row["high"] < 7.5
    other = found.settings.iloc[1]
    assert (other["setting"], other["low"] < 0) == ("width", True)
    assert found.interactions["p_value"][0] > 0.05


def test_an_interaction_is_found() -> None:
    found = compute_effects(factorial(4.0), ["rate", "width"])
    assert found.interactions["p_value"][0] < 0.05


def test_designs_that_are_not_factorial_have_no_effects() -> None:
    trials = factorial(0.0)
    assert compute_effects(trials[trials["width"] == 2], ["rate", "width"]) is None
    lacking = trials[(trials["rate"] < 1) | (trials["width"] < 8)]
    assert compute_effects(lacking, ["rate", "width"]) is None
    assert compute_effects(trials[trials["seed"] == 0], ["rate", "width"]) is None
    assert compute_effects(trials.iloc[:0], ["rate", "width"]) is None


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_effects_that_are_not_there_are_seldom_significant(noise: float) -> None:
    false = 0
    for draw in range(60):
        trials = factorial(0.0)
        trials["score"] = noise * np.random.default_rng(draw).normal(size=len(trials))
        found = compute_effects(trials, ["rate", "width"])
        false += bool((found.settings["low"] > 0).any())
    # two settings at 0.05 each: more than 14 of 60 has a probability below 0.001
    assert false <= 14
