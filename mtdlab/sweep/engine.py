"""What runs the workers of a sweep: this process, processes of this machine, or a cluster.

An engine starts and ends workers, and tells which have died. What they run, and how it ended, is in
the database, which the sweep reads.
"""

import queue
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass

from mtdlab.trial.signals import StopRequest
from mtdlab.trial.study import OpenStudy


@dataclass(frozen=True)
class Work:
    """What the workers of a sweep run (`worker.work`); `sweep` is its row, `stop` its request."""

    study: OpenStudy
    sweep: int
    stop: StopRequest


@dataclass(frozen=True)
class Death:
    """The end of a worker that its sweep did not ask for.

    Attributes:
        how: for example "signal 9: Killed".
        process: its id on this machine; None where it is not known.
        code: its exit code, negative for a signal; None where it is not known.
    """

    how: str
    process: int | None = None
    code: int | None = None


def _ignore(_text: str) -> None:
    pass


class Engine(ABC):
    """The workers of a sweep.

    Attributes:
        most: how many there are at most; None: those of a cluster, whose number changes.
        notify: called with a sentence for the user.
    """

    most: int | None = 1
    notify: Callable[[str], None] = staticmethod(_ignore)

    dying = "the worker processes end while they start"
    """The beginning of the error of a sweep whose workers die one after another."""
    names_processes = True
    """Whether it tells the process of each death, so that nobody else looks for its trial."""

    def lead(self, supervise: Callable[[], None]) -> None:
        """Call the supervisor, which calls the methods below."""
        supervise()

    @property
    @abstractmethod
    def count(self) -> int:
        """How many workers have not ended."""

    @abstractmethod
    def start(self, wanted: int, work: Work) -> None:
        """Start workers until there are `wanted`, or as many as there can be."""

    @abstractmethod
    def deaths(self) -> list[Death]:
        """The deaths since the last call. Raises what ended a worker in this process."""

    @abstractmethod
    def stop(self) -> None:
        """Request that all workers end after the step of their trials."""

    @abstractmethod
    def close(self) -> None:
        """Release what the engine holds; its workers end at the latest by that."""

    def wait(self, seconds: float) -> None:
        """Wait so long, or until a worker of this process has ended."""
        time.sleep(seconds)


class ThisProcess(Engine):
    """One worker, which has the main thread; the supervisor has another one."""

    def __init__(self) -> None:
        self._calls = queue.SimpleQueue[Work | None]()
        self._ended, self._is_busy, self._is_over = threading.Event(), False, False
        self._error: BaseException | None = None

    def lead(self, supervise: Callable[[], None]) -> None:
        """Call the supervisor in a thread, and work in this one until it has ended."""
        errors = list[BaseException]()

        def call() -> None:
            try:
                supervise()
            except BaseException as error:
                errors.append(error)
            self._calls.put(None)

        # with the context of this thread: what follows the phases
        thread = threading.Thread(target=copy_context().run, args=(call,), name="supervisor")
        thread.start()
        while (work := self._calls.get()) is not None:
            try:
                self._work(work)
            except BaseException as error:
                # raised again by the supervisor, which ends by it
                self._error = error
            self._is_busy = False
            self._ended.set()
        thread.join()
        if errors:
            raise errors[0]

    def _work(self, work: Work) -> None:
        # torch takes seconds to import, and a complete study does not need it
        from mtdlab.trial.worker import CLAIM_SECONDS
        from mtdlab.trial.worker import work as run_trials

        stop = _Stop(work.stop, lambda: self._is_over)
        if not run_trials(work.study.job, work.sweep, stop):
            stop.wait(CLAIM_SECONDS)

    @property
    def count(self) -> int:
        """Whether this process works."""
        return int(self._is_busy)

    def start(self, wanted: int, work: Work) -> None:
        """Let the main thread work, if it does not."""
        if wanted and not self._is_busy:
            self._is_busy = True
            self._calls.put(work)

    def deaths(self) -> list[Death]:
        """None: the supervisor ends with this process."""
        if self._error is not None:
            raise self._error
        return []

    def stop(self) -> None:
        """Request that the main thread ends its work."""
        self._is_over = True

    def close(self) -> None:
        """Nothing is held."""

    def wait(self, seconds: float) -> None:
        """Wait so long, or until the work has ended."""
        if self._ended.wait(seconds):
            self._ended.clear()


class _Stop(StopRequest):
    """The request of a sweep, which also ends its worker for other reasons."""

    def __init__(self, sweep: StopRequest, is_over: Callable[[], bool]) -> None:
        super().__init__()
        self._sweep, self._is_over = sweep, is_over

    def request(self, number: int = 2) -> None:
        """Request the stop of the sweep."""
        self._sweep.request(number)

    def requested(self) -> bool:
        """Whether the sweep stops, or is over."""
        return self._is_over() or self._sweep.requested()
