"""A sweep as a fork of this process, which has imported everything: it starts within milliseconds.

For tests that start hundreds of sweeps; those of `stub_sweep` start as a user's do.
"""

import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from mtdlab.__main__ import main

# what a sweep imports; imported before the first fork
from mtdlab.commands import sweep as _sweep
from mtdlab.sweep import run as _run
from mtdlab.sweep import worker as _worker

IMPORTED = (_sweep, _run, _worker)


class ForkedSweep:
    """A process that runs a command of mtdlab, in a process group of its own.

    It has the part of `subprocess.Popen`'s interface that the tests use.
    """

    def __init__(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self.returncode: int | None = None
        self._files = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(words, folder, environment)
        os.setpgid(self.pid, self.pid)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end; what was printed. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + (timeout or 3600)
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("sweep", timeout or 3600)
            time.sleep(0.005)
        for file in self._files:
            file.seek(0)
        output, error = (file.read() for file in self._files)
        return output, error

    def _run(self, words: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """In the child: run the command and end, without returning to the test."""
        code = 1
        try:
            os.setpgid(0, 0)
            os.chdir(folder)
            os.environ.update(environment)
            tempfile.tempdir = None
            for number, file in enumerate(self._files, start=1):
                os.dup2(file.fileno(), number)
            sys.stdout, sys.stderr = (open(number, "w", buffering=1) for number in (1, 2))  # noqa: SIM115, PTH123
            sys.argv = ["mtdlab", *words]
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
