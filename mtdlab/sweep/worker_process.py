"""The process of a worker: it runs trials of its sweep until that stops it, or has ended.

The signals are blocked in all of its threads from the start (`signals_blocked`), also while it
imports its modules, and in the processes that it starts. The first one stops it after the step of
its trial, with the exit code of that signal: by it the sweep learns of one that came from
elsewhere, and stops every worker. If the sweep ends, its workers end too.

Workers are forks of one process that has imported torch and transformers (`fork_server`).
"""

import os
import select
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from mtdlab.errors import MtdlabError, one_line
from mtdlab.files import remove_unfinished
from mtdlab.trial.signals import StopRequest, handled_signals
from mtdlab.user_code import limit_threads

ORPHAN_SECONDS = 10.0
"""Time for a worker whose sweep has ended to save a checkpoint; then it ends at once."""


def main(call: bytes, result: int | None, alive: int) -> None:
    """Make a call and end with the exit code that it returns, or send what it returns to a pipe.

    The sweep alone holds the other end of the pipe `alive`, which is closed when the sweep ends.
    """
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
    """The error, with the traceback of this process unless it is a user's mistake."""
    if isinstance(error, MtdlabError):
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
