"""The worker processes of a sweep: started, called, replaced if they die, and ended with it."""

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any

from mtdlab.errors import StorageError, TrialError
from mtdlab.sweep.fork_server import Fork, ForkServer
from mtdlab.sweep.signals import StopRequest
from mtdlab.sweep.worker_process import Call
from mtdlab.terminal import begin_phase

POLL_SECONDS = 0.1
MOST_FAILED_STARTS = 3
"""A sweep ends after so many workers in succession that died before they returned a result."""
OnDeath = Callable[[int, str], bool]
"""Called with the process id of a worker that died and how it ended; whether it had a trial."""


@dataclass
class Worker:
    """A running worker process."""

    process: Fork
    connection: "Connection[Any, Any]"
    busy: bool = False
    ending: bool = False

    def send(self, message: object) -> None:
        """Send a message; one to a process that has ended is lost."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)

    def request_end(self) -> None:
        """Request that the process ends after the step of its trial, once."""
        if not self.ending:
            self.ending = True
            self.send(None)

    def wait(self) -> str:
        """Wait for the end of the process; how it ended, empty if it was requested to."""
        self.connection.close()
        code = self.process.wait()
        if code is None:
            return "exit code unknown: the process that started it was killed"
        if code < 0:
            return f"signal {-code}: {signal.strsignal(-code)}"
        return f"exit code {code}" if code or not self.ending else ""


class Workers:
    """Up to `count` processes that call one function, forks of a server.

    A process is started when there is a call for it, so that one that died is replaced.
    """

    def __init__(
        self,
        count: int,
        threads: int,
        call: Call,
        stop: StopRequest,
        on_death: OnDeath,
        server: ForkServer | None = None,
    ) -> None:
        """The processes have `threads` threads each. The server is ended with them.

        By default it is a new one, which imports nothing.
        """
        self.count = count
        self._call, self._stop, self._on_death = call, stop, on_death
        self._servers = [server or ForkServer(threads, ())]
        self._running: list[Worker] = []
        self._failed_starts = 0

    def close(self) -> None:
        """End all processes: a running trial is stopped after its current step.

        An error at one of them does not keep the others from being ended.
        """
        running, self._running = self._running, []
        with ExitStack() as waiting:
            for server in self._servers:
                waiting.callback(server.close)
            for worker in running:
                waiting.callback(self._wait, worker)
            for worker in running:
                # its process ends when its connection is closed, at the latest
                with suppress(OSError):
                    worker.request_end()

    def _wait(self, worker: Worker) -> None:
        # a database that fails now has failed before, or repeats it at the next start
        if how := worker.wait():
            with suppress(StorageError):
                self._on_death(worker.process.pid, how)

    def run(self, calls: int) -> Iterator[Any]:
        """Make `calls` calls; yields what they return, but None, in the order in which they end.

        Ends early if a stop is requested, after the running calls have ended. Raises the error of
        a call, and TrialError if the workers die while they start.
        """
        while calls or any(worker.busy for worker in self._running):
            if self._stop.requested():
                calls = 0
                for worker in self._running:
                    worker.request_end()
            calls -= self._dispatch(calls)
            open_connections = {worker.connection: worker for worker in self._running}
            for ready in wait(list(open_connections), POLL_SECONDS):
                worker = open_connections[ready]  # type: ignore[index]
                try:
                    message = worker.connection.recv()
                except (EOFError, OSError):
                    calls += self._remove(worker)
                    continue
                if isinstance(message, signal.Signals):
                    self._stop.request(message)
                    continue
                if isinstance(message, str):
                    begin_phase(message)
                    continue
                worker.busy, self._failed_starts = False, 0
                if isinstance(message, Exception):
                    raise message
                if message is not None:
                    yield message

    def _dispatch(self, calls: int) -> int:
        """Make up to `calls` calls in idle or new processes; how many were made."""
        idle = [worker for worker in self._running if not worker.busy]
        new = max(0, min(calls - len(idle), self.count - len(self._running)))
        started = [self._start() for _ in range(new)]
        self._running += started
        for worker in started:
            worker.send(self._call)
        chosen = (idle + started)[:calls]
        for worker in chosen:
            worker.busy = True
            worker.send(True)
        return len(chosen)

    def _start(self) -> Worker:
        for _ in range(MOST_FAILED_STARTS):
            server = self._servers[-1]
            ours, theirs = Pipe()
            with theirs, suppress(EOFError, OSError):
                return Worker(server.fork(theirs.fileno()), ours)
            # it was killed; the workers that it has started go on
            self._servers.append(ForkServer(server.threads, server.modules))
        raise TrialError("the process that starts the workers ends while it imports its modules")

    def _remove(self, worker: Worker) -> int:
        """Remove a worker that has ended; the number of calls to be made again."""
        self._running.remove(worker)
        how = worker.wait()
        had_trial = bool(how) and self._on_death(worker.process.pid, how)
        if not worker.busy or self._stop.requested():
            return 0
        self._failed_starts = 0 if had_trial else self._failed_starts + 1
        if self._failed_starts == MOST_FAILED_STARTS:
            raise TrialError(f"the worker processes end while they start ({how})")
        return 1
