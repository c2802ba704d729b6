"""What moves with the step, at its first, middle and last."""

import math

import pytest

from mtdlab.methods.mocose_settings import MoCoSESettings
from mtdlab.methods.registry import make_settings
from mtdlab.settings import TrainerSettings
from mtdlab.training.optimizer import learning_rate_at

SETTINGS = make_settings(ema_decay=0.75, ema_decay_end=0.95, learning_rate=4e-5, steps=100)


def ema_decay_at(step: int, settings: TrainerSettings) -> float:
    assert isinstance(settings, MoCoSESettings)
    return float(settings.schedule.at(step, settings.steps))


@pytest.mark.parametrize(
    ("step", "decay"),
    [(0, 0.75), (50, 0.85), (99, 0.95 - 0.2 * (1 + math.cos(math.pi * 0.99)) / 2), (100, 0.95)],
)
def test_the_decay_goes_from_start_to_end_along_a_cosine(step: int, decay: float) -> None:
    assert ema_decay_at(step, SETTINGS) == pytest.approx(decay, rel=1e-12)


@pytest.mark.parametrize("step", [0, 50, 99])
def test_a_decay_without_an_end_is_constant(step: int) -> None:
    assert ema_decay_at(step, make_settings(ema_decay=0.6, steps=100)) == 0.6


@pytest.mark.parametrize(
    ("call", "decay"),
    [(1, 0.750), (3888, 0.789), (7500, 0.875), (10572, 0.950), (15000, 1.000), (15553, 0.9992)],
)
def test_the_published_schedule_has_its_own_length_and_counts_from_1(
    call: int, decay: float
) -> None:
    settings = make_settings(preset="published-code", steps=15_625)
    digits = len(str(decay).partition(".")[2])
    assert round(ema_decay_at(call - 1, settings), max(3, digits)) == decay


def test_a_schedule_of_given_length_that_runs_after_the_step() -> None:
    settings = make_settings(ema_decay=0.75, ema_decay_end=0.95, ema_schedule_steps=50, steps=100)
    assert [ema_decay_at(step, settings) for step in (0, 25, 50, 75)] == pytest.approx(
        [0.75, 0.85, 0.95, 0.85]
    )


@pytest.mark.parametrize(("step", "rate"), [(0, 4e-5), (50, 2e-5), (99, 4e-7)])
def test_the_learning_rate_falls_linearly_to_zero(step: int, rate: float) -> None:
    assert learning_rate_at(step, SETTINGS) == pytest.approx(rate, rel=1e-12)


def test_a_single_step_has_the_full_rate() -> None:
    assert learning_rate_at(0, make_settings(steps=1, learning_rate=1e-3)) == 1e-3


@pytest.mark.parametrize(("step", "share"), [(0, 0), (5, 0.5), (10, 1), (30, 0.5), (49, 0.025)])
def test_the_learning_rate_rises_over_the_warm_up(step: int, share: float) -> None:
    settings = make_settings(steps=50, warmup_steps=10, learning_rate=2e-5)
    assert learning_rate_at(step, settings) == pytest.approx(2e-5 * share, rel=1e-12)
