"""A function that a thread repeats while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from mtdlab.errors import StorageError
from mtdlab.store.restarts import without_waiting


@contextmanager
def repeated(seconds: float, function: Callable[[], None]) -> Iterator[None]:
    """Call a function every so many seconds, first after them, until the block ends.

    A StorageError that it raises is ignored, and a server that does not answer is not waited for:
    the next call may succeed.
    """
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(seconds):
            with suppress(StorageError), without_waiting():
                function()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
