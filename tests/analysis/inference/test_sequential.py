"""Boundaries of repeated looks: published values, simulation of their definition, errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

from mtdlab.analysis.inference.looks import (
    Boundaries,
    boundaries_at,
    compute_boundaries,
    find_p_over_looks,
    leading_levels,
)
from mtdlab.analysis.measures import Floats

LEVELS = [5.0, 10.0, 20.0, 40.0, 80.0]
FIVE = np.arange(1, 6) / 5
REFERENCE = Path(__file__).parents[1] / "reference" / "sequential.json"
SPENDING = {"asOF": "obrien-fleming", "asP": "pocock"}


def spend(fractions: Floats, alpha: float, spending: str) -> Floats:
    """The error spent up to each information fraction, as Lan and DeMets (1983) have it."""
    if spending == "pocock":
        return alpha * np.log1p((np.e - 1) * fractions)
    if spending == "linear":
        return alpha * fractions
    return 2 * special.ndtr(special.ndtri(alpha / 2) / np.sqrt(fractions))


def boundaries_of(fractions: list[float], alpha: float, spending: str) -> Boundaries:
    return compute_boundaries(np.array(fractions), spend(np.array(fractions), alpha, spending))


@pytest.mark.parametrize("expected", json.loads(REFERENCE.read_text()))
def test_one_sided_boundaries_are_those_of_rpact(expected: dict[str, Any]) -> None:
    rates, spending = expected["information_rates"], SPENDING[expected["spending"]]
    found = boundaries_of(rates, expected["alpha"], spending)
    assert found.critical == pytest.approx(expected["critical"], abs=1e-5)
    assert found.nominal == pytest.approx(expected["nominal_p"], rel=1e-5)
    assert found.cumulative == pytest.approx(expected["alpha_spent"], abs=2e-8)


@pytest.mark.parametrize(
    ("spending", "critical"),
    [
        # Lan and DeMets' O'Brien-Fleming-like function at alpha 0.05, as ldbounds prints it
        ("obrien-fleming", [4.8769, 3.3569, 2.6803, 2.2898, 2.0310]),
        ("pocock", [2.4380, 2.4268, 2.4102, 2.3966, 2.3859]),
    ],
)
def test_five_equal_looks_have_the_published_two_sided_values(spending, critical) -> None:
    """A path that crosses on both sides is rarer than these digits show."""
    found = boundaries_of(FIVE, 0.025, spending)
    assert found.critical == pytest.approx(critical, abs=2e-4)
    assert found.cumulative[-1] == pytest.approx(0.025)
    assert found.nominal == pytest.approx(special.ndtr(-found.critical))


@pytest.mark.parametrize("spending", ["obrien-fleming", "pocock", "linear"])
def test_paths_cross_at_each_look_as_often_as_is_spent_there(spending) -> None:
    one = boundaries_of([1.0], 0.05, spending)
    assert (one.critical, one.nominal) == (
        pytest.approx([1.644854], abs=1e-6),
        pytest.approx([0.05]),
    )
    fractions = np.array([0.3, 0.5, 0.7, 1.0])
    found = boundaries_of(fractions, 0.05, spending)
    steps = np.sqrt(np.diff(fractions, prepend=0.0))
    sums = np.cumsum(np.random.default_rng(0).standard_normal((400_000, 4)) * steps, axis=1)
    crossed = sums / np.sqrt(fractions) > found.critical
    up_to = np.maximum.accumulate(crossed, axis=1).mean(axis=0)
    assert up_to == pytest.approx(found.cumulative, abs=4 * np.sqrt(0.05 * 0.95 / 400_000))


def test_alpha_is_spent_evenly_and_all_of_it_at_the_end() -> None:
    found = boundaries_at([2, 5, 10], 0.05)
    assert found.cumulative == pytest.approx([0.01, 0.025, 0.05])
    assert found.nominal == pytest.approx(boundaries_of([0.2, 0.5, 1.0], 0.05, "linear").nominal)


def test_a_look_at_which_nothing_is_spent_is_never_significant() -> None:
    found = boundaries_of([0.01, 1.0], 0.05, "obrien-fleming")
    assert found.critical[0] == np.inf
    assert found.nominal[0] == 0
    assert found.critical[1] == pytest.approx(1.644854, abs=1e-5)


def test_p_over_looks_is_how_often_paths_get_as_far() -> None:
    """The third of looks after 5, 7, 9 and 13 seeds: an error earlier counts, at this z too."""
    seeds, p_value = [5, 7, 9, 13], 0.013
    nominal = boundaries_at(seeds, 0.05).nominal
    draws = np.random.default_rng(3).normal(size=(200_000, 9))
    sums = draws.cumsum(axis=1)
    tails = [special.ndtr(-sums[:, n - 1] / np.sqrt(n)) for n in seeds[:3]]
    further = (tails[0] <= nominal[0]) | (tails[1] <= nominal[1]) | (tails[2] <= p_value)
    found = find_p_over_looks(p_value, seeds, 3, 0.05)
    assert found == pytest.approx(further.mean(), abs=0.0015)
    assert found == pytest.approx(0.031, abs=0.001)


def test_p_over_looks_is_p_at_the_first_look_and_alpha_at_the_last_boundary() -> None:
    seeds = [5, 7, 9, 13]
    bounds = boundaries_at(seeds, 0.05)
    assert find_p_over_looks(0.02, seeds, 1, 0.05) == pytest.approx(0.02)
    for look in (2, 3, 4):
        found = find_p_over_looks(float(bounds.nominal[look - 1]), seeds, look, 0.05)
        assert found == pytest.approx(float(bounds.cumulative[look - 1]), rel=1e-6)


@pytest.mark.parametrize(
    ("optimal", "leading"),
    [
        ([20.0], (5.0, 10.0, 20.0, 40.0, 80.0)),
        ([5.0], (5.0, 10.0, 80.0)),
        ([78.0], (5.0, 40.0, 80.0)),
        ([10.0], (5.0, 10.0, 20.0, 80.0)),
        # levels between optimal ones are included
        ([5.0, 20.0], (5.0, 10.0, 20.0, 40.0, 80.0)),
        ([5.0, 10.0], (5.0, 10.0, 20.0, 80.0)),
    ],
)
def test_the_optimal_range_its_neighbours_and_the_ends_are_leading_levels(
    optimal: list[float], leading: tuple[float, ...]
) -> None:
    assert leading_levels(LEVELS, optimal) == leading
