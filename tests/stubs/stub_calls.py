"""Functions that the workers of `test_workers` call; they import nothing large."""

import os
import signal
import time
from pathlib import Path

from mtdlab.errors import StorageError
from mtdlab.store import FinishedTrial
from mtdlab.sweep.signals import StopRequest
from mtdlab.terminal import begin_phase

THREADS = "OMP_NUM_THREADS"


def trial(number: int, text: str = "") -> FinishedTrial:
    """A trial that ended, with a text to be tested."""
    return FinishedTrial(number, 0, {}, "COMPLETE", text)


def describe_process(_stop: StopRequest) -> FinishedTrial:
    """The process, its working folder and its threads."""
    return trial(os.getpid(), f"{Path.cwd()} {os.environ[THREADS]}")


def begin_loading(_stop: StopRequest) -> FinishedTrial:
    """A trial that begins a phase; its text: the process that this one is a fork of."""
    begin_phase("loading encoder tiny")
    return trial(os.getpid(), str(os.getppid()))


def wait_for_stop(folder: Path, stop: StopRequest) -> FinishedTrial | None:
    """Wait for the request to stop, then leave a file."""
    (folder / f"began-{os.getpid()}").touch()
    while not stop.requested():
        time.sleep(0.01)
    (folder / f"stopped-{os.getpid()}").touch()
    return None


def die_until(folder: Path, deaths: int, number: int, _stop: StopRequest) -> FinishedTrial:
    """End the process in the first `deaths` calls, by signal `number` or, with 0, by an exit."""
    count = len(list(folder.glob("died-*")))
    if count < deaths:
        (folder / f"died-{count}").touch()
        if number == 0:
            os._exit(7)
        os.kill(os.getpid(), number)
        signal.pause()
    return trial(count)


def fail(_stop: StopRequest) -> FinishedTrial:
    """An error of a user."""
    raise StorageError("the database is gone")


def interrupt(_stop: StopRequest) -> FinishedTrial:
    """As code of the user that raises the exception of Ctrl-C."""
    raise KeyboardInterrupt


def break_down(_stop: StopRequest) -> FinishedTrial:
    """An error of the program."""
    raise ZeroDivisionError("division by zero")
