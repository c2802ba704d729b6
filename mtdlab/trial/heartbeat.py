"""The heartbeats of a claimed trial and of a sweep, recorded in threads.

They go on while texts are loaded or scored.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from mtdlab.errors import StorageError
from mtdlab.store.claims import Claim
from mtdlab.store.owner import HEARTBEAT_SECONDS, this_process
from mtdlab.store.restarts import without_waiting
from mtdlab.store.store import Store
from mtdlab.trial.signals import StopRequest

SWEEP_SECONDS = 10.0
"""Between two heartbeats of a sweep, with which it reads whether to stop."""


class ClaimLost(Exception):
    """This process does not own the trial, which it may neither report nor record.

    Another worker claimed it while this process was suspended, or it was deleted, or this process
    is a fork of the one that claimed it.
    """


class Heartbeat(ExitStack):
    """Records the heartbeat of a trial with its last step, every `HEARTBEAT_SECONDS`.

    Attributes:
        step: to be recorded next.
        phase: what the process does at this step; empty while the recorded phase holds.
    """

    def __init__(self, store: Store, claim: Claim) -> None:
        super().__init__()
        self.step, self.phase = 0, ""
        self._store, self._claim = store, claim
        self._lost = False
        self._process = os.getpid()

    def __enter__(self) -> Self:
        self.enter_context(call_repeatedly(HEARTBEAT_SECONDS, self.beat))
        return self

    def beat(self) -> None:
        """Record a heartbeat now. A database that fails is tried again at the next one.

        A server that does not answer is not waited for, since a checkpoint may have to be saved
        before this process is killed.
        """
        with suppress(StorageError), without_waiting():
            if not self._is_lost():
                self._lost = not self._store.heartbeat(self._claim, self.step, self.phase)

    def begin_phase(self, phase: str) -> None:
        """Record at once that a phase begins, such as "scoring the untrained encoder"."""
        self.phase = phase
        self.beat()

    def check(self) -> None:
        """Raise ClaimLost if this process does not own the trial, as far as a heartbeat found."""
        if self._is_lost():
            raise ClaimLost("only the process that claimed a trial may report and record it")

    def _is_lost(self) -> bool:
        return self._lost or os.getpid() != self._process


@contextmanager
def recorded_sweep(store: Store, stop: StopRequest, max_failed: int | None = None) -> Iterator[int]:
    """Record in the database that this process runs a sweep of a study, until the block ends.

    Yields the row of the record. A stop that is requested there is one of `stop`, as by SIGTERM.
    Raises as `Store.begin_sweep`, which `max_failed` is for.
    """
    row = store.begin_sweep(this_process(), max_failed)

    def beat() -> None:
        if store.continue_sweep(row):
            stop.request(signal.SIGTERM)

    try:
        with call_repeatedly(SWEEP_SECONDS, beat):
            yield row
    finally:
        # a row that stays is found to be that of a dead process
        with suppress(StorageError):
            store.end_sweep(row)


@contextmanager
def call_repeatedly(seconds: float, function: Callable[[], None]) -> Iterator[None]:
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
