"""What several commands print alike: names with wrapped values."""

import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

_LABEL = 12
_WIDEST = 100


def in_fields(fields: Iterable[tuple[str, str]]) -> str:
    """A line per name and value, wrapped to the terminal; those without a value are left out."""
    return "\n".join(wrapped(value, f"{name:{_LABEL}} ") for name, value in fields if value)


def wrapped(text: str, label: str = "") -> str:
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
    """Scores by name in one line, with two decimals."""
    return ", ".join(f"{name} {score:.2f}" for name, score in scores.items())


def format_value(value: Any) -> str:
    """A setting's value: numbers without needless digits, "none" for no value."""
    if value is None or value == "":
        return "none"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
