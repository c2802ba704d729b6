"""The parts of an MTD beside the length of a run; values by hand."""

import math

import numpy as np
import pytest

from mtdlab.analysis.data.beyond_run import RunLength, assess_row


def assess(
    ema_decay: float, queue_size: float, batch_size: int, steps: int, **schedule: object
) -> RunLength:
    """The length of a run with an MTD."""
    row = {"ema_decay": ema_decay, "queue_size": queue_size, "batch_size": batch_size}
    length = assess_row({"mtd": 1.0, "steps": steps, **row, **schedule})
    assert length is not None
    return length


def test_what_remains_of_the_initial_weights() -> None:
    # ln 0.995 = -0.0050125; times 160 -0.8020, exp 0.4484; times 460 -2.3058, exp 0.0997
    short, long = (assess(0.995, 512, 64, steps) for steps in (160, 460))
    assert (short.trace, short.batches) == (pytest.approx(200), 8)
    assert short.remaining == pytest.approx(0.448, abs=5e-4)
    assert (short.is_slow, short.is_filling, short.is_beyond) == (True, False, True)
    assert long.remaining == pytest.approx(0.0997, abs=5e-4)
    # a long history all the same: 200 of 460 steps
    assert (long.is_slow, long.is_beyond) == (True, False)
    assert not assess(0.995, 512, 64, 801).is_slow


@pytest.mark.parametrize(
    ("queue", "steps", "is_filling", "is_beyond"),
    [
        (512, 160, False, False),
        # 40 of 160 steps are a quarter, not more
        (2560, 160, False, False),
        (2624, 160, True, False),
        # 80 of 160 steps are half of them
        (5120, 160, True, False),
        (8192, 160, True, True),
        (0, 1, False, False),
    ],
)
def test_how_long_the_queue_fills(
    queue: int, steps: int, is_filling: bool, is_beyond: bool
) -> None:
    found = assess(0.0, queue, 64, steps)
    assert (found.is_filling, found.is_beyond) == (is_filling, is_beyond)


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_of_a_schedule_the_decays_are_multiplied(steps: int) -> None:
    product, total = 1.0, 0.0
    for step in range(steps):
        decay = 0.999 - 0.049 * (1 + math.cos(math.pi * (step + 1) / 50)) / 2
        product, total = product * decay, total + 1 / (1 - decay)
    found = assess(
        0.95, 64, 64, steps, ema_decay_end=0.999, ema_schedule_steps=50, ema_order="before-target"
    )
    assert found.remaining == pytest.approx(product, rel=1e-9)
    assert found.trace == pytest.approx(total / steps, rel=1e-9)


def test_a_schedule_that_ends_at_1_has_the_trace_of_its_start() -> None:
    found = assess(0.75, 64, 64, 100, ema_decay_end=1.0)
    assert found.trace == 4
    assert found.remaining == pytest.approx(
        np.prod([1 - 0.125 * (1 + math.cos(math.pi * t / 100)) for t in range(100)]), rel=1e-9
    )


def test_a_part_that_is_not_known_is_not_judged() -> None:
    unknown = RunLength(160, math.nan, math.nan, math.nan)
    found = {unknown.is_slow, unknown.is_filling, unknown.is_beyond}
    assert found == {False}
    assert assess(0.995, math.nan, 64, 160).is_beyond
    assert assess(math.nan, 8192, 64, 160).is_beyond
    assert not assess(math.nan, 512, 64, 160).is_beyond


def test_a_run_without_steps_or_an_mtd_is_not_assessed() -> None:
    row = {"ema_decay": 0.5, "queue_size": 64, "batch_size": 64}
    assert assess_row(row | {"mtd": 3.0, "steps": 0}) is None
    assert assess_row(row | {"mtd": 0.0, "steps": 100}) is None
