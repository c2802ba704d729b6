"""The script of `mtdlab slurm` on a real Slurm cluster of one node (Debian's slurm-wlm)."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from slurm_cluster import CPUS, MAX_ARRAY_SIZE, Cluster, missing_programs, running_cluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(missing_programs()),
        reason=f"no Slurm cluster can be started: {', '.join(missing_programs())} not installed",
    ),
]
TRIALS = 24
HOSTILE = """a 'b" $(touch c) %A"""
PROGRAM = """
import os
import time


def train(settings, *, seed, checkpoints, report):
    file, step, total = checkpoints / "state.txt", 0, 0
    if file.exists():
        step, total = map(int, file.read_text().split())
    with open("attempts.txt", "a") as log:
        task = os.environ["SLURM_ARRAY_TASK_ID"]
        log.write(f"{settings['rate']} {seed} {step} {os.getpid()} {task}\\n")
    while step < settings["steps"]:
        time.sleep(settings["seconds"])
        step += 1
        total += step
        file.with_suffix(".new").write_text(f"{step} {total}")
        file.with_suffix(".new").replace(file)
        report(step, settings["rate"] * step)
    return {"accuracy": 50 + settings["rate"] + seed, "total": total}
"""
STUDY = """
study: own
metric: accuracy
trainer: {{steps: 10, seconds: {seconds}}}
search: {{rate: [1, 2, 3, 4, 5, 6, 7, 8]}}
seeds: [0, 1, 2]
"""


class Attempt(NamedTuple):
    """An attempt at a trial: the trial, the step at which it began, its process and task."""

    rate: str
    seed: str
    step: str
    process: str
    task: str


@dataclass
class Job:
    """A study of 24 trials in a folder with a hostile name, and its array job."""

    folder: Path
    cluster: Cluster
    number: str = ""

    def mtdlab(self, *words: str) -> str:
        """Run a command of mtdlab on the node; what it prints."""
        done = subprocess.run(
            [sys.executable, "-m", "mtdlab", *words],
            cwd=self.folder,
            env=os.environ | self.cluster.environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def write(self, *options: str, seconds: float) -> str:
        """Run `mtdlab slurm`; what it prints."""
        (self.folder / "own.py").write_text(PROGRAM)
        (self.folder / "own.yaml").write_text(STUDY.format(seconds=seconds))
        return self.mtdlab("slurm", "own.yaml", "--objective", "own:train", *options)

    def submit(self, *options: str, seconds: float = 0.3, attempts: int = 0) -> None:
        """Write and submit an array of three tasks; wait for so many attempts."""
        self.write("--tasks", "3", "--sbatch", "mem=300M", *options, seconds=seconds)
        self.submit_again()
        self.wait(lambda: len(self.attempts()) >= attempts)

    def submit_again(self) -> None:
        """Submit the script."""
        words = ("sbatch", "--parsable", str(self.folder / "own.sbatch"))
        self.number = self.cluster.run(*words).strip()

    def query(self, statement: str) -> list[Any]:
        """The rows of a query."""
        with closing(sqlite3.connect(self.folder / "mtdlab.db")) as database:
            return database.execute(statement).fetchall()

    def states(self) -> dict[str, int]:
        """The number of trials in each state."""
        return dict(self.query("SELECT state, count(*) FROM mtdlab_trials GROUP BY state"))

    def attempts(self) -> list[Attempt]:
        """Every attempt at a trial, in their order."""
        path = self.folder / "attempts.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [Attempt(*line.split()) for line in lines]

    def begun(self) -> Counter[tuple[str, str]]:
        """How often each trial was begun at its first step."""
        return Counter(
            (attempt.rate, attempt.seed) for attempt in self.attempts() if attempt.step == "0"
        )

    def requeues(self) -> dict[str, list[str]]:
        """The requeues that were counted, by task."""
        files = (self.folder / "own-logs").glob("*.requeues")
        return {path.stem: path.read_text().split() for path in files}

    def logs(self) -> str:
        """What the tasks printed."""
        return "\n".join(path.read_text() for path in (self.folder / "own-logs").glob("*.log"))

    def tasks(self) -> str:
        """What the controller knows of the three tasks."""
        names = (f"{self.number}_{task}" for task in range(3))
        return "\n".join(self.cluster.job(name) for name in names)

    def wait(self, condition: Callable[[], object], seconds: float = 240) -> None:
        """Wait for a condition, while tasks that wait for their restart are started."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.logs() + self.cluster.log()
            time.sleep(0.3)

    def finish(self) -> None:
        """Wait until no task is left, and check that every trial is complete exactly once."""

        empty = 0

        def ended() -> bool:
            nonlocal empty
            self.cluster.start_waiting()
            # a task that is being requeued is not in the queue for a moment
            empty = 0 if self.cluster.queued() else empty + 1
            return empty > 10

        self.wait(ended, 400)
        assert self.states() == {"COMPLETE": TRIALS}, (
            self.logs() + self.tasks() + self.cluster.log()
        )
        trials = self.query("SELECT DISTINCT configuration, seed FROM mtdlab_trials")
        optuna = dict(self.query("SELECT state, count(*) FROM trials GROUP BY state"))
        assert len(trials) == TRIALS
        assert optuna.pop("COMPLETE") == TRIALS
        assert set(optuna) <= {"FAIL"}
        assert len(self.begun()) == TRIALS
        print(f"{len(self.attempts())} attempts at {TRIALS} trials; requeues {self.requeues()}")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster(user_signal=True) as started:
        yield started


@pytest.fixture
def job(cluster: Cluster, tmp_path: Path) -> Iterator[Job]:
    folder = tmp_path / HOSTILE
    folder.mkdir()
    yield Job(folder, cluster)
    for task in cluster.queued():
        cluster.run("scancel", task, check=False)


def preempt(cluster: Cluster) -> None:
    """Run a job of a second that needs the whole node, in the partition that preempts others."""
    words = ("sbatch", "--partition=high", f"--cpus-per-task={CPUS}", "--mem=100", "--time=1")
    cluster.run(*words, "--output=/dev/null", "--wrap=sleep 1")


def test_an_array_runs_every_trial_once(job: Job) -> None:
    job.submit(seconds=0.02)
    job.finish()
    assert len(job.attempts()) == TRIALS
    assert {attempt.task for attempt in job.attempts()} == {"0", "1", "2"}
    assert job.requeues() == {}
    assert not (job.folder / "c").exists()
    for task in range(3):
        assert "JobState=COMPLETED" in job.cluster.job(f"{job.number}_{task}")
        assert (job.folder / "own-logs" / f"{job.number}_{task}.log").exists()


def test_a_task_requeues_itself_at_its_time_limit(job: Job) -> None:
    job.submit("--time", "1", seconds=0.5)
    assert "--signal=USR1@30" in (job.folder / "own.sbatch").read_text()
    job.finish()
    names = {f"{job.number}_{task}" for task in range(3)}
    assert set(job.requeues()) == names
    assert {kind for kinds in job.requeues().values() for kind in kinds} == {"timeout"}
    for name in names:
        restarts = len(job.requeues()[name])
        assert f"Restarts={restarts} " in job.cluster.job(name)
    # a checkpoint was saved: trials went on where they were
    assert any(int(attempt.step) > 0 for attempt in job.attempts())
    assert set(job.begun().values()) == {1}


def test_preemption_is_counted_apart(job: Job) -> None:
    job.submit("--time", "10", "--partition", "low", attempts=6)
    preempt(job.cluster)
    job.wait(lambda: len(job.requeues()) == 3)
    job.finish()
    assert list(job.requeues().values()) == [["preemption"]] * 3
    assert "preemptions of task" in job.logs()


def test_without_a_grace_time_slurm_requeues_the_task_itself(job: Job) -> None:
    job.submit("--time", "10", "--partition", "harsh", attempts=6)
    preempt(job.cluster)
    job.wait(lambda: "Slurm requeues it itself" in job.logs())
    job.finish()
    assert job.requeues() == {}
    assert any("Restarts=1 " in job.cluster.job(f"{job.number}_{task}") for task in range(3))


def test_signals_and_requeues_by_hand(job: Job) -> None:
    job.submit("--time", "10", attempts=6)
    first, second, third = (f"{job.number}_{task}" for task in range(3))
    job.cluster.run("scancel", "--signal=USR1", first)
    job.cluster.run("scontrol", "requeue", second)
    job.finish()
    assert job.requeues() == {first: ["timeout"]}
    assert "Restarts=1 " in job.cluster.job(first)
    assert "Restarts=1 " in job.cluster.job(second)
    assert "Restarts=0 " in job.cluster.job(third)


def test_one_task_completes_what_killed_ones_leave(job: Job) -> None:
    job.submit("--time", "10")
    first, second, third = (f"{job.number}_{task}" for task in range(3))
    job.wait(lambda: {attempt.task for attempt in job.attempts()} == {"0", "1", "2"})
    # Slurm treats this as a cancellation
    job.cluster.run("scancel", "--signal=KILL", first)
    worker = next(int(attempt.process) for attempt in job.attempts() if attempt.task == "1")
    os.kill(worker, signal.SIGKILL)
    job.finish()
    assert job.requeues() == {}
    assert "JobState=CANCELLED" in job.cluster.job(first)
    assert f"ExitCode={128 + signal.SIGKILL}:0" in job.cluster.job(second)
    assert f"the worker of task {second} was killed" in job.logs()
    assert "JobState=COMPLETED" in job.cluster.job(third)


def test_a_cancelled_task_stays_cancelled(job: Job) -> None:
    job.submit("--time", "10", attempts=6)
    job.cluster.run("scancel", job.number)
    job.wait(lambda: not job.cluster.queued())
    assert job.requeues() == {}
    assert "JobState=CANCELLED" in job.cluster.job(f"{job.number}_0")
    assert job.states().get("RUNNING", 0) == 0
    job.submit_again()
    job.finish()


def test_a_stopped_study_is_not_requeued(job: Job) -> None:
    job.submit("--time", "10", attempts=6)
    assert job.mtdlab("stop", "own").count("requested to stop") == 3
    job.wait(lambda: not job.cluster.queued())
    assert job.logs().count("was stopped, by mtdlab stop") == 3
    assert job.requeues() == {}
    assert job.states().get("RUNNING", 0) == 0
    job.submit_again()
    job.finish()


def test_more_tasks_than_an_array_allows(job: Job) -> None:
    printed = job.write("--tasks", str(MAX_ARRAY_SIZE + 2), seconds=0.02)
    script = str(job.folder / "own.sbatch")
    commands = re.findall(r"^next: sbatch --array=(\S+) ", printed, re.MULTILINE)
    assert commands == ["0-2", "0-1"]
    refused = job.cluster.run("sbatch", "--array=0-3", script, check=False)
    assert "Invalid job array" in refused
    for array in commands:
        job.cluster.run("sbatch", f"--array={array}", script)
    job.finish()
    assert len(list((job.folder / "own-logs").glob("*.log"))) == 5


def test_preemption_without_the_users_signal(tmp_path: Path) -> None:
    with running_cluster(user_signal=False) as other:
        job = Job(tmp_path, other)
        job.submit("--time", "10", "--partition", "low", attempts=6)
        preempt(other)
        job.finish()
        assert list(job.requeues().values()) == [["preemption"]] * 3
        assert job.logs().count("Exited with exit code 143") == 3
