"""A study of 12 short trials of a program, and the processes that run it, as a user starts them."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
import pytest
from forked_commands import ForkedCommand

from mtdlab.store.recorded import read_recorded
from mtdlab.store.store import Store
from tests.postgresql import optuna_storage

Started = ForkedCommand | subprocess.Popen[str]

PROGRAM = '''
"""Trains nothing; logs where each trial begins and ends."""

import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def log(event, settings, seed):
    with open(HERE / "log.txt", "a") as file:
        file.write(f"{event} {settings['rate']}-{seed} {os.getpid()}\\n")


def train(settings, *, seed, checkpoints, report):
    done = checkpoints / "step.txt"
    step = int(done.read_text()) if done.exists() else 0
    log(f"begin {step}", settings, seed)
    while step < settings["steps"]:
        if not (HERE / "hurry").exists():
            time.sleep(settings["seconds"])
        step += 1
        done.with_suffix(".new").write_text(str(step))
        done.with_suffix(".new").replace(done)
        report(step, settings["rate"] * step)
    log(f"end {step}", settings, seed)
    if settings.get("fails"):
        raise ValueError("as the study asks")
    return {"accuracy": 50 + settings["rate"] + seed}
'''
TRIALS = 12
STEPS = 5
INTERVALS = {
    # at which a sweep reads whether to stop, and a task of a cluster that its sweep has ended
    "mtdlab.trial.heartbeat.SWEEP_SECONDS": 0.5,
    # in which a scheduler has to answer
    "mtdlab.sweep.cluster.CONNECT_SECONDS": 3,
}


@dataclass
class Runs:
    """A folder with `own.py` and `own.yaml`, and the processes that a test starts in it."""

    folder: Path
    url: str
    started: list[Started] = field(default_factory=list)
    trials: int = TRIALS

    def write(self, seconds: float = 0.02, seeds: int = 3, *, fails: bool = False) -> None:
        """Write the study; seconds: of each of the 5 steps of a trial; seeds: of its 4 levels.

        fails   whether every trial fails after its last step
        """
        self.trials = 4 * seeds
        (self.folder / "own.yaml").write_text(
            "study: own\nmetric: accuracy\n"
            f"trainer: {{steps: {STEPS}, seconds: {seconds}, fails: {str(fails).lower()}}}\n"
            f"search: {{rate: [1.0, 2.0, 3.0, 4.0]}}\nseeds: {list(range(seeds))}\n"
        )

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a module of Python in the folder."""
        path = os.pathsep.join(filter(None, [str(self.folder), *sys.path]))
        variables = {"PYTHONPATH": path, "MTDLAB_STORAGE": self.url, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def mtdlab(self, *words: str) -> ForkedCommand:
        """Start a command of mtdlab with the program."""
        return self.command(*words, "--objective", "own:train")

    def command(self, *words: str) -> ForkedCommand:
        """Start a command of mtdlab."""
        places = {"MTDLAB_STORAGE": self.url}
        forked = ForkedCommand(words, self.folder, places, merged=True, constants=INTERVALS)
        self.started.append(forked)
        return forked

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command of mtdlab with the program to its end; what it prints."""
        return ended(self.mtdlab(*words), code)

    def hurry(self) -> None:
        """Let the steps that begin now take no time."""
        (self.folder / "hurry").touch()

    @property
    def store(self) -> Store:
        """The store of the study."""
        return Store(self.url, read_recorded(self.url, "own").id)

    def log(self) -> list[str]:
        """What the program has logged."""
        path = self.folder / "log.txt"
        return path.read_text().splitlines() if path.exists() else []

    def events(self, kind: str) -> Counter[str]:
        """How often each trial has begun, or has ended."""
        return Counter(line.split()[2] for line in self.log() if line.startswith(kind))

    def processes(self) -> set[str]:
        """The processes that have begun a trial."""
        return {line.split()[-1] for line in self.log()}

    def wait_for(self, condition: Callable[[], Any], seconds: float = 120) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, [p.args for p in self.started if p.poll() is None]
            time.sleep(0.05)

    def assert_complete(self, *, killed: int = 0) -> None:
        """Exactly the planned trials are complete, each of them once.

        killed  processes that were killed, or connections that were cut: perhaps between a trial's
                end and its record, after which it ran again.
        """
        assert self.store.counts() == {"COMPLETE": self.trials}
        ended = self.events("end")
        assert len(ended) == self.trials
        assert self.trials <= sum(ended.values()) <= self.trials + killed
        trials = optuna.load_study(study_name="own", storage=optuna_storage(self.url)).trials
        states = Counter(trial.state.name for trial in trials)
        assert states == {"COMPLETE": self.trials}


def ended(process: Started, code: int = 0) -> str:
    """Wait for a process; what it printed."""
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == code, printed
    return printed


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    """The study, on a SQLite file."""
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("MTDLAB_DATA", "MTDLAB_IMPORT", "DASK_SCHEDULER_ADDRESS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "own.py").write_text(PROGRAM)
    found = Runs(tmp_path, f"sqlite:///{tmp_path / 'studies.db'}")
    found.write()
    yield found
    for process in found.started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.fixture
def runs_on_server(runs: Runs, postgresql_url: str) -> Runs:
    """The study, on a PostgreSQL server."""
    runs.url = postgresql_url
    return runs
