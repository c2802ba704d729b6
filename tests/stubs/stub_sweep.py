"""Runs `mtdlab sweep` as a process on a study of stub trials, and checks what it leaves."""

import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forked_commands import ForkedCommand

METHOD = Path(__file__).with_name("stub_method.py")
STUDY = """
study: stubs
trainer: {{method: stub, steps: {steps}, evaluate_every: {steps}}}
search: {{temperature: [{levels}]}}
seeds: [{seeds}]
"""
ENDED = ("Z", "X")
PARENT, GROUP = 1, 2
"""Fields of /proc/PID/stat after the name of the process; the first is its state."""
POINTS = (
    "claim",
    "begin",
    "first heartbeat",
    "inside checkpoint",
    "before manifest",
    "after manifest",
    "before finish",
    "after finish",
    "export",
)
"""At which `stub_method` ends a process."""


@dataclass
class StubSweep:
    """A study of `configurations` x `seeds` stub trials, in a folder of its own."""

    folder: Path
    configurations: int = 4
    seeds: int = 2
    steps: int = 20
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        levels = ", ".join(f"{0.001 * (1 + level):.3f}" for level in range(self.configurations))
        seeds = ", ".join(map(str, range(self.seeds)))
        text = STUDY.format(steps=self.steps, levels=levels, seeds=seeds)
        (self.folder / "temporary").mkdir(parents=True)
        (self.folder / "study.yaml").write_text(text)
        self.set_options(self.options)

    def set_options(self, options: Mapping[str, Any]) -> None:
        """What happens to the trials that begin now, see `stub_method`."""
        (self.folder / "stub.json").write_text(json.dumps(options))

    @property
    def planned(self) -> int:
        """The number of trials."""
        return self.configurations * self.seeds

    @property
    def database(self) -> Path:
        """The study's database."""
        return self.folder / "mtdlab.db"

    def start(self, *options: str) -> ForkedCommand:
        """Start a sweep in a process group of its own."""
        words = ["sweep", "study.yaml", "--import", str(METHOD), *options]
        environment = {"TMPDIR": str(self.folder / "temporary"), "MTDLAB_CACHE": str(self.folder)}
        return ForkedCommand(words, self.folder, environment)

    def run(self, *options: str, code: int = 0) -> str:
        """Run a sweep to its end; all that it prints. Asserts the exit code."""
        process = self.start(*options)
        output, error = process.communicate(timeout=300)
        assert process.returncode == code, error
        assert "Traceback" not in error, error
        return output + error

    @contextmanager
    def running(self, *options: str, attempts: int = 0) -> Iterator[ForkedCommand]:
        """A sweep, once there are so many attempts at trials; killed if a failed test leaves it."""
        process = self.start(*options)
        try:
            assert self.wait_until(lambda: len(self.attempts()) >= attempts, process)
            yield process
        finally:
            if group_members(process.pid):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def query(self, statement: str) -> list[Any]:
        """The rows of a query; none before there are tables."""
        try:
            with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as database:
                return database.execute(statement).fetchall()
        except sqlite3.OperationalError:
            return []

    def states(self) -> dict[str, int]:
        """The number of trials in each state."""
        return dict(self.query("SELECT state, count(*) FROM mtdlab_trials GROUP BY state"))

    def wait_until(self, condition: Any, process: ForkedCommand) -> bool:
        """Wait for a condition; False if the process or five minutes have ended before."""
        deadline = time.monotonic() + 300
        while not condition():
            if process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.01)
        return True

    def attempts(self) -> list[tuple[int, int, int]]:
        """Process, row and first step of every attempt at a trial."""
        path = self.folder / "attempts.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(int(pid), int(row), int(step)) for pid, row, step in map(str.split, lines)]

    def assert_complete(self) -> None:
        """Every planned trial is complete, once, with the score of an uninterrupted one.

        No temporary folder is left.
        """
        rows = self.query("SELECT state, configuration, seed, settings, score FROM mtdlab_trials")
        assert [row[0] for row in rows] == ["COMPLETE"] * self.planned, self.states()
        assert len({(configuration, seed) for _, configuration, seed, _, _ in rows}) == self.planned
        for _, configuration, seed, settings, score in rows:
            temperature = json.loads(settings)["temperature"]
            expected = sum(step * temperature for step in range(1, self.steps + 1))
            assert abs(score - expected) < 1e-9, (configuration, seed, score, expected)
        optuna = dict(self.query("SELECT state, count(*) FROM trials GROUP BY state"))
        assert optuna.pop("COMPLETE") == self.planned, optuna
        assert set(optuna) <= {"FAIL"}, optuna
        assert self.query("PRAGMA quick_check") == [("ok",)]
        assert not self.leftovers(), self.leftovers()
        assert not (self.folder / "models" / ".checkpoints").exists()

    def leftovers(self) -> list[str]:
        """Temporary files and folders that are left, in the system's or in that of the models."""
        temporary = (self.folder / "temporary").iterdir()
        # torch keeps a cache there
        found = [path for path in temporary if not path.name.startswith("torchinductor_")]
        found += [path for path in (self.folder / "models").rglob("*") if ".building-" in path.name]
        return [str(path.relative_to(self.folder)) for path in found]


def children(process: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    return _running(PARENT, process)


def workers_of(sweep: int) -> list[int]:
    """The worker processes of a sweep: forks of a process that it has started."""
    return [worker for server in children(sweep) for worker in children(server)]


def group_members(group: int) -> list[int]:
    """The processes of a process group that have not ended."""
    return _running(GROUP, group)


def _running(field: int, value: int) -> list[int]:
    """The processes with this value in a field of /proc/PID/stat that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[field]) == value and fields[0] not in ENDED:
            found.append(int(path.parent.name))
    return found


def wait_for_group(group: int, seconds: float) -> list[int]:
    """Wait until no process of a group is left; those that are left after `seconds`."""
    deadline = time.monotonic() + seconds
    while (left := group_members(group)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left
