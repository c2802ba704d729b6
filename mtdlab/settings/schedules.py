"""Schedules of the EMA decay and the learning rate, as pure functions of the step."""

import math
from typing import Protocol

from mtdlab.analysis.measures.trace import EmaDecay
from mtdlab.settings.trainer import TrainerSettings


class EmaSchedule(Protocol):
    """The settings of an EMA schedule."""

    @property
    def ema_decay(self) -> float: ...
    @property
    def ema_decay_end(self) -> float | None: ...
    @property
    def ema_schedule_steps(self) -> int | None: ...
    @property
    def ema_order(self) -> str: ...
    @property
    def steps(self) -> int: ...


def ema_decay_at(step: int, settings: EmaSchedule) -> float:
    """η of a step (0 the first): constant, or a cosine from start to end over T steps.

    η(t) = end − (end − start)(1 + cos(π t / T)) / 2 (MoCoSE, section 3), T the run's steps or
    `ema_schedule_steps`; beyond T the cosine returns towards the start. t is the step, or the step
    plus 1 with `ema_order: before-target`, as in the published program.
    """
    start, end = settings.ema_decay, settings.ema_decay_end
    if end is None:
        return start
    t = step + (settings.ema_order == "before-target")
    period = settings.ema_schedule_steps or settings.steps
    return end - (end - start) * (1 + math.cos(math.pi * t / period)) / 2


def decay_of(settings: EmaSchedule) -> EmaDecay:
    """The decays of all steps of a run; `ema_decay_at` is that of one step."""
    shift = int(settings.ema_order == "before-target")
    return EmaDecay(settings.ema_decay, settings.ema_decay_end, settings.ema_schedule_steps, shift)


def learning_rate_at(step: int, settings: TrainerSettings) -> float:
    """The learning rate of a step (0 the first): linear warm-up from 0, then linear to 0.

    It is step / W of the setting in the W warm-up steps, (T − step) / (T − W) of it in the others
    of T.
    """
    warmup, steps = settings.warmup_steps, settings.steps
    if step < warmup:
        return settings.learning_rate * step / warmup
    return settings.learning_rate * (1 - (step - warmup) / (steps - warmup))
