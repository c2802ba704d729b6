"""What commands print: a table for people, or its twin for programs."""

import json
from typing import Any

from mtdlab.terminal import in_columns


def print_json(value: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(rows: list[dict[Any, Any]]) -> None:
    """Rows with the same keys, at least one, in columns set to the right."""
    cells = [[_cell(value) for value in row.values()] for row in rows]
    header = list(rows[0])
    print("\n".join(in_columns([header, *cells])))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
