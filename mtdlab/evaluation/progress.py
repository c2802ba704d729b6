"""A bar for a long evaluation: on standard error, and only where that is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, TaskID

from mtdlab.evaluation.suite import Advance


@contextmanager
def progress() -> Iterator[Advance]:
    """An `Advance` that shows a bar for each thing it hears of."""
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as bar:
        rows: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in rows:
                rows[what] = bar.add_task(what, total=total)
            bar.update(rows[what], completed=done)

        yield advance
