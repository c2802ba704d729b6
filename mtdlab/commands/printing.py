"""The output of the commands: tables, names with wrapped values, or one JSON object."""

import json
import math
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mtdlab.analysis.data.durations import list_first
from mtdlab.analysis.data.metric import as_read, direction_of, write_score
from mtdlab.terminal import in_columns, print_text

_LABEL = 12
_WIDEST = 100
MOST_NAMED = 10


def in_fields(fields: Iterable[tuple[str, str]]) -> str:
    """A line per name and value, wrapped to the terminal; those without a value are left out."""
    return "\n".join(wrap_text(value, f"{name:{_LABEL}} ") for name, value in fields if value)


def wrap_text(text: str, label: str = "") -> str:
    """Text wrapped to the terminal, with a label before it."""
    return textwrap.fill(
        " ".join(text.split()),
        min(shutil.get_terminal_size().columns, _WIDEST),
        initial_indent=label,
        subsequent_indent=" " * len(label),
        break_long_words=False,
        break_on_hyphens=False,
    )


def in_list(values: Mapping[str, Any]) -> str:
    """Names with their values in one line: ema_decay 0.95, queue_size 512."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in values.items())


def in_scores(scores: Mapping[str, float]) -> str:
    """Scores by name in one line, as they were read."""
    return ", ".join(
        f"{as_read(name)} {write_score(name, score)}" for name, score in scores.items()
    )


def metric_fields(metric: str, select_by: str) -> dict[str, str]:
    """The scores of a study as they are printed with --json, by the names of what was read."""
    names = {"metric": as_read(metric), "select_by": as_read(select_by)}
    return names | {"direction": direction_of(metric)}


def format_value(value: Any) -> str:
    """A setting's value: numbers without needless digits, "none" for no value."""
    if value is None or value == "":
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on standard output; null for numbers that are not finite."""
    print_text(json.dumps(_finite(value), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_finite, value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(rows: list[dict[Any, Any]]) -> None:
    """Print rows with the same keys, at least one, in right-aligned columns."""
    cells = [[_cell(value) for value in row.values()] for row in rows]
    print_text("\n".join(in_columns([list(rows[0]), *cells])))


def _cell(value: Any) -> str:
    if _finite(value) is None:
        return "–"
    if not isinstance(value, float):
        return str(value)
    # four digits, so that 0.985 is not 0.98; a longer number without an exponent
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def describe_failures(trials: Iterable[int], reasons: Iterable[str]) -> Iterator[str]:
    """The numbers of the trials that failed for each reason: trials 3, 5: the loss is nan."""
    by_reason: dict[str, list[int]] = {}
    for number, reason in zip(trials, reasons, strict=True):
        by_reason.setdefault(reason, []).append(number)
    for reason, numbers in by_reason.items():
        listed = list_first(numbers, MOST_NAMED)
        yield f"trial{'s' if len(numbers) > 1 else ''} {listed}: {reason}"
