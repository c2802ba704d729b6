"""The process that worker processes are forks of, and what a fork does.

It imports torch and transformers once for all: importing them takes seconds, a fork milliseconds.
It runs no thread and no computation, so that it can be forked safely, and does not touch a GPU. It
forks when it is requested to, tells which of its forks have ended, and ends with the sweep.

In a worker the signals are blocked in all of its threads from the start (`signals_blocked`), also
while it imports its modules, and in the processes that it starts. The first one stops it after the
step of its trial, with the exit code of that signal: by it the sweep learns of one that came from
elsewhere, and stops every worker. If the sweep ends, its workers end too.
"""

import gc
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler, recv_handle, send_handle
from typing import Any

from mtdlab.errors import MtdlabError, TrialError, one_line
from mtdlab.files import remove_unfinished
from mtdlab.trial.signals import StopRequest, handled_signals, signals_blocked
from mtdlab.user_code import limit_threads

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
Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments, to which the fork adds its `StopRequest`."""
END_SECONDS = 0.02
"""Between two questions whether a process has ended."""
Ended = tuple[int, int]
"""The id of a process, and its exit code, negative for a signal."""


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

    def fork(self, call: Call, result: int | None = None) -> int:
        """Fork a process that makes a call; its id. What the function returns is its exit code.

        With `result`, the end of a pipe, what it returns or raises is sent there. Waits until the
        modules are imported. Raises EOFError or OSError if the server has ended.
        """
        self._control.send((bytes(ForkingPickler.dumps(call)), result is not None))
        if result is not None:
            send_handle(self._control, result, self._process.pid)
        pid: int = self._control.recv()
        return pid

    def ended(self) -> list[Ended]:
        """The processes that have ended since the last call. Raises as `fork`."""
        self._control.send(None)
        ended: list[Ended] = self._control.recv()
        return ended

    def close(self) -> None:
        """End the process; its forks end too, if they still run. A second call does nothing."""
        if self._control.closed:
            return
        self._control.close()
        os.close(self._alive)
        self._process.wait()


def call_in_forks(server: ForkServer, call: Call, count: int) -> list[Any]:
    """What a function returns in so many forks. Raises its error, and TrialError if one dies."""
    forks, returned = dict[int, "Connection[Any, Any]"](), list[Any]()
    try:
        for _ in range(count):
            ours, theirs = Pipe(duplex=False)
            with theirs:
                forks[server.fork(call, theirs.fileno())] = ours
        for pipe in forks.values():
            returned.append(pipe.recv())
            if isinstance(returned[-1], Exception):
                raise returned[-1]
    except EOFError:
        raise TrialError("a process that was called has died") from None
    finally:
        for process, pipe in forks.items():
            pipe.close()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        with suppress(EOFError, OSError):
            while forks:
                for process, _ in server.ended():
                    forks.pop(process)
                time.sleep(END_SECONDS)
    return returned


def main(control: int, alive: int, modules: Sequence[str]) -> None:
    """In the server: import, then fork as requested. In a fork: make the call, and end."""
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
    if (fork := _serve(requests)) is not None:
        _call_in_fork(*fork, alive)


def _serve(requests: "Connection[Any, Any]") -> tuple[bytes, int | None] | None:
    """Answer requests until the sweep ends; in a fork the call, and where its result is sent."""
    with requests:
        while True:
            try:
                request = requests.recv()
            except (EOFError, ConnectionResetError):
                return None
            if request is None:
                requests.send(_ended())
                continue
            call, has_result = request
            result = recv_handle(requests) if has_result else None
            if (pid := os.fork()) == 0:
                return call, result
            if result is not None:
                os.close(result)
            requests.send(pid)


def _ended() -> list[Ended]:
    ended = []
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended.append((found[0], os.waitstatus_to_exitcode(found[1])))
    return ended


ORPHAN_SECONDS = 10.0
"""Time for a worker whose sweep has ended to save a checkpoint; then it ends at once."""


def _call_in_fork(call: bytes, result: int | None, alive: int) -> None:
    """Make a call and end with the exit code that it returns, or send what it returns to a pipe."""
    stop = StopRequest()
    threading.Thread(target=_receive_signals, args=(stop,), daemon=True).start()
    threading.Thread(target=_end_with_sweep, args=(alive, stop), daemon=True).start()
    function, arguments = ForkingPickler.loads(call)
    if result is None:
        code = function(*arguments, stop)
    else:
        code = 0
        with Connection(result, readable=False) as pipe, suppress(BrokenPipeError):
            try:
                pipe.send(function(*arguments, stop))
            except Exception as error:
                pipe.send(_sendable(error))
    limit_threads(code)
    sys.exit(code)


def run_trials(job: Any, sweep: int, stop: StopRequest) -> int:
    """Run trials of a sweep (`worker.work`) until a stop is requested; the exit code.

    The process stays when no trial waits: a look, or the death of another worker, may add one, and
    its inputs are loaded. An error is recorded with the sweep's row.
    """
    # imports the packages of the study's objective, which calls of other functions do without
    from mtdlab.trial.worker import CLAIM_SECONDS, report_error, work

    try:
        while not stop.requested():
            work(job, sweep, stop)
            stop.wait(CLAIM_SECONDS)
    except KeyboardInterrupt:
        # raised by code of the user, since signals are blocked: as Ctrl-C at the sweep
        stop.request(signal.SIGINT)
    except Exception as error:
        return report_error(job.url, sweep, error)
    return stop.exit_code


def _sendable(error: Exception) -> Exception:
    """The error, with the traceback of this process unless it is of a known kind."""
    if isinstance(error, MtdlabError | TrialError):
        return error
    sent = RuntimeError(one_line(error))
    sent.add_note("".join(traceback.format_exception(error)))
    return sent


def _receive_signals(stop: StopRequest) -> None:
    while True:
        stop.request(signal.sigwait(handled_signals()))


def _end_with_sweep(alive: int, stop: StopRequest) -> None:
    until_closed = select.poll()
    until_closed.register(alive, 0)
    until_closed.poll()
    stop.request()
    time.sleep(ORPHAN_SECONDS)
    remove_unfinished()
    os._exit(1)
