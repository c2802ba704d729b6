"""The process of a worker: it runs calls for the sweep that started it, one after another.

The signals are blocked in all of its threads from the start (`signals_blocked`), also while it
imports its modules, and in the processes that it starts. A signal that it receives is sent to the
sweep, which then stops every worker. If the sweep ends, its workers end too.

Workers are forks of one process that has imported torch and transformers (`fork_server`).
"""

import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from mtdlab.errors import MtdlabError, one_line
from mtdlab.files import remove_unfinished
from mtdlab.sweep.signals import StopRequest, handled_signals
from mtdlab.terminal import following_phases
from mtdlab.user_code import limit_threads

ORPHAN_SECONDS = 10.0
"""Time for a worker whose sweep has ended to save a checkpoint; then it ends at once."""

Call = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function and its arguments, to which the worker adds its `StopRequest`."""


class WorkerStop(StopRequest):
    """Requested as soon as the sweep has sent something, or has ended.

    It sends nothing during a call but the request to end.
    """

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        super().__init__()
        self._connection = connection

    def requested(self) -> bool:
        """Whether to stop after the current step."""
        return super().requested() or self._connection.poll()


class Channel:
    """The connection to the sweep; two threads send on it."""

    def __init__(self, connection: "Connection[Any, Any]") -> None:
        self.connection = connection
        self._lock = threading.Lock()

    def send(self, message: object) -> None:
        """Send a message; without effect if the sweep has ended."""
        with self._lock, suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)


def main(descriptor: int, alive: int) -> None:
    """Run calls that arrive on a socket.

    The sweep alone holds the other end of the pipe `alive`, which is closed when the sweep ends.
    """
    channel = Channel(Connection(descriptor))
    threading.Thread(target=_send_signals, args=(channel,), daemon=True).start()
    threading.Thread(target=_end_with_sweep, args=(alive,), daemon=True).start()
    exit_code = 0
    try:
        _serve(channel)
    except (EOFError, ConnectionResetError):
        exit_code = 1
    limit_threads(exit_code)
    sys.exit(exit_code)


def _serve(channel: Channel) -> None:
    """Run the call that is received first, each time that True follows, until None does."""
    stop = WorkerStop(channel.connection)
    try:
        function, arguments = channel.connection.recv()
    except (ImportError, AttributeError) as error:
        channel.send(sendable(error))
        return
    with following_phases(channel.send):
        while channel.connection.recv():
            try:
                result = function(*arguments, stop)
            except KeyboardInterrupt:
                # raised by code of the user, since signals are blocked: as Ctrl-C at the sweep
                result = signal.SIGINT
            except Exception as error:
                result = sendable(error)
            channel.send(result)


def sendable(error: Exception) -> Exception:
    """The error, with the traceback of this process unless it is a user's mistake."""
    if isinstance(error, MtdlabError):
        return error
    sent = RuntimeError(one_line(error))
    sent.add_note("".join(traceback.format_exception(error)))
    return sent


def _send_signals(channel: Channel) -> None:
    while True:
        channel.send(signal.Signals(signal.sigwait(handled_signals())))


def _end_with_sweep(alive: int) -> None:
    until_closed = select.poll()
    until_closed.register(alive, 0)
    until_closed.poll()
    time.sleep(ORPHAN_SECONDS)
    remove_unfinished()
    os._exit(1)
