"""Strata of MTD in the search section: configurations with one MTD and different EMA and queue.

Letters: d MTD, eta EMA decay, K queue size, N batch size; d = 1/(1 - eta) + K/N.
"""

import math
from typing import Any

from analysis.trace import trace_limit
from mtdlab.config.search import Choices, Dimension, Partial, parameter_name
from mtdlab.config.source import KeyPath, Source
from mtdlab.settings.limits import POINTS

KEY = "mtd"
FIXES = ("ema_decay", "queue_size")
"""The settings that a stratum's configurations consist of."""

LEAST_DECAY = 0.5
_LEAST_MTD = 1 / (1 - LEAST_DECAY) + 2
TOLERANCE = 2e-4
MOST_PER_STRATUM = 1000
_KEYS = ["strata", "per_stratum"]
_PATH: KeyPath = ("search", KEY)


def draw_stratum(mtd: float, count: int) -> list[tuple[float, int]]:
    """At most `count` pairs (eta, K/N) with this MTD, by K/N.

    K/N is a whole number, spaced evenly in logarithms from 1 to the largest that leaves eta at 0.5
    or more; queue sizes that round to the same number are one. eta follows from the formula, with
    as few decimals as give the MTD to within 0.0002 steps.
    """
    most = math.floor(mtd - 1 / (1 - LEAST_DECAY))
    ratios = sorted({round(most ** (place / (count - 1))) for place in range(count)})
    return [(_decay(mtd - ratio), ratio) for ratio in ratios]


def _decay(trace: float) -> float:
    """The EMA decay with 1/(1 - eta) = trace."""
    exact = 1 - 1 / trace
    shortened = (round(exact, digits) for digits in range(2, 16))
    close = (eta for eta in shortened if eta < 1 and abs(trace_limit(eta) - trace) <= TOLERANCE)
    return next(close, exact)


def read_strata(source: Source, value: Any) -> tuple[dict[str, Dimension], tuple[Partial, ...]]:
    """The section `search: {mtd: {strata: [...], per_stratum: n}}` as dimensions of a grid.

    Returns the dimensions of ema_decay and queue_size, and the points of their grid to leave out.
    Raises SpecError at its place.
    """
    if not isinstance(value, dict):
        message = (
            f"{value!r}: write strata and per_stratum, as in {{strata: [5, 15], per_stratum: 4}}"
        )
        raise source.error(_PATH, message)
    for key in value.keys() - set(_KEYS):
        raise source.unknown((*_PATH, key), _KEYS)
    count = value.get("per_stratum")
    if not isinstance(count, int) or isinstance(count, bool) or not 2 <= count <= MOST_PER_STRATUM:
        rule = f"write a whole number from 2 to {MOST_PER_STRATUM}"
        raise source.error((*_PATH, "per_stratum"), f"{count!r}: {rule}")
    strata = value.get("strata")
    if not isinstance(strata, list) or not strata:
        raise source.error((*_PATH, "strata"), "needs at least one MTD, as in [5, 8.7, 14.7]")
    for index, mtd in enumerate(strata):
        if not isinstance(mtd, int | float) or isinstance(mtd, bool) or not mtd >= _LEAST_MTD:
            rule = f"an MTD of {_LEAST_MTD:g} or more has several configurations"
            raise source.error((*_PATH, "strata", index), f"{mtd!r}: {rule}")
    if len(strata) * count > POINTS:
        message = f"{len(strata)} strata of {count} are more than {POINTS} configurations"
        raise source.error(_PATH, message)
    pairs = [pair for mtd in dict.fromkeys(strata) for pair in draw_stratum(mtd, count)]
    ratios = tuple(sorted({ratio for _, ratio in pairs}))
    decays = tuple(dict.fromkeys(eta for eta, _ in pairs))
    if (count := len(ratios) * len(decays)) > POINTS:
        raise source.error(_PATH, f"gives a grid of {count} points; it may have {POINTS}")
    return _as_grid(ratios, decays, set(pairs))


def _as_grid(
    ratios: tuple[int, ...], decays: tuple[float, ...], pairs: set[tuple[float, int]]
) -> tuple[dict[str, Dimension], tuple[Partial, ...]]:
    """A grid of every eta and K/N, and what has to be left out of it to keep the pairs."""
    queue = Choices(ratios, relative_to="batch_size")
    search: dict[str, Dimension] = {"ema_decay": Choices(decays), "queue_size": queue}
    name = parameter_name("queue_size", queue)
    skipped = {eta: tuple(ratio for ratio in ratios if (eta, ratio) not in pairs) for eta in decays}
    return search, tuple(
        {"ema_decay": (eta,), name: others} for eta, others in skipped.items() if others
    )
