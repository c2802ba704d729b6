"""Points of a grid that a study leaves out."""

import math
from collections.abc import Mapping
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
    return tuple(
        _partial(source, ("skip", index), entry, search) for index, entry in enumerate(entries)
    )


def _partial(source: Source, path: KeyPath, entry: Any, search: Mapping[str, Dimension]) -> Partial:
    if not isinstance(entry, dict) or not entry:
        raise source.error(path, f"{entry!r}: write searched settings, as in {{ema_decay: 0.95}}")
    partial = {}
    for setting, given in entry.items():
        if setting not in search:
            raise source.unknown((*path, setting), search)
        values = given if isinstance(given, list) else [given]
        if not values:
            raise source.error((*path, setting), "needs at least one value, as in [0.95]")
        known = grid_values(setting, search[setting])
        partial[parameter_name(setting, search[setting])] = tuple(
            _along(source, (*path, setting), value, known) for value in values
        )
    return partial


def _along(source: Source, path: KeyPath, given: Any, known: tuple[Any, ...]) -> Any:
    """The grid's own value: 0.3 is meant where steps of 0.1 add up to 0.30000000000000004."""
    for value in known:
        if value == given or _close(value, given):
            return value
    listed = ", ".join(map(str, known[:20]))
    raise source.error(path, f"{given!r} matches no point of the grid; search has {listed}")


def _close(value: Any, given: Any) -> bool:
    numbers = isinstance(value, int | float) and isinstance(given, int | float)
    return numbers and math.isclose(value, given, rel_tol=1e-9)
