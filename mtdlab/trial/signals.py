"""Stopping a run by signals: the first one requests it, a second one ends the process at once."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType

from mtdlab.files import remove_unfinished

_STOPPING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1")
SIGNALS = tuple(each for each in signal.Signals if each.name in _STOPPING)
"""Windows has the first two."""
SAME_SIGNAL_SECONDS = 0.5
"""Signals that follow the first one within this time are not a second request: `timeout` and
batch systems send the same signal to a process and to its group."""
POLL_SECONDS = 0.05
_Handler = Callable[[int, FrameType | None], None]


class Interrupted(Exception):
    """A stop of the run was requested."""


class StopRequest:
    """Whether a run was requested to stop, and by which signal."""

    def __init__(self) -> None:
        self.number: int | None = None

    def request(self, number: int = signal.SIGINT) -> None:
        """Request the stop; a later request does not change the first one's signal."""
        self.number = number if self.number is None else self.number

    def requested(self) -> bool:
        """Whether to stop after the current step."""
        return self.number is not None

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the stop is requested; a signal could find an event locked."""
        deadline = time.monotonic() + seconds
        while not self.requested() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, POLL_SECONDS))

    @property
    def exit_code(self) -> int:
        """128 plus the number of the signal: 130 for Ctrl-C, 143 for SIGTERM. 0 without one."""
        return 0 if self.number is None else 128 + self.number


def _end(number: int, _frame: FrameType | None) -> None:
    remove_unfinished()
    os._exit(128 + number)


@contextmanager
def _handled(numbers: Iterable[int], handler: _Handler) -> Iterator[None]:
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in previous.items():
            signal.signal(number, former)


def handled_signals() -> tuple[signal.Signals, ...]:
    """The signals that request a stop; not SIGHUP in a process that `nohup` started."""
    ignored = {each for each in SIGNALS if signal.getsignal(each) is signal.SIG_IGN}
    return tuple(each for each in SIGNALS if each.name != "SIGHUP" or each not in ignored)


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn the first signal into a request to stop; a second one ends the process at once.

    A request that another process made (`StopRequest.request`) does not count as the first signal.
    """
    stop = StopRequest()
    first: float | None = None

    def request(number: int, frame: FrameType | None) -> None:
        nonlocal first
        now = time.monotonic()
        first = now if first is None else first
        if now - first > SAME_SIGNAL_SECONDS:
            _end(number, frame)
        stop.request(number)

    with _handled(handled_signals(), request):
        yield stop


def ended_by_signals() -> AbstractContextManager[None]:
    """Let every signal end the process at once in this block, without its temporary folders.

    No trial is running yet. KeyboardInterrupt in an import of torch would abort the process.
    """
    defaults = (signal.default_int_handler, signal.SIG_DFL)
    replaced = [number for number in handled_signals() if signal.getsignal(number) in defaults]
    return _handled(replaced, _end)


@contextmanager
def signals_blocked() -> Iterator[None]:
    """Delay the signals until the block ends; processes started in it have them blocked."""
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


class OutOfTime(KeyboardInterrupt):
    """A block takes too long; what handles errors of any kind lets it pass."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise OutOfTime where a block takes longer; never on Windows, which has no alarm."""
    if not hasattr(signal, "alarm"):
        yield
        return

    def end(*_: object) -> None:
        raise OutOfTime

    with _handled([signal.SIGALRM], end):
        signal.alarm(seconds)
        try:
            yield
        finally:
            signal.alarm(0)
