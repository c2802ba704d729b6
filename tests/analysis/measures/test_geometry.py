"""Alignment, uniformity and mean cosine compared with slow reference implementations."""

import itertools
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from mtdlab.analysis.measures import geometry
from mtdlab.analysis.measures.geometry import alignment, batched_uniformity, mean_cosine, uniformity

Floats = NDArray[np.float64]


@pytest.fixture
def rows() -> Floats:
    return np.random.default_rng(3).normal(size=(37, 5))


def unit(row: Floats) -> Floats:
    return np.asarray(row / np.sqrt(sum(value**2 for value in row)))


def slow_uniformity(rows: Floats, t: float) -> float:
    pairs = itertools.combinations([unit(row) for row in rows], 2)
    return float(np.log(np.mean([np.exp(-t * np.sum((x - y) ** 2)) for x, y in pairs])))


@pytest.mark.parametrize("alpha", [1, 2, 3.5])
def test_alignment_is_the_mean_power_of_the_distance(rows: Floats, alpha: float) -> None:
    others = rows[::-1]
    slow = [
        np.sqrt(np.sum((unit(x) - unit(y)) ** 2)) ** alpha
        for x, y in zip(rows, others, strict=True)
    ]
    assert alignment(rows, others, alpha=alpha) == pytest.approx(np.mean(slow), rel=1e-12)


def test_alignment_of_opposite_and_of_equal_pairs(rows: Floats) -> None:
    assert alignment(rows, -2 * rows) == pytest.approx(4)
    assert alignment(rows, 3 * rows) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("t", [0.5, 2, 20])
def test_uniformity_is_the_log_mean_kernel(rows: Floats, t: float) -> None:
    assert uniformity(rows, t=t) == pytest.approx(slow_uniformity(rows, t), rel=1e-12)
    # of float32 vectors to the 7th decimal
    small = rows.astype(np.float32)
    for count in (2, len(rows)):
        expected = slow_uniformity(small[:count].astype(np.float64), t)
        assert uniformity(small[:count], t=t) == pytest.approx(expected, rel=1e-7 * (1 + t))


@pytest.mark.parametrize("block", [1, 40, 37 * 4, 37 * 36])
def test_uniformity_is_the_same_in_any_blocks(
    rows: Floats, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = uniformity(rows)
    monkeypatch.setattr(geometry, "_BLOCK_VALUES", block)
    assert uniformity(rows) == pytest.approx(whole, rel=1e-13)


def test_uniformity_of_points_with_known_distances() -> None:
    corners = np.eye(4)
    assert uniformity(corners) == pytest.approx(-4)
    assert uniformity(np.ones((3, 2))) == pytest.approx(0, abs=1e-12)


def test_uniformity_needs_no_matrix_of_all_pairs() -> None:
    rows = np.random.default_rng(0).normal(size=(6000, 8))
    tracemalloc.start()
    uniformity(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 8 / 3


def test_mean_cosine_is_the_mean_over_distinct_pairs(rows: Floats) -> None:
    pairs = itertools.combinations([unit(row) for row in rows], 2)
    assert mean_cosine(rows) == pytest.approx(np.mean([x @ y for x, y in pairs]), rel=1e-10)
    assert mean_cosine(np.eye(5)) == pytest.approx(0, abs=1e-15)


ROWS = np.random.default_rng(3).normal(size=(8, 5))
ZERO, BROKEN = (np.where(np.arange(8)[:, None] == 4, value, ROWS) for value in (0, np.nan))


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda: uniformity(ROWS[:1]), "x has 1 rows; pairs need at least 2"),
        (lambda: mean_cosine(ROWS[:1]), "x has 1 rows; pairs need at least 2"),
        (lambda: uniformity(ZERO), "row 4 of x is all zeros"),
        (lambda: alignment(ROWS, BROKEN), "row 4 of y contains a value that is not finite"),
        (lambda: alignment(ROWS, ROWS[1:]), "they must be equal"),
        (lambda: alignment(ROWS, ROWS, alpha=0), "alpha is 0"),
        (lambda: uniformity(ROWS, t=-1), "t is -1"),
        (lambda: mean_cosine(ROWS[0]), "must be a matrix"),
        (lambda: alignment(ROWS[:0], ROWS[:0]), "at least 1 pair"),
        (lambda: batched_uniformity(ROWS[:1]), "x has 1 rows; pairs need at least 2"),
    ],
)
def test_arguments_out_of_range_are_refused(measure: Callable[[], float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measure()


def test_uniformity_in_batches_averages_their_logarithms() -> None:
    """Three batches of 64, and a last row that is left out, by the notebook's formula."""
    rows = np.random.default_rng(0).standard_normal((193, 8))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = []
    for start in (0, 64, 128):
        part = unit[start : start + 64]
        squares = [np.sum((part[i] - part[j]) ** 2) for i in range(64) for j in range(i + 1, 64)]
        expected.append(np.log(np.mean(np.exp(-2 * np.array(squares)))))
    assert batched_uniformity(rows) == pytest.approx(np.mean(expected), rel=1e-12)
    assert batched_uniformity(rows[:64]) == pytest.approx(uniformity(rows[:64]), rel=1e-12)
    assert batched_uniformity(rows) != pytest.approx(uniformity(rows), rel=1e-3)


def test_alike_neighbours_make_the_two_uniformities_differ() -> None:
    """Two distant groups: every batch holds one of them, so that each is as little uniform as 0."""
    rows = np.repeat([[1.0, 0.0], [-1.0, 0.0]], 64, axis=0)
    assert batched_uniformity(rows) == pytest.approx(0, abs=1e-12)
    assert uniformity(rows) < -0.6
