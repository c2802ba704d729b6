"""Points of a grid that a study leaves out."""

import math
from bisect import bisect
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from mtdlab.config.search import Dimension, Partial, grid_values, parameter_name
from mtdlab.config.source import KeyPath, Source


def read_skip(
    source: Source, entries: list[Any], search: Mapping[str, Dimension], sampler: str
) -> tuple[Partial, ...]:
    """The `skip:` section: mappings of searched settings to a value or a list of values.

    Raises SpecError, at its place, for an entry that no point of the grid can match, and for a
    sampler that has no grid.
    """
    if entries and sampler != "grid":
        raise source.error(("skip",), f"only a grid has points to leave out, {sampler} has none")
    columns: dict[str, _Column] = {}
    return tuple(
        _partial(source, ("skip", index), entry, search, columns)
        for index, entry in enumerate(entries)
    )


class _Column:
    """The values of a grid along one setting, found in time that does not grow with their number.

    0.3 finds 0.30000000000000004, to which steps of 0.1 add up.
    """

    def __init__(self, values: tuple[Any, ...]) -> None:
        self.values = values
        self._exact = {value: value for value in values}
        self._numbers = sorted(value for value in values if isinstance(value, int | float))

    def find(self, given: Any) -> Any:
        """The grid's own value. Raises KeyError where it has none."""
        if given in self._exact:
            return self._exact[given]
        if isinstance(given, int | float):
            at = bisect(self._numbers, given)
            for value in self._numbers[max(0, at - 1) : at + 1]:
                if math.isclose(value, given, rel_tol=1e-9):
                    return value
        raise KeyError(given)


def _partial(
    source: Source,
    path: KeyPath,
    entry: Any,
    search: Mapping[str, Dimension],
    columns: dict[str, _Column],
) -> Partial:
    if not isinstance(entry, dict) or not entry:
        raise source.error(path, f"{entry!r}: write searched settings, as in {{ema_decay: 0.95}}")
    partial = {}
    for setting, given in entry.items():
        if setting not in search:
            raise source.unknown((*path, setting), search)
        values = given if isinstance(given, list) else [given]
        if not values:
            raise source.error((*path, setting), "needs at least one value, as in [0.95]")
        if setting not in columns:
            columns[setting] = _Column(grid_values(setting, search[setting]))
        partial[parameter_name(setting, search[setting])] = tuple(
            _along(source, (*path, setting), value, columns[setting]) for value in values
        )
    return partial


def _along(source: Source, path: KeyPath, given: Any, column: _Column) -> Any:
    if isinstance(given, str | int | float | None):
        with suppress(KeyError):
            return column.find(given)
    listed = ", ".join(map(str, column.values[:20]))
    raise source.error(path, f"{given!r} matches no point of the grid; search has {listed}")
