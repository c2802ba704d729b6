"""Output of the commands: a table, or one JSON object."""

import json
from typing import Any

from mtdlab.terminal import in_columns, print_text


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output."""
    print_text(json.dumps(value, indent=2, allow_nan=False))


def rounded_mtd(mtd: float | None) -> float | None:
    """An MTD as it is printed, in text and JSON: 14, not 14.000000000000002; None for none."""
    from analysis.runs import round_mtd

    if mtd is None:
        return None
    rounded = round_mtd(mtd)
    return int(rounded) if rounded == int(rounded) else rounded


def print_table(rows: list[dict[Any, Any]]) -> None:
    """Print rows with the same keys, at least one, in right-aligned columns."""
    cells = [[_cell(value) for value in row.values()] for row in rows]
    header = list(rows[0])
    print_text("\n".join(in_columns([header, *cells])))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    # four digits, so that 0.985 is not 0.98; a longer number without an exponent
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
