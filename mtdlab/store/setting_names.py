"""Translation of setting names of earlier versions to present names."""

from collections.abc import Mapping
from typing import Any

REPLACED: dict[str, str | None] = {}
"""Renamed settings with their present name; removed settings with None."""


def present_settings(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded settings by their present names, without removed ones."""
    names = {name: REPLACED.get(name, name) for name in recorded}
    return {new: recorded[old] for old, new in names.items() if new is not None}
