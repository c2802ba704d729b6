"""Output of the commands show, reproduce and compare: names with wrapped values."""

import shutil
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

_LABEL = 12
_WIDEST = 100


def in_fields(fields: Iterable[tuple[str, str]]) -> str:
    """A line per name and value, wrapped to the terminal; those without a value are left out."""
    width = min(shutil.get_terminal_size().columns, _WIDEST)
    space = " " * (_LABEL + 1)
    return "\n".join(
        textwrap.fill(
            " ".join(value.split()),
            width,
            initial_indent=f"{name:{_LABEL}} ",
            subsequent_indent=space,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for name, value in fields
        if value
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
