"""Maximum traceable distance (MTD): age in steps of the oldest weights behind a queue's keys.

Letters: eta EMA decay of the target branch, K queue size, N batch size. Distances are
counted in training steps. Source: MoCoSE, equations 4 to 10.
"""

from collections.abc import Mapping
from typing import overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.measures import Floats

PARTS: Mapping[str, str] = {"ema_decay": "η", "queue_size": "K", "batch_size": "N"}
"""The settings that make up an MTD, in the order of `d_trace`, and their symbols."""


def _first(values: Floats, wrong: NDArray[np.bool_]) -> float:
    return float(values[wrong].flat[0])


def _checked_decay(ema_decay: ArrayLike) -> Floats:
    decay = np.asarray(ema_decay, dtype=np.float64)
    wrong = ~((decay >= 0) & (decay < 1))
    if wrong.any():
        raise ValueError(
            f"ema_decay is {_first(decay, wrong):g}; it must be at least 0 and below 1"
        )
    return decay


def _checked_size(name: str, size: ArrayLike, *, least: int) -> Floats:
    values = np.asarray(size, dtype=np.float64)
    wrong = ~(np.isfinite(values) & (values >= least))
    if wrong.any():
        raise ValueError(f"{name} is {_first(values, wrong):g}; it must be at least {least}")
    return values


@overload
def trace_limit(ema_decay: float) -> float: ...
@overload
def trace_limit(ema_decay: ArrayLike) -> float | Floats: ...
def trace_limit(ema_decay: ArrayLike) -> float | Floats:
    """Mean age in steps of the online weights inside the target branch: 1/(1 - eta).

    The limit of `finite_trace` for many steps (equation 10). A number for a number, an
    array for an array. Raises ValueError for a decay outside [0, 1).
    """
    limit = 1 / (1 - _checked_decay(ema_decay))
    return limit if limit.ndim else float(limit)


@overload
def finite_trace(ema_decay: float, k: int) -> float: ...
@overload
def finite_trace(ema_decay: ArrayLike, k: ArrayLike) -> float | Floats: ...
def finite_trace(ema_decay: ArrayLike, k: ArrayLike) -> float | Floats:
    """The mean age after k steps, S_n = sum over i = 0..k of (1 - eta) eta^i (i + 1).

    Closed form of equations 5 to 10: (1 - eta^(k+1)) / (1 - eta) - (k + 1) eta^(k+1).
    Arguments broadcast. Raises ValueError for a decay outside [0, 1) or a negative k.
    """
    decay = _checked_decay(ema_decay)
    terms = _checked_size("k", k, least=0) + 1
    kept = decay**terms
    trace = np.asarray((1 - kept) / (1 - decay) - terms * kept)
    return trace if trace.ndim else float(trace)


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
    means no queue: the distance is the EMA's component.

    Raises:
        ValueError: naming the value, for a decay outside [0, 1), a queue size below 0 or a batch
            size below 1.
    """
    queue = _checked_size("queue_size", queue_size, least=0)
    batch = _checked_size("batch_size", batch_size, least=1)
    distance = np.asarray(trace_limit(ema_decay) + queue / batch)
    return distance if distance.ndim else float(distance)
