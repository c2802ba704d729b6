"""The distances of equations 4 to 10, compared with their sums."""

import math

import numpy as np
import pytest

from analysis.measures.trace import d_trace, finite_trace, trace_limit


def plain_sum(ema_decay: float, k: int) -> float:
    return sum((1 - ema_decay) * ema_decay**i * (i + 1) for i in range(k + 1))


@pytest.mark.parametrize("ema_decay", [0.0, 0.3, 0.75, 0.85, 0.95, 0.999])
@pytest.mark.parametrize("k", [0, 1, 7, 300])
def test_finite_trace_is_the_plain_sum(ema_decay: float, k: int) -> None:
    assert finite_trace(ema_decay, k) == pytest.approx(plain_sum(ema_decay, k), rel=1e-9)


def test_finite_trace_tends_to_its_limit() -> None:
    assert finite_trace(0.85, 2000) == pytest.approx(trace_limit(0.85), rel=1e-12)


def test_d_trace_of_the_papers_optimum() -> None:
    assert d_trace(0.85, 512, 64) == pytest.approx(14.6667, abs=1e-4)


def test_d_trace_without_a_queue_is_the_ema_alone() -> None:
    assert d_trace(0.75, 0, 64) == trace_limit(0.75) == 4


def test_d_trace_broadcasts_and_keeps_numbers_numbers() -> None:
    table = d_trace(np.array([[0.75], [0.85]]), np.array([64, 128, 256]), 64)
    assert np.shape(table) == (2, 3)
    assert np.asarray(table)[0].tolist() == pytest.approx([5, 6, 8])
    assert isinstance(d_trace(0.5, 64, 64), float)


@pytest.mark.parametrize("ema_decay", [-0.1, 1.0, 1.5, math.nan])
def test_a_decay_outside_its_range_is_named(ema_decay: float) -> None:
    with pytest.raises(ValueError, match=rf"ema_decay is {ema_decay:g}; it must be"):
        d_trace(ema_decay, 64, 64)


@pytest.mark.parametrize("batch_size", [0, -64, math.nan, math.inf])
def test_a_batch_size_below_one_is_named(batch_size: float) -> None:
    with pytest.raises(ValueError, match=rf"batch_size is {batch_size:g}; it must be at least 1"):
        d_trace(0.85, 64, batch_size)


def test_the_invalid_value_of_several_is_named() -> None:
    with pytest.raises(ValueError, match="queue_size is -3; it must be at least 0"):
        d_trace(0.85, np.array([64, -3, 128]), 64)


def test_a_negative_number_of_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="k is -1"):
        finite_trace(0.5, -1)
