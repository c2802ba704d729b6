"""Terminal output: columns of text and progress bars."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with right-aligned columns; rows: at least one, all of the same length."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def progress_bar(*, transient: bool = False, counts: bool = False) -> "Progress":
    """Progress bars on standard error if it is a terminal, with the time left.

    transient  erase them at the end.
    counts     with n of N instead of a percentage.
    """
    # imported here to keep --help fast
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    text, bar, share, _ = Progress.get_default_columns()
    columns = (text, bar, MofNCompleteColumn() if counts else share, TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=transient)
