"""The number of seeds for a verdict, compared with simulated studies."""

import numpy as np
import pytest

from analysis.inference import ShapeTests
from analysis.power import count_seeds, minimum_seeds

DISTANCE = np.geomspace(5, 200, 7)
PLACE = np.linspace(-1, 1, 7)
EVEN = np.ones(7)


@pytest.mark.parametrize(
    ("truth", "margin"),
    [(2 * (1 - np.abs(PLACE)), 0.5), (PLACE, 0.5), (0.1 * PLACE, 0.8)],
    ids=["peaked", "rising", "flat"],
)
def test_the_counted_seeds_give_the_power(truth: np.ndarray, margin: float) -> None:
    seeds = count_seeds(truth, EVEN, DISTANCE, margin=margin)
    assert seeds is not None
    tests = ShapeTests(np.ones((seeds, 7), dtype=bool), DISTANCE)
    rng = np.random.default_rng(0)
    tables = truth + rng.normal(size=(200, seeds, 7))
    settled = [tests.classify(table, 0.05, margin).shape != "inconclusive" for table in tables]
    assert 0.7 <= np.mean(settled) <= 0.99


def test_smaller_effects_and_more_scatter_take_more_seeds() -> None:
    peak = 1 - np.abs(PLACE)
    counts = [count_seeds(height * peak, EVEN, DISTANCE) for height in (5, 2, 1)]
    assert counts == sorted(counts)
    assert len(set(counts)) == 3
    noisy = count_seeds(2 * peak, 4 * EVEN, DISTANCE)
    assert noisy is not None
    assert noisy > counts[1]


def test_more_than_the_maximum_of_seeds_gives_none() -> None:
    assert count_seeds(0.6 * PLACE, 1e4 * EVEN, DISTANCE) is None
    with pytest.raises(ValueError, match="1 level of MTD; a verdict needs at least 2"):
        count_seeds(EVEN[:1], EVEN[:1], DISTANCE[:1])


def test_the_most_probable_verdict_counts_and_not_the_smallest_differences() -> None:
    bump = np.array([0, 0.6, 0, 0, 0])
    seeds = count_seeds(bump, np.full(5, 0.01), DISTANCE[:5])
    assert seeds is not None
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
