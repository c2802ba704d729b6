"""Stopping a sweep: a signal asks, every worker's next step answers."""

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
    """The run was asked to stop."""


@dataclass(frozen=True)
class Stop:
    """A request to stop that all workers of one sweep see: a file, and their parent's life."""

    path: Path
    parent: int

    def requested(self) -> bool:
        """Whether to leave after this step: asked to, or the sweep itself is gone."""
        return self.path.exists() or self._orphaned()

    def leave_if_orphaned(self) -> None:
        """End a worker whose sweep was killed: nobody is left to take what it returns."""
        if self._orphaned():
            os._exit(1)

    def _orphaned(self) -> bool:
        return os.getpid() != self.parent != os.getppid()

    def ignore_terminal(self) -> None:
        """Leave a terminal's Ctrl-C, which reaches workers too, to the sweep itself."""
        if os.getpid() != self.parent:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Turn the first signal into a request to stop; a second one leaves at once."""
    with tempfile.TemporaryDirectory(prefix="mtdlab-") as folder:
        stop = Stop(Path(folder) / "stop", os.getpid())

        def ask(number: int, _frame: FrameType | None) -> None:
            if stop.path.exists():
                os._exit(128 + number)
            stop.path.write_text(str(number))

        previous = {number: signal.signal(number, ask) for number in SIGNALS}
        try:
            yield stop
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)


def exit_code(stop: Stop) -> int:
    """128 plus the signal that asked: 130 for Ctrl-C, 143 for SIGTERM."""
    return 128 + int(stop.path.read_text() or signal.SIGINT)
