"""Worker processes: their folder and threads, their deaths, and signals that reach them."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import stub_calls
from forked_commands import ForkedCommand
from stub_sweep import children, wait_for_group

from mtdlab.errors import TrialError
from mtdlab.sweep import engine as engines
from mtdlab.sweep.engine import Death, Processes, Work
from mtdlab.sweep.fork_server import THREAD_VARIABLES, ForkServer, call_in_forks
from mtdlab.trial import signals
from mtdlab.trial.signals import StopRequest, stop_on_signals
from mtdlab.trial.slots import threads_each


@pytest.fixture
def started() -> Callable[[], list[int]]:
    """The servers and workers that the test has started and that run: earlier tests left theirs."""
    before = below(os.getpid())
    return lambda: [process for process in below(os.getpid()) if process not in before]


def below(process: int) -> list[int]:
    """The processes below a process that have not ended."""
    found = children(process)
    return found + [process for child in found for process in below(child)]


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def running(count: int = 2, *modules: str) -> Iterator[Processes]:
    """An engine of processes that import some modules."""
    with closing(Processes(count, threads_each(count), modules)) as engine:
        yield engine


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Work]:
    """Work that is a function of `stub_calls`, by default one that waits for a stop."""

    def make(function: Any = stub_calls.wait_for_stop, number: int = 0) -> Work:
        monkeypatch.setattr(engines, "run_trials", function)
        study: Any = SimpleNamespace(job=tmp_path)
        return Work(study, number, StopRequest())

    return make


def begun(folder: Path) -> dict[int, str]:
    """What each process that has begun says of itself."""
    return {int(path.name[6:]): path.read_text() for path in folder.glob("began-*[0-9]")}


def deaths_of(engine: Processes) -> list[Death]:
    """The next deaths."""
    found = list[Death]()
    wait_until(lambda: found.extend(engine.deaths()) or found)
    return found


def test_workers_have_this_sweeps_folder_and_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: Any, work: Any
) -> None:
    """Relative paths of texts and of the database are looked up in the folder."""
    for name in THREAD_VARIABLES:
        monkeypatch.setenv(name, "7")
    monkeypatch.chdir(tmp_path)
    with running() as engine:
        engine.start(2, work())
        wait_until(lambda: len(begun(tmp_path)) == 2)
        # two workers and the process that they are forks of
        assert len(started()) == 3
        engine.start(2, work())
        assert (len(started()), engine.deaths()) == (3, [])
    assert {text.rpartition(" ")[0] for text in begun(tmp_path).values()} == {
        f"{tmp_path} {threads_each(2)}"
    }
    assert len(list(tmp_path.glob("stopped-*"))) == 2
    assert (started(), engine.count) == ([], 0)


def test_fewer_workers_have_more_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Any
) -> None:
    monkeypatch.setattr("mtdlab.trial.slots.cpu_count", lambda: 4)
    with running(4) as engine:
        engine.start(1, work())
        wait_until(lambda: len(begun(tmp_path)) == 1)
        # not while it runs
        engine.start(2, work())
        wait_until(lambda: len(begun(tmp_path)) == 2)
    assert {text.split()[-2] for text in begun(tmp_path).values()} == {"4"}


@pytest.mark.parametrize(
    ("number", "how"),
    [(0, "exit code 7"), (signal.SIGKILL, "signal 9: Killed"), (signal.SIGSEGV, "signal 11: ")],
)
def test_a_worker_that_dies_is_told_and_replaced(
    tmp_path: Path, work: Any, number: int, how: str
) -> None:
    with running(1) as engine:
        for times in (1, 2):
            engine.start(1, work(stub_calls.die, number))
            [death] = deaths_of(engine)
            assert death.how.startswith(how)
            assert death.code == (-number or 7)
            assert (tmp_path / f"died-{death.process}").exists()
            assert len(list(tmp_path.glob("died-*"))) == times
            assert engine.count == 0


def test_a_server_that_is_killed_is_replaced(tmp_path: Path, started: Any, work: Any) -> None:
    """Its workers go on; how one of them ends is not known then."""
    with running(1) as engine:
        engine.start(1, work())
        wait_until(lambda: begun(tmp_path))
        [(before, text)] = begun(tmp_path).items()
        server = int(text.split()[-1])
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: server not in started())
        assert (engine.deaths(), engine.count) == ([], 1)
        engine.start(1, work())
        assert begun(tmp_path).keys() == {before}
        os.kill(before, signal.SIGKILL)
        how = "exit code unknown: the process that started it was killed"
        assert deaths_of(engine) == [Death(how, before)]
        engine.start(1, work())
        wait_until(lambda: len(begun(tmp_path)) == 2)
        assert len({line.split()[-1] for line in begun(tmp_path).values()}) == 2
    assert started() == []


def test_a_server_that_cannot_start_ends_the_sweep(started: Any, work: Any) -> None:
    with (
        running(1, "stub_death") as engine,
        pytest.raises(TrialError, match="ends while it imports its modules"),
    ):
        engine.start(1, work())
    assert started() == []


def test_the_death_of_one_worker_does_not_keep_the_others(
    tmp_path: Path, started: Any, work: Any
) -> None:
    with running(3) as engine:
        engine.start(3, work())
        wait_until(lambda: len(begun(tmp_path)) == 3)
        os.kill(min(begun(tmp_path)), signal.SIGKILL)
    assert (started(), engine.count) == ([], 0)
    assert len(list(tmp_path.glob("stopped-*"))) == 2


@pytest.mark.parametrize("number", signals.SIGNALS)
def test_a_signal_to_a_worker_is_its_exit_code(
    work: Any, number: signal.Signals, started: Any
) -> None:
    """Sent as soon as the process exists: it has no module of its own then."""
    with running(1) as engine:
        engine.start(1, work())
        os.kill(next(iter(engine._running)), number)
        [death] = deaths_of(engine)
    assert (death.code, death.how) == (128 + number, f"exit code {128 + number}")
    assert started() == []


def test_a_function_is_called_in_forks_of_a_server(started: Any) -> None:
    with closing(ForkServer(1, ())) as server:
        found = call_in_forks(server, (stub_calls.describe, ("by",)), 2)
        assert len(set(found)) == 2
        assert all(text.startswith("by ") for text in found)
        with pytest.raises(RuntimeError, match="ZeroDivisionError") as caught:
            call_in_forks(server, (stub_calls.describe, ("",)), 2)
        assert "in describe" in caught.value.__notes__[0]
        with pytest.raises(TrialError, match="has died"):
            call_in_forks(server, (stub_calls.describe, ("die",)), 1)
        assert len(started()) == 1
    assert started() == []


SCRIPT = """
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from mtdlab.sweep import engine as engines
from mtdlab.sweep.engine import Processes, Work
from mtdlab.trial.signals import stop_on_signals
import stub_calls, sys, time
engines.run_trials = stub_calls.wait_for_stop
with stop_on_signals() as stop, closing(Processes(2, 1, ())) as engine:
    engine.start(2, Work(SimpleNamespace(job=Path(sys.argv[1])), 0, stop))
    while not stop.requested():
        time.sleep(0.01)
sys.exit(stop.exit_code)
"""


@pytest.mark.parametrize(
    ("end", "code"),
    [
        # the sweep and both workers receive it
        (lambda sweep: os.killpg(sweep, signal.SIGTERM), 143),
        (lambda sweep: os.kill(sweep, signal.SIGKILL), -signal.SIGKILL),
    ],
    ids=["a signal to the group is one request", "workers of a killed sweep end"],
)
def test_workers_end_with_their_sweep(
    tmp_path: Path, end: Callable[[int], None], code: int
) -> None:
    sweep = ForkedCommand([str(tmp_path)], tmp_path, {}, code=SCRIPT)
    wait_until(lambda: len(begun(tmp_path)) == 2)
    end(sweep.pid)
    sweep.communicate(timeout=30)
    assert sweep.returncode == code
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
