"""What the worker processes of tests run in place of trials; it imports nothing large.

A worker is given a folder in place of its study, and a number in place of its sweep.
"""

import os
import signal
import time
from pathlib import Path

from mtdlab.trial.signals import StopRequest

THREADS = "OMP_NUM_THREADS"


def wait_for_stop(folder: Path, _sweep: int, stop: StopRequest) -> int:
    """Wait for the request to stop; leaves files that say where the process runs, and its end."""
    text = f"{Path.cwd()} {os.environ[THREADS]} {os.getppid()}"
    began = folder / f"began-{os.getpid()}"
    began.with_suffix(".new").write_text(text)
    began.with_suffix(".new").replace(began)
    while not stop.requested():
        time.sleep(0.01)
    (folder / f"stopped-{os.getpid()}").touch()
    return stop.exit_code


def die(folder: Path, number: int, _stop: StopRequest) -> int:
    """End the process by a signal or, with 0, by an exit."""
    (folder / f"died-{os.getpid()}").touch()
    if number == 0:
        os._exit(7)
    os.kill(os.getpid(), number)
    signal.pause()
    return 0


def describe(text: str, _stop: StopRequest) -> str:
    """A text with the id of the process; fails without one, and dies by "die"."""
    if text == "die":
        os._exit(3)
    if not text:
        raise ZeroDivisionError("division by zero")
    return f"{text} {os.getpid()}"
