"""The distances of equations 4 to 10, compared with their sums."""

import math

import numpy as np
import pytest

from mtdlab.analysis.measures.trace import d_trace, trace_limit


@pytest.mark.parametrize("ema_decay", [0.0, 0.3, 0.75, 0.85, 0.95, 0.999])
def test_the_mean_age_is_the_limit_of_its_sum(ema_decay: float) -> None:
    steps = np.arange(1, 50 / (1 - ema_decay))
    plain = ((1 - ema_decay) * ema_decay ** (steps - 1) * steps).sum()
    assert trace_limit(ema_decay) == pytest.approx(plain, rel=1e-9)


def test_d_trace_broadcasts_and_keeps_numbers_numbers() -> None:
    table = d_trace(np.array([[0.75], [0.85]]), np.array([64, 128, 256]), 64)
    assert np.shape(table) == (2, 3)
    assert np.asarray(table)[0].tolist() == pytest.approx([5, 6, 8])
    assert isinstance(d_trace(0.5, 64, 64), float)
    # without a queue it is the EMA alone
    assert d_trace(0.75, 0, 64) == trace_limit(0.75) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(((decay, 64, 64), f"ema_decay is {decay:g}; it must be") for decay in (-0.1, 1.0, 1.5)),
        ((math.nan, 64, 64), "ema_decay is nan; it must be at least 0 and below 1"),
        *(((0.85, 64, size), f"batch_size is {size:g}; it must be at") for size in (0, -64)),
        *(((0.85, 64, size), f"batch_size is {size:g}") for size in (math.nan, math.inf)),
        ((0.85, np.array([64, -3, 128]), 64), "queue_size is -3; it must be at least 0"),
    ],
)
def test_the_invalid_value_is_named(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        d_trace(*arguments)
