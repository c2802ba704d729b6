"""Hyperparameters of earlier versions under the names that they have now."""

from collections.abc import Mapping
from typing import Any

REPLACED: dict[str, str | None] = {}
"""Settings that were renamed, with the present name, or removed, with None."""


def present_settings(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """A study's or a trial's recorded settings by their present names, without removed ones."""
    names = {name: REPLACED.get(name, name) for name in recorded}
    return {new: recorded[old] for old, new in names.items() if new is not None}
