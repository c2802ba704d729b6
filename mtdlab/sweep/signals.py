"""Stopping a sweep: a signal requests it, every worker stops after its current step."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interrupted(Exception):
    """A stop of the run was requested."""


@dataclass(frozen=True)
class StopRequest:
    """Shared by all workers of one sweep: a file that exists once a stop is requested."""

    path: Path
    parent: int

    def requested(self) -> bool:
        """Whether to stop after this step: requested, or the sweep's own process has ended."""
        return self.path.exists() or self._orphaned()

    def exit_if_orphaned(self) -> None:
        """End a worker whose sweep was killed: no process is left to read its results."""
        if self._orphaned():
            os._exit(1)

    def _orphaned(self) -> bool:
        return os.getpid() != self.parent != os.getppid()

    def ignore_terminal(self) -> None:
        """Ignore Ctrl-C in workers, which a terminal sends to them too: the sweep handles it."""
        if os.getpid() != self.parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first signal into a request to stop; a second one leaves at once."""
    with tempfile.TemporaryDirectory(prefix="mtdlab-") as folder:
        stop = StopRequest(Path(folder) / "stop", os.getpid())

        def request(number: int, _frame: FrameType | None) -> None:
            if stop.path.exists():
                os._exit(128 + number)
            stop.path.write_text(str(number))

        previous = {number: signal.signal(number, request) for number in SIGNALS}
        try:
            yield stop
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


@contextmanager
def ctrl_c_ignored() -> Iterator[None]:
    """Ignore SIGINT until the block ends; processes that are started in it always ignore it.

    A terminal sends Ctrl-C to the workers too, where it would break off their imports. Blocking
    the signal instead would not do: loky unblocks it before it starts its processes.
    """
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def exit_code(stop: StopRequest) -> int:
    """128 plus the number of the signal: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + int(stop.path.read_text() or signal.SIGINT)
