"""What runs the workers of a sweep: this process, processes of this machine, or a cluster.

An engine starts and ends workers, and tells which have died. What they run, and how it ended, is in
the database, which the sweep reads.
"""

import os
import queue
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass

from mtdlab.errors import TrialError
from mtdlab.store.owner import Owner, is_dead, owner_of
from mtdlab.sweep.fork_server import END_SECONDS, Call, ForkServer, run_trials
from mtdlab.trial.signals import StopRequest
from mtdlab.trial.study import OpenStudy
from mtdlab.trial.worker import CLAIM_SECONDS
from mtdlab.trial.worker import work as run_here


@dataclass(frozen=True)
class Work:
    """What the workers of a sweep run (`worker.work`); `sweep` is its row, `stop` its request."""

    study: OpenStudy
    sweep: int
    stop: StopRequest


@dataclass(frozen=True)
class Death:
    """The end of a worker that its sweep did not ask for: how, for example "signal 9: Killed".

    Its process on this machine and its exit code, negative for a signal, are None where not known.
    """

    how: str
    process: int | None = None
    code: int | None = None


class Engine(ABC):
    """The workers of a sweep.

    Attributes:
        most: how many there are at most; None: those of a cluster, whose number changes.
        notify: called with a sentence for the user.
    """

    most: int | None = 1
    notify: Callable[[str], None] = staticmethod(lambda _text: None)

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
        with ThreadPoolExecutor(1, "supervisor") as thread:
            # with the context of this thread: what follows the phases
            supervised = thread.submit(copy_context().run, supervise)
            supervised.add_done_callback(lambda _: self._calls.put(None))
            while (work := self._calls.get()) is not None:
                try:
                    self._work(work)
                except BaseException as error:
                    # raised again by the supervisor, which ends by it
                    self._error = error
                self._is_busy = False
                self._ended.set()
        supervised.result()

    def _work(self, work: Work) -> None:
        stop = _Stop(work.stop, lambda: self._is_over)
        if not run_here(work.study.job, work.sweep, stop):
            stop.wait(CLAIM_SECONDS)

    @property
    def count(self) -> int:
        return int(self._is_busy)

    def start(self, wanted: int, work: Work) -> None:
        if wanted and not self._is_busy:
            self._is_busy = True
            self._calls.put(work)

    def deaths(self) -> list[Death]:
        """None: the supervisor ends with this process."""
        if self._error is not None:
            raise self._error
        return []

    def stop(self) -> None:
        self._is_over = True

    def close(self) -> None:
        """Nothing is held."""

    def wait(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            self._ended.clear()


class _Stop(StopRequest):
    """The request of a sweep, which also ends its worker for other reasons."""

    def __init__(self, sweep: StopRequest, is_over: Callable[[], bool]) -> None:
        super().__init__()
        self._sweep, self._is_over = sweep, is_over

    def request(self, number: int = 2) -> None:
        self._sweep.request(number)

    def requested(self) -> bool:
        return self._is_over() or self._sweep.requested()


MOST_FAILED_STARTS = 3
"""A sweep ends after so many workers, or servers of them, in succession that end as they start."""


class Processes(Engine):
    """Worker processes, forks of a server that imports their modules."""

    def __init__(self, most: int, threads: int, modules: Sequence[str]) -> None:
        """Start the server of at most so many processes, with `threads` threads each."""
        self.most = most
        self._servers = [ForkServer(threads, modules)]
        self._running = dict[int, Owner]()
        # whose server was killed, so that nobody tells how they end
        self._orphans = dict[int, Owner]()

    @property
    def count(self) -> int:
        return len(self._running) + len(self._orphans)

    def start(self, wanted: int, work: Work) -> None:
        """Start processes until there are `wanted`, which share the cores where none runs yet."""
        # it imports torch
        from mtdlab.trial.slots import threads_each

        if not self.count and self._servers[-1].threads != threads_each(wanted):
            self._servers.append(ForkServer(threads_each(wanted), self._servers[-1].modules))
            self._servers.pop(-2).close()
        while self.count < wanted:
            process = self._fork((run_trials, (work.study.job, work.sweep)))
            self._running[process] = owner_of(process)

    def _fork(self, call: Call) -> int:
        for _ in range(MOST_FAILED_STARTS):
            with suppress(EOFError, OSError):
                return self._servers[-1].fork(call)
            self._replace_server()
        raise TrialError("the process that starts the workers ends while it imports its modules")

    def _replace_server(self) -> None:
        """Start another server for one that was killed; the workers that it has started go on."""
        self._orphans |= self._running
        self._running.clear()
        killed = self._servers[-1]
        # open until the end, since workers end with the pipe of their server
        self._servers.append(ForkServer(killed.threads, killed.modules))

    def deaths(self) -> list[Death]:
        """The processes that have ended since the last call, also those that were asked to."""
        found = []
        try:
            for process, code in self._servers[-1].ended():
                self._running.pop(process, None)
                how = f"exit code {code}"
                if code < 0:
                    how = f"signal {-code}: {signal.strsignal(-code)}"
                found.append(Death(how, process, code))
        except (EOFError, OSError):
            self._replace_server()
        for process in [orphan for orphan, owner in self._orphans.items() if is_dead(owner, 0.0)]:
            del self._orphans[process]
            how = "exit code unknown: the process that started it was killed"
            found.append(Death(how, process))
        return found

    def stop(self) -> None:
        for process in (*self._running, *self._orphans):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def close(self) -> None:
        self.stop()
        while self.count:
            self.deaths()
            time.sleep(END_SECONDS)
        for server in self._servers:
            server.close()
