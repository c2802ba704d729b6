"""What varies in a study: choices and ranges, and the grid they span."""

import hashlib
import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from mtdlab.settings.limits import POINTS


@dataclass(frozen=True)
class Choices:
    """A setting takes one of `values`; with `relative_to`, that many times another setting."""

    values: tuple[Any, ...]
    relative_to: str | None = None


@dataclass(frozen=True)
class Range:
    """A setting lies in [low, high], linear or log, whole numbers or steps where asked."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    integer: bool = False


Dimension = Choices | Range
Partial = dict[str, tuple[Any, ...]]
"""Some of a point's parameters, each with the values it may have."""


def parameter_name(setting: str, dimension: Dimension) -> str:
    """What Optuna calls the parameter: `queue_size`, or `queue_size/batch_size`."""
    if isinstance(dimension, Choices) and dimension.relative_to:
        return f"{setting}/{dimension.relative_to}"
    return setting


def resolve(
    search: Mapping[str, Dimension],
    parameters: Mapping[str, Any],
    given: Mapping[str, Any],
    default: Callable[[str, Mapping[str, Any]], Any],
) -> dict[str, Any]:
    """Trainer settings from a point of the search: `given`, plus `parameters` made absolute.

    default   the value of a setting that neither has, beside those that they have.

    A searched setting that `parameters` lack, because the point's method has no such setting,
    is left out.
    """
    settings = dict(given)
    relative = []
    for setting, dimension in search.items():
        name = parameter_name(setting, dimension)
        if name not in parameters:
            continue
        if isinstance(dimension, Choices) and dimension.relative_to:
            relative.append((setting, dimension.relative_to, parameters[name]))
        else:
            settings[setting] = parameters[name]
    # a base before the settings that are multiples of it
    multiples = {setting for setting, _, _ in relative}
    for setting, base, factor in sorted(relative, key=lambda item: item[1] in multiples):
        value = settings[base] if base in settings else default(base, settings)
        settings[setting] = round(factor * value)
    return settings


def grid(search: Mapping[str, Dimension], skip: Sequence[Partial] = ()) -> Iterator[dict[str, Any]]:
    """Every point of a search over choices that no partial point of `skip` matches.

    The last setting moves fastest.

    Raises ValueError for a range without a step, which has no grid, naming the setting, and for
    a grid of more than POINTS points.
    """
    names = [parameter_name(setting, dimension) for setting, dimension in search.items()]
    columns = [grid_values(setting, dimension) for setting, dimension in search.items()]
    if (count := math.prod(len(column) for column in columns)) > POINTS:
        raise ValueError(f"the grid has {count} points; it may have {POINTS}")
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*columns)]
    skipped = _matched(points, skip)
    for index, point in enumerate(points):
        if not skipped >> index & 1:
            yield point


def _matched(points: Sequence[Mapping[str, Any]], partials: Sequence[Partial]) -> int:
    """The points that match a partial point, as the bits of a number: bit 0 the first point.

    Time grows with the number of values in `partials`, not with that times the number of points.
    """
    having: dict[tuple[str, Any], int] = defaultdict(int)
    if partials:
        for index, point in enumerate(points):
            for name, value in point.items():
                having[name, value] |= 1 << index
    matched = 0
    for partial in partials:
        every = (1 << len(points)) - 1
        for name, values in partial.items():
            every &= reduce(or_, (having[name, value] for value in values))
        matched |= every
    return matched


def grid_values(setting: str, dimension: Dimension) -> tuple[Any, ...]:
    """The values a grid visits along one setting."""
    if isinstance(dimension, Choices):
        return dimension.values
    step = dimension.step or (1 if dimension.integer else None)
    if step is None or dimension.log:
        raise ValueError(f"{setting}: a grid needs a list of values, or low, high and step")
    steps = (dimension.high - dimension.low) / step
    if steps >= POINTS:
        raise ValueError(f"{setting}: a grid of more than {POINTS} values; raise its step")
    count = math.floor(steps + 1e-9) + 1
    values = tuple(dimension.low + index * step for index in range(count))
    return tuple(int(value) for value in values) if dimension.integer else values


def fingerprint(settings: Mapping[str, Any]) -> str:
    """A short name for a setting, the same for the same values in any order."""
    text = json.dumps(dict(settings), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
