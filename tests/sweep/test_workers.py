"""Worker processes: their folder and threads, their deaths, and signals that reach them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import stub_calls
from stub_sweep import children, wait_for_group

from mtdlab.errors import StorageError, TrialError
from mtdlab.sweep import signals
from mtdlab.sweep.fork_server import THREAD_VARIABLES, ForkServer
from mtdlab.sweep.signals import StopRequest, stop_on_signals
from mtdlab.sweep.worker_process import Call
from mtdlab.sweep.workers import Workers
from mtdlab.terminal import following_phases


@pytest.fixture
def started() -> Callable[[], list[int]]:
    """The servers and workers that the test has started and that run: earlier tests left theirs."""
    before = below(os.getpid())
    return lambda: [process for process in below(os.getpid()) if process not in before]


def below(process: int) -> list[int]:
    """The processes below a process that have not ended."""
    found = children(process)
    return found + [each for child in found for each in below(child)]


class Deaths:
    """Records how workers ended; each of them had a trial."""

    def __init__(self) -> None:
        self.how: list[str] = []

    def __call__(self, _process: int, how: str) -> bool:
        self.how.append(how)
        return True


def workers(call: Call, stop: StopRequest | None = None, count: int = 2) -> tuple[Workers, Deaths]:
    deaths = Deaths()
    return Workers(count, 1, call, stop or StopRequest(), deaths), deaths


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_workers_have_this_sweeps_folder_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Callable[[], list[int]]
) -> None:
    """Relative paths of texts and of the database are looked up in the folder."""
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "7")
    monkeypatch.chdir(tmp_path)
    running, deaths = workers((stub_calls.describe_process, ()))
    with closing(running):
        found = list(running.run(4))
        # two workers and the process that they are forks of
        assert len(started()) == 3
        again = list(running.run(1))
    assert {trial.reason for trial in found} == {f"{tmp_path} 1"}
    assert {trial.number for trial in again} < {trial.number for trial in found}
    assert (started(), deaths.how) == ([], [])


@pytest.mark.parametrize(
    ("number", "how"),
    [(0, "exit code 7"), (signal.SIGKILL, "signal 9: Killed"), (signal.SIGSEGV, "signal 11: ")],
)
def test_a_worker_that_dies_is_replaced(tmp_path: Path, number: int, how: str) -> None:
    running, deaths = workers((stub_calls.die_until, (tmp_path, 2, number)), count=1)
    with closing(running):
        assert [trial.number for trial in running.run(3)] == [2, 2, 2]
    assert len(deaths.how) == 2
    assert all(each.startswith(how) for each in deaths.how)


def test_phases_of_a_worker_are_those_of_its_sweep() -> None:
    begun: list[str] = []
    running, _ = workers((stub_calls.begin_loading, ()), count=1)
    with following_phases(begun.append), closing(running):
        assert len(list(running.run(2))) == 2
    assert begun == ["loading encoder tiny"] * 2


def test_a_server_that_is_killed_is_replaced(started: Callable[[], list[int]]) -> None:
    """Its workers go on; how one of them ends is not known then."""
    running, deaths = workers((stub_calls.begin_loading, ()), count=1)
    with closing(running):
        (before,) = running.run(1)
        os.kill(int(before.reason), signal.SIGKILL)
        wait_until(lambda: int(before.reason) not in started())
        (same,) = running.run(1)
        os.kill(before.number, signal.SIGKILL)
        (after,) = running.run(1)
    assert same.number == before.number
    assert (after.number != before.number, after.reason != before.reason) == (True, True)
    assert deaths.how == ["exit code unknown: the process that started it was killed"]
    assert started() == []


def test_a_server_that_cannot_start_ends_the_sweep(started: Callable[[], list[int]]) -> None:
    stop, call = StopRequest(), (stub_calls.fail, ())
    with (
        closing(Workers(1, 1, call, stop, Deaths(), ForkServer(1, ["stub_death"]))) as running,
        pytest.raises(TrialError, match="ends while it imports its modules"),
    ):
        list(running.run(1))
    assert started() == []


def test_workers_that_die_while_they_start_end_the_sweep(tmp_path: Path) -> None:
    call = (stub_calls.die_until, (tmp_path, 99, signal.SIGKILL))
    with (
        closing(Workers(1, 1, call, StopRequest(), lambda *_: False)) as running,
        pytest.raises(TrialError, match=r"processes end while they start \(signal 9: Killed\)"),
    ):
        list(running.run(5))
    assert len(list(tmp_path.iterdir())) == 3


def test_an_error_while_one_worker_ends_ends_the_others(
    tmp_path: Path, started: Callable[[], list[int]]
) -> None:
    """Its death is told to a function that fails, with an error of the program."""
    call = (stub_calls.wait_for_stop, (tmp_path,))

    def fail(_process: int, _how: str) -> bool:
        raise ZeroDivisionError("in the middle")

    running = Workers(3, 1, call, StopRequest(), fail)
    running._running = [running._start() for _ in range(3)]
    for worker in running._running:
        worker.send(call)
        worker.send(True)
    wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 3)
    os.kill(running._running[0].process.pid, signal.SIGKILL)
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        running.close()
    assert (started(), running._running) == ([], [])
    assert len(list(tmp_path.glob("stopped-*"))) == 2


def test_an_error_in_a_worker_is_raised_in_the_sweep(started: Callable[[], list[int]]) -> None:
    running, _ = workers((stub_calls.fail, ()))
    with closing(running), pytest.raises(StorageError, match="the database is gone"):
        list(running.run(2))
    running, _ = workers((stub_calls.break_down, ()))
    with closing(running), pytest.raises(RuntimeError, match="ZeroDivisionError") as caught:
        list(running.run(2))
    assert "in break_down" in caught.value.__notes__[0]
    assert started() == []


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_a_signal_to_a_worker_stops_all_of_them(
    tmp_path: Path, number: signal.Signals, started: Callable[[], list[int]]
) -> None:
    """Sent as soon as the process exists: it has no module of its own then."""
    stop = StopRequest()
    running, deaths = workers((stub_calls.wait_for_stop, (tmp_path,)), stop)
    with closing(running):
        running._running = [running._start()]
        os.kill(running._running[0].process.pid, number)
        running._running[0].send(running._call)
        assert list(running.run(2)) == []
    assert stop.exit_code == 128 + number
    assert deaths.how == []
    assert started() == []


def test_an_interrupt_that_a_worker_s_code_raises_stops_the_sweep() -> None:
    stop, call = StopRequest(), (stub_calls.interrupt, ())
    with closing(Workers(2, 1, call, stop, lambda *_: False)) as running:
        assert list(running.run(3)) == []
    assert stop.number == signal.SIGINT


SCRIPT = """
from contextlib import closing
from pathlib import Path
from mtdlab.sweep.signals import stop_on_signals
from mtdlab.sweep.workers import Workers
import stub_calls, sys
with stop_on_signals() as stop:
    call = (stub_calls.wait_for_stop, (Path(sys.argv[1]),))
    with closing(Workers(2, 1, call, stop, lambda *_: False)) as workers:
        assert list(workers.run(2)) == []
sys.exit(stop.exit_code)
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        # the sweep and both workers receive it, and the workers send it to the sweep
        (lambda sweep: os.killpg(sweep, signal.SIGTERM), 143),
        (lambda sweep: os.kill(sweep, signal.SIGKILL), -signal.SIGKILL),
    ],
    ids=["a signal to the group is one request", "workers of a killed sweep end"],
)
def test_workers_end_with_their_sweep(
    tmp_path: Path, end: Callable[[int], None], code: int
) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    path = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, process_group=0, env=path) as sweep:
        wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
        end(sweep.pid)
        assert sweep.wait(30) == code
    assert wait_for_group(sweep.pid, 5) == []
    assert len(list(tmp_path.glob("stopped-*"))) == 2


def test_a_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the repetition of the first, and not the first one after a worker's."""
    ended: list[int] = []
    monkeypatch.setattr(signals.os, "_exit", ended.append)
    now = 100.0
    monkeypatch.setattr(signals.time, "monotonic", lambda: now)
    with stop_on_signals() as stop:
        stop.request(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGUSR1)
        now += 0.4
        os.kill(os.getpid(), signal.SIGUSR1)
        assert (ended, stop.exit_code) == ([], 143)
        now += 0.2
        os.kill(os.getpid(), signal.SIGINT)
        assert ended == [130]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_sweep_under_nohup_ignores_hangups() -> None:
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.requested()
        assert signal.SIGHUP not in signals.handled_signals()
    finally:
        signal.signal(signal.SIGHUP, previous)
    assert signal.SIGHUP in signals.handled_signals()
