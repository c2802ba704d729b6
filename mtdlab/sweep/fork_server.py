"""The process that worker processes are forks of: it imports torch and transformers once for all.

Importing them takes seconds, a fork milliseconds. The process runs no thread and no computation, so
that it can be forked safely, and does not touch a GPU. It forks when it is requested to, waits for
the processes that it has forked, and ends with the sweep.
"""

import gc
import os
import select
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle
from typing import Any

from mtdlab.sweep import worker_process
from mtdlab.sweep.signals import signals_blocked

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_COMMAND = (
    "import sys; sys.path[:] = {path!r}; "
    "from mtdlab.sweep.fork_server import main; main({control}, {alive}, {modules!r})"
)


@dataclass(frozen=True)
class Fork:
    """A worker process that a server has started; the server waits for it."""

    pid: int
    control: "Connection[Any, Any]"

    def wait(self) -> int | None:
        """Wait for its end; its exit code, negative for a signal.

        None where it is not known, since the server has ended.
        """
        try:
            self.control.send(self.pid)
            code: int = self.control.recv()
        except (EOFError, OSError):
            return None
        return code


class ForkServer:
    """Started at once, with the working folder, environment and import path of this process.

    Its forks have `threads` threads each, and `modules` imported.
    """

    def __init__(self, threads: int, modules: Sequence[str]) -> None:
        self.threads, self.modules = threads, modules
        self._control, control = Pipe()
        alive, self._alive = os.pipe()
        command = _COMMAND.format(
            path=sys.path, control=control.fileno(), alive=alive, modules=tuple(modules)
        )
        environment = dict.fromkeys(THREAD_VARIABLES, str(threads))
        # without it transformers initialises CUDA when it is imported, after which no fork can
        environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        with control, signals_blocked():
            self._process = subprocess.Popen(
                [sys.executable, "-c", command],
                stdin=subprocess.DEVNULL,
                env=os.environ | environment,
                pass_fds=[control.fileno(), alive],
            )
        os.close(alive)

    def fork(self, socket: int) -> Fork:
        """Fork a worker that receives its calls on a socket.

        Waits until the modules are imported. Raises EOFError or OSError if the server has ended.
        """
        self._control.send(None)
        send_handle(self._control, socket, self._process.pid)
        return Fork(self._control.recv(), self._control)

    def close(self) -> None:
        """End the process; its forks end too, if they still run. A second call does nothing."""
        if self._control.closed:
            return
        self._control.close()
        os.close(self._alive)
        self._process.wait()


def main(control: int, alive: int, modules: Sequence[str]) -> None:
    """In the server: import, then fork and wait as requested. In a fork: a worker process."""
    os.set_inheritable(control, False)
    os.set_inheritable(alive, False)
    requests, sweep = Connection(control), select.poll()
    sweep.register(alive, 0)
    for module in modules:
        # it has ended
        if sweep.poll(0):
            return
        # a worker that needs it reports what is wrong
        with suppress(Exception):
            import_module(module)
    # what is imported stays in pages that all forks share
    gc.freeze()
    if (socket := _serve(requests)) is not None:
        worker_process.main(socket, alive)


def _serve(requests: "Connection[Any, Any]") -> int | None:
    """Answer requests until the sweep ends; in a fork its socket."""
    with requests:
        while True:
            try:
                request = requests.recv()
            except (EOFError, ConnectionResetError):
                return None
            if request is not None:
                requests.send(os.waitstatus_to_exitcode(os.waitpid(request, 0)[1]))
                continue
            socket = recv_handle(requests)
            os.set_inheritable(socket, False)
            if (pid := os.fork()) == 0:
                return socket
            os.close(socket)
            requests.send(pid)
