"""What a terminal is shown: columns of text, and bars while something takes its time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of equally many cells, at least one, as lines whose columns are set to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def progress_bar(*, transient: bool = False) -> "Progress":
    """Bars on standard error, only where that is a terminal; `transient` ones go when done."""
    # here, since help must answer without it
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(console=console, disable=not console.is_terminal, transient=transient)
