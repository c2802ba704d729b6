"""A bar for a long evaluation: on standard error, and only where that is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import TaskID

from mtdlab.evaluation.suite import Advance
from mtdlab.terminal import progress_bar


@contextmanager
def progress() -> Iterator[Advance]:
    """An `Advance` that shows a bar for each name it is called with."""
    with progress_bar() as bar:
        rows: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in rows:
                rows[what] = bar.add_task(what, total=total)
            bar.update(rows[what], completed=done)

        yield advance
