"""Worker processes of this machine: started, replaced if they die, and ended with their sweep."""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from mtdlab.errors import TrialError
from mtdlab.store.owner import Owner, is_dead, owner_of
from mtdlab.sweep.engine import Death, Engine, Work
from mtdlab.sweep.fork_server import END_SECONDS, Call, ForkServer
from mtdlab.sweep.worker_process import run_trials

MOST_FAILED_SERVERS = 3
"""A sweep ends after so many servers in succession that ended before they could fork."""


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
        """How many processes have not ended."""
        return len(self._running) + len(self._orphans)

    def start(self, wanted: int, work: Work) -> None:
        """Start processes until there are `wanted`, which share the cores where none runs yet."""
        # imports torch
        from mtdlab.trial.slots import threads_each

        if not self.count and self._servers[-1].threads != threads_each(wanted):
            self._servers.append(ForkServer(threads_each(wanted), self._servers[-1].modules))
            self._servers.pop(-2).close()
        while self.count < wanted:
            process = self._fork((run_trials, (work.study.job, work.sweep)))
            self._running[process] = owner_of(process)

    def _fork(self, call: Call) -> int:
        for _ in range(MOST_FAILED_SERVERS):
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
                found.append(Death(_describe(code), process, code))
        except (EOFError, OSError):
            self._replace_server()
        for process in [each for each, owner in self._orphans.items() if is_dead(owner, 0.0)]:
            del self._orphans[process]
            how = "exit code unknown: the process that started it was killed"
            found.append(Death(how, process))
        return found

    def stop(self) -> None:
        """Send every process a signal; it ends after the step of its trial."""
        for process in (*self._running, *self._orphans):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    def close(self) -> None:
        """End the processes and their servers."""
        self.stop()
        while self.count:
            self.deaths()
            time.sleep(END_SECONDS)
        for server in self._servers:
            server.close()


def _describe(code: int) -> str:
    if code < 0:
        return f"signal {-code}: {signal.strsignal(-code)}"
    return f"exit code {code}"
