"""Commands of mtdlab as forks of a process that has imported everything: they start at once.

That process, the server, is itself forked by each process of pytest before its first test, when the
tests have been imported and with them what sweeps need. It reads requests, lines of JSON, from a
socket, and answers each by a line. It has one thread and nothing of a test, so that what it forks
is like a new process. The server of a sweep's workers is such a fork too.
"""

import faulthandler
import fcntl
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import IO, Any, Self

IMPORTED = (
    *("mtdlab.commands.sweep", "mtdlab.sweep.run", "mtdlab.trial.worker", "mtdlab.trial.trainer"),
    *("mtdlab.training.loop", "mtdlab.analysis.data.frames", "alembic.command"),
)


class ForkedCommand:
    """A process that runs a command of mtdlab, in a process group of its own.

    It has the part of `subprocess.Popen`'s interface that the tests use. With `merged`, what it
    prints on standard error is in its standard output. `constants` replaces values of modules, such
    as an interval, by their full names; the command's workers have them too. With `code`, that is
    executed in place of the command, whose words it has in `sys.argv`.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        *,
        merged: bool = False,
        constants: Mapping[str, float] = MappingProxyType({}),
        code: str = "",
    ) -> None:
        self.args = ["mtdlab", *words]
        self.returncode: int | None = None
        self._printed: tuple[str, str] | None = None
        self._output = [_empty_file()] if merged else [_empty_file(), _empty_file()]
        files = [str(self._output[0]), str(self._output[-1])]
        request: dict[str, Any] = {"words": self.args, "folder": str(folder), "files": files}
        request |= {"constants": dict(constants), "code": code}
        self.pid: int = _ask(request | {"environment": {**os.environ, **environment}})

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while the process runs."""
        if self.returncode is None:
            self.returncode = _ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float = 3600) -> int:
        """Wait for the end; the exit code. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(0.005)
        return code

    def communicate(self, timeout: float = 3600) -> tuple[str, str]:
        """Wait for the end; what was printed. Raises subprocess.TimeoutExpired."""
        self.wait(timeout)
        if self._printed is None:
            texts = [path.read_text(encoding="utf-8") for path in self._output]
            self._printed = texts[0], "".join(texts[1:])
            for path in self._output:
                path.unlink()
        return self._printed

    def printed(self) -> str:
        """What it has printed on standard output so far."""
        return self._output[0].read_text(encoding="utf-8")

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self.send_signal(signal.SIGKILL)


def _empty_file() -> Path:
    descriptor, name = tempfile.mkstemp(prefix="mtdlab-printed-")
    os.close(descriptor)
    return Path(name)


_requests: IO[str]
"""Requests to the server and its answers."""


@contextmanager
def serving() -> Iterator[None]:
    """Commands can be forked in the block."""
    global _requests
    ours, theirs = socket.socketpair()
    if (server := os.fork()) == 0:
        with _ending():
            _become_new(theirs.fileno())
            _serve(theirs.makefile("rw"))
    theirs.close()
    with ours, ours.makefile("rw") as _requests:
        yield
    os.waitpid(server, 0)


def _ask(request: Mapping[str, Any]) -> Any:
    _requests.write(json.dumps(request) + "\n")
    _requests.flush()
    return json.loads(_requests.readline())


def _become_new(kept: int) -> None:
    """In the server: undo what pytest has changed, and hold none of its files but standard error.

    They are replaced and not closed: their owners close them by number.
    """
    unused = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in (2, kept):
            with suppress(OSError):
                os.dup2(unused, int(name), inheritable=False)
    sys.unraisablehook = sys.__unraisablehook__
    threading.excepthook = threading.__excepthook__
    faulthandler.disable()


def _serve(requests: IO[str]) -> None:
    """In the server: start commands, and tell how they have ended."""
    for name in IMPORTED:
        import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        _record_a_trial(f"sqlite:///{folder}/a.db")
    gc.freeze()
    for line in requests:
        request = json.loads(line)
        if "poll" in request:
            pid, status = os.waitpid(request["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if pid else None
        else:
            answer = os.fork()
            if answer == 0:
                _run(request)
            os.setpgid(answer, answer)
        requests.write(json.dumps(answer) + "\n")
        requests.flush()


def _record_a_trial(url: str) -> None:
    """In the server: compile the statements that the commands share."""
    from stub_store import end_trial, new_store

    from mtdlab.config.study import PlannedTrial
    from mtdlab.store.claims import Result
    from mtdlab.store.database import create_tables
    from mtdlab.store.frames import load_frames
    from mtdlab.store.progress import list_studies

    store = new_store(url, PlannedTrial("x", 0, {"rate": 1.0}))
    create_tables(url)
    end_trial(store, Result("COMPLETE", values={"score": 1.0}, scores={"sts_test": 1.0}))
    for study in list_studies(url):
        load_frames(study.name, url)


@contextmanager
def _ending() -> Iterator[None]:
    """End this process after the block, with the exit code that it asks for."""
    code = 0
    try:
        yield
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        code = 1
        traceback.print_exc()
    finally:
        # as at the end of an interpreter
        threading._shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(request: Mapping[str, Any]) -> None:
    """In the command's process: run it and end."""
    from mtdlab.__main__ import main

    with _ending():
        os.setpgid(0, 0)
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        for number, name in enumerate(["/dev/null", *request["files"]]):
            os.dup2(os.open(name, os.O_RDWR | os.O_APPEND), number)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, buffering=1)  # noqa: SIM115, PTH123
            for number, mode in enumerate("rww")
        )
        sys.argv = request["words"]
        for name, value in request["constants"].items():
            module, _, constant = name.rpartition(".")
            setattr(import_module(module), constant, value)
        _prepare_interpreter()
        if request["code"]:
            exec(request["code"], {})
        else:
            main()


def _prepare_interpreter() -> None:
    """Let the first server of workers be a fork of this process, as it is before the command."""
    from mtdlab.sweep import fork_server

    first = [_Interpreter()]

    def popen(command: Sequence[str], **options: Any) -> Any:
        if not first:
            return subprocess.Popen(command, **options)
        return first.pop().execute(command[-1], options["env"], options["pass_fds"])

    replaced = SimpleNamespace(Popen=popen, DEVNULL=subprocess.DEVNULL)
    vars(fork_server)["subprocess"] = replaced


class _Interpreter:
    """A fork that waits for the code which a new interpreter would execute."""

    def __init__(self) -> None:
        from mtdlab.trial.signals import signals_blocked

        self._request, received = socket.socketpair()
        with received, signals_blocked():
            self.pid = os.fork()
            if self.pid == 0:
                self._request.close()
                _execute(received)

    def execute(self, code: str, environment: Mapping[str, str], files: Sequence[int]) -> Self:
        """Execute code with open files under the same numbers."""
        request = {"code": code, "environment": dict(environment), "files": list(files)}
        with self._request:
            socket.send_fds(self._request, [json.dumps(request).encode()], list(files))
        return self

    def wait(self) -> None:
        """Wait for the end of the process."""
        os.waitpid(self.pid, 0)


def _execute(received: socket.socket) -> None:
    """In the fork: execute what is received, nothing if the command ends before."""
    with _ending():
        first, opened, _, _ = socket.recv_fds(received, 65536, 2)
        text = first + b"".join(iter(lambda: received.recv(65536), b""))
        received.close()
        if text:
            request = json.loads(text)
            # numbers that nothing here has, before they are those of the command
            moved = [fcntl.fcntl(number, fcntl.F_DUPFD, 200) for number in opened]
            for source, number in zip(moved, request["files"], strict=True):
                os.dup2(source, number)
            for number in moved:
                os.close(number)
            os.environ.update(request["environment"])
            exec(request["code"], {})
