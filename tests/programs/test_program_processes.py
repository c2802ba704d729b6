"""Sweeps of a program as processes: shared, with workers, killed and stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from forked_commands import ForkedCommand

from tests.commands.conftest import query
from tests.programs.conftest import STUDY, calls

Start = Callable[..., ForkedCommand]


@pytest.fixture
def start(folder: Path) -> Start:
    """Starts a sweep in the folder, in a process group of its own."""

    def start(*options: str) -> ForkedCommand:
        words = ["sweep", "own.yaml", "--objective", "own:train", *options]
        return ForkedCommand(words, folder, {}, merged=True)

    return start


def write_study(folder: Path, *, steps: int, seconds: float, seeds: int) -> None:
    text = STUDY.replace("steps: 4", f"steps: {steps}, seconds: {seconds}")
    listed = ", ".join(map(str, range(seeds)))
    (folder / "own.yaml").write_text(text.replace("seeds: [0, 1]", f"seeds: [{listed}]"))


def last_step(folder: Path) -> int:
    """The step of the checkpoint of a trial that runs; 0 without one."""
    files = list(folder.glob("models/.checkpoints/*/own/*/program/state.txt"))
    return int(files[0].read_text().split()[0]) if files else 0


def wait_until(condition: Callable[[], object], process: ForkedCommand) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def finish(process: ForkedCommand, code: int = 0) -> str:
    output, _ = process.communicate(timeout=240)
    assert process.returncode == code, output
    assert "Traceback" not in output, output
    return output


def assert_complete(folder: Path, steps: int, trials: int) -> None:
    """Every trial is complete with the scores of one that was never interrupted."""
    rows = query(folder, "SELECT state, score, settings, seed FROM mtdlab_trials")
    assert [row[0] for row in rows] == ["COMPLETE"] * trials
    totals = query(folder, "SELECT score FROM mtdlab_scores WHERE task = 'total'")
    assert totals == [(steps * (steps + 1) / 2,)] * trials
    assert not (folder / "models" / ".checkpoints").exists()


@pytest.mark.slow
def test_two_sweeps_with_workers_share_the_trials(folder: Path, start: Start) -> None:
    write_study(folder, steps=3, seconds=0.1, seeds=5)
    both = [start("--jobs", "2") for _ in range(2)]
    for process in both:
        finish(process)
    assert_complete(folder, 3, 10)
    begun = calls(folder)
    assert len({(rate, seed) for _, rate, seed, _ in begun}) == len(begun) == 10
    # in processes of their own, which are not those of the sweeps
    workers = {process for process, *_ in begun}
    assert len(workers) > 1
    assert workers.isdisjoint(str(process.pid) for process in both)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_trial_continues_after_its_sweep_was_ended(
    folder: Path, start: Start, number: signal.Signals
) -> None:
    write_study(folder, steps=30, seconds=0.1, seeds=1)
    process = start("--jobs", "1")
    wait_until(lambda: last_step(folder) > 2, process)
    os.killpg(process.pid, number)
    process.communicate(timeout=60)
    assert process.returncode == (-9 if number == signal.SIGKILL else 143)
    (folder / "hurry").touch()
    finish(start("--jobs", "1"))
    assert_complete(folder, 30, 2)
    _, second, *_ = calls(folder)
    assert int(second[3]) > 2


@pytest.mark.slow
def test_a_program_that_ends_its_process_fails_after_three_deaths(
    folder: Path, start: Start
) -> None:
    text = "import os\ndef train(settings, *, seed, checkpoints, report):\n    report(1, 1.0)\n"
    # also with the exit code of success
    text += "    if settings['rate'] == 1.0: os._exit(9 * seed)\n    return {'accuracy': 1.0}\n"
    (folder / "own.py").write_text(text)
    finish(start("--jobs", "2"), code=3)
    states = query(folder, "SELECT state, reason_code, deaths FROM mtdlab_trials ORDER BY position")
    assert states == [("FAIL", "interrupted", 3), ("COMPLETE", "", 0)] * 2


@pytest.mark.slow
def test_a_program_that_ends_its_sweep_as_if_it_were_done_fails_after_three_deaths(
    folder: Path, start: Start
) -> None:
    """With one job its process is that of the sweep, whose exit code is then the program's."""
    write_study(folder, steps=1, seconds=0, seeds=1)
    text = "import os\ndef train(settings, *, seed, checkpoints, report):\n"
    text += "    if settings['rate'] == 1.0: os._exit(0)\n    return {'accuracy': 1.0}\n"
    (folder / "own.py").write_text(text)
    for _ in range(3):
        finish(start("--jobs", "1"))
    assert "failed: trial 0: its process died 3 times" in finish(start("--jobs", "1"), code=3)
    states = query(folder, "SELECT state, reason_code FROM mtdlab_trials ORDER BY position")
    assert states == [("FAIL", "interrupted"), ("COMPLETE", "")]


FORKING = """
import os, sys
def train(settings, *, seed, checkpoints, report):
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        report(1, 5.0)
        return {"accuracy": code}
    if seed == 0:
        return {"accuracy": 99.0}
    if seed == 1:
        raise ValueError("in the fork")
    if seed == 2:
        sys.exit(7)
    report(2, 99.0)
"""


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.slow
def test_a_process_that_a_program_forks_records_nothing(
    folder: Path, start: Start, jobs: str
) -> None:
    (folder / "own.py").write_text(FORKING)
    study = STUDY.replace("[1.0, 2.5]", "[1.0]").replace("[0, 1]", "[0, 1, 2, 3]")
    (folder / "own.yaml").write_text(study)
    printed = finish(start("--jobs", jobs))
    scores = query(folder, "SELECT score FROM mtdlab_trials ORDER BY seed")
    assert scores == [(0.0,), (1.0,), (7.0,), (1.0,)]
    assert printed.count("which code of the user forked from process") == 3
    assert "returned: only the latter records a result; end the forked one with os._exit" in printed
    assert "raised ValueError: in the fork: only the latter" in printed


CLOSING = """
import os, sys
def train(settings, *, seed, checkpoints, report):
    if seed == 0:
        sys.stdout.close()
        sys.stderr.close()
    elif seed == 1:
        for number in range(3):
            os.close(number)
    elif seed == 2:
        sys.stdout = sys.stderr = None
    else:
        print("seed 3 prints")
        sys.stdin.close()
    return {"accuracy": 50.0}
"""


@pytest.mark.slow
def test_a_program_that_closes_the_standard_streams_hides_no_output(
    folder: Path, start: Start
) -> None:
    (folder / "own.py").write_text(CLOSING)
    study = STUDY.replace("[1.0, 2.5]", "[1.0]").replace("[0, 1]", "[0, 1, 2, 3]")
    (folder / "own.yaml").write_text(study)
    printed = finish(start("--jobs", "1"))
    for line in ("[4/4] trial 3 seed 3", "seed 3 prints", "complete, 4 of 4 trials done"):
        assert line in printed


LEAVING = """
import threading, time, mtdlab.user_code
mtdlab.user_code.THREAD_SECONDS = 0.1
threading.Thread(target=time.sleep, args=(600,), name="uploader").start()
def train(settings, *, seed, checkpoints, report):
    return {"accuracy": 50.0}
"""


@pytest.mark.slow
def test_a_thread_that_a_program_leaves_keeps_no_process(folder: Path, start: Start) -> None:
    """Neither the sweep nor its workers: each of them imports the program."""
    (folder / "own.py").write_text(LEAVING)
    printed = finish(start("--jobs", "2"))
    assert "complete, 4 of 4 trials done" in printed
    ended = "ended while threads run that code of the user has left: uploader"
    assert printed.count(ended) > 1


def test_a_worker_of_a_program_imports_none_of_the_trainer_s_packages() -> None:
    """They take seconds, in each worker."""
    code = "import sys, mtdlab.trial.worker, mtdlab.trial.program; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"'torch'", "'transformers'", "'pandas'"} & set(done.stdout[1:-2].split(", "))
