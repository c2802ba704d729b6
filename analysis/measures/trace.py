"""Maximum traceable distance (MTD): age in steps of the oldest weights behind a queue's keys.

Letters: eta EMA decay of the target branch, K queue size, N batch size, S steps of a run. Distances
are counted in training steps. Source: MoCoSE, equations 4 to 10.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike

from mtdlab.analysis.measures import Floats


class Notation(NamedTuple):
    """How a setting is written for people; its unit is empty where it has none."""

    symbol: str = ""
    unit: str = ""
    description: str = ""


NOTATION: Mapping[str, Notation] = {
    "ema_decay": Notation(
        "η", "", "decay of the moving average of weights (momentum encoder) per step"
    ),
    "queue_size": Notation("K", "keys", "keys of earlier batches that serve as negatives"),
    "batch_size": Notation("N", "", "samples per training step"),
    "initial_queue_size": Notation("K_s", "keys", "random keys that the queue starts with"),
}
"""The settings of a momentum encoder and its queue, whatever trains the run."""
COMPONENTS = ("ema_decay", "queue_size")
"""The settings of the components of an MTD, 1/(1 - eta) and K/N."""
PARTS: Mapping[str, str] = {name: NOTATION[name].symbol for name in (*COMPONENTS, "batch_size")}
"""The settings that make up an MTD, in the order of `d_trace`, and their symbols."""
MTD_COLUMNS = ("mtd", *PARTS)


def check_range(name: str, value: ArrayLike, least: float, below: float = math.inf) -> Floats:
    """The values; ValueError for the first that is not allowed."""
    values = np.asarray(value, dtype=np.float64)
    allowed = (values >= least) & (values < below)
    if not allowed.all():
        rule = f"at least {least:g}" + (f" and below {below:g}" if below < math.inf else "")
        raise ValueError(f"{name} is {values[~allowed].flat[0]:g}; it must be {rule}")
    return values


def trace_limit(ema_decay: ArrayLike) -> Floats:
    """Mean age in steps of the online weights inside the target branch: 1/(1 - eta).

    The limit of the sum over i = 0..k of (1 - eta) eta^i (i + 1) for many steps k (equations 5 to
    10). Raises ValueError for a decay outside [0, 1).
    """
    return np.asarray(1 / (1 - check_range("ema_decay", ema_decay, 0, 1)))


@overload
def d_trace(ema_decay: float, queue_size: float, batch_size: float) -> float: ...
@overload
def d_trace(
    ema_decay: ArrayLike, queue_size: ArrayLike, batch_size: ArrayLike
) -> float | Floats: ...
def d_trace(ema_decay: ArrayLike, queue_size: ArrayLike, batch_size: ArrayLike) -> float | Floats:
    """Maximum traceable distance in steps: 1/(1 - eta) + K/N (equation 4).

    Arguments broadcast; numbers give a number. For an EMA schedule, pass the decay at each step to
    get the distance at each step. The batch size includes gradient accumulation. A queue size of 0
    means no queue: the distance is the EMA's component. Raises ValueError, naming the value, for a
    decay outside [0, 1), a queue size below 0 or a batch size below 1.
    """
    batches = check_range("queue_size", queue_size, 0) / check_range("batch_size", batch_size, 1)
    distance = np.asarray(trace_limit(ema_decay) + batches)
    return distance if distance.ndim else float(distance)


@dataclass(frozen=True)
class EmaDecay:
    """The EMA decay of each step of a run: constant, or a cosine from start to end.

    eta(t) = end - (end - start)(1 + cos(pi t / period)) / 2 (MoCoSE, section 3).

    Attributes:
        end: None for a constant decay.
        period: steps from start to end; None: those of the run.
        shift: t of the first step.
    """

    start: float
    end: float | None = None
    period: int | None = None
    shift: int = 0

    def trace(self, steps: int) -> float:
        """The EMA's part of the MTD: the mean of 1/(1 - eta) over the steps of a run.

        A schedule that ends at 1 has no finite mean: then it is that of its start, as the paper
        labels such runs. Raises ValueError for a decay outside [0, 1).
        """
        if self.end in (None, 1):
            return float(trace_limit(self.start))
        return _mean_trace(self, steps)

    def remaining(self, steps: int) -> float:
        """The share of the initial weights in the target branch after a run's steps.

        The product of the decays: eta^S where it is constant.
        """
        return self.start**steps if self.end is None else _product(self, steps)

    def at(self, step: ArrayLike, steps: int) -> Floats:
        """The decays of some steps (0 the first) of a run; after the period they fall again."""
        end, t = self.start if self.end is None else self.end, np.asarray(step) + self.shift
        share = (1 + np.cos(math.pi * t / (self.period or steps))) / 2
        return np.asarray(end - (end - self.start) * share)


# cached, since the points of a grid share a few schedules
@lru_cache(maxsize=4096)
def _mean_trace(decay: EmaDecay, steps: int) -> float:
    return float(np.mean(trace_limit(decay.at(np.arange(steps), steps))))


@lru_cache(maxsize=4096)
def _product(decay: EmaDecay, steps: int) -> float:
    return float(decay.at(np.arange(steps), steps).prod())
