"""The array script run by the shell, with stand-ins for srun, scontrol and the worker.

tests/long/test_slurm_cluster.py runs it on a real cluster; this is what each exit code leads to.
"""

import os
import signal
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from test_script import HOSTILE, SCRIPT

RUNNING = "JobState=RUNNING Reason=None\\n PreemptEligibleTime=2026-01-02 PreemptTime=None"
PREEMPTED = "JobState=RUNNING Reason=None\\n PreemptEligibleTime=x PreemptTime=2026-01-02T03:04:05"
CANCELLED = "JobState=COMPLETING Reason=None\\n PreemptEligibleTime=2026-01-02 PreemptTime=None"
TIME_LIMIT = "JobState=COMPLETING Reason=TimeLimit\\n PreemptEligibleTime=x PreemptTime=None"
SRUN = '#!/bin/sh\nshift 2\n"$@"\n'
SCONTROL = """#!/bin/sh
echo "$*" >>scontrol.txt
case $1 in
show) [ "${LOST:-}" ] && exit 1; printf "JobId=12 JobName=a\\n   $STATUS\\n" ;;
requeue) [ "${ENDED:-}" ] && kill -s TERM $$; exit "${REFUSED:-0}" ;;
esac
"""
WORKER = """#!/bin/sh
printf '%s\\n' "$@" >words.txt
env >environment.txt
[ "${KILLED:-}" ] && kill -s "$KILLED" $$
exit "$CODE"
"""


@dataclass
class Task:
    """A task of an array, and what is installed on its node."""

    folder: Path
    timeouts: int = 3

    def __post_init__(self) -> None:
        programs = {"srun": SRUN, "scontrol": SCONTROL, "worker": WORKER}
        (self.folder / "bin").mkdir()
        for name, text in programs.items():
            (self.folder / "bin" / name).write_text(text)
            (self.folder / "bin" / name).chmod(0o755)
        self.logs = self.folder / "own-logs"
        self.logs.mkdir()
        self.write(["worker", "--study", "own"])

    def write(self, command: list[str], *, secret: bool = False) -> None:
        """Write the script."""
        resources = replace(SCRIPT.resources, timeouts=self.timeouts)
        script = replace(
            SCRIPT,
            resources=resources,
            command=command,
            folder=self.folder,
            logs=self.logs,
            url_is_secret=secret,
        )
        (self.folder / "own.sbatch").write_text(script.text())

    def start(self, code: int, status: str = RUNNING, **variables: str) -> "subprocess.Popen[str]":
        """Start the script as task 2 of array 7, in another folder than that of the study."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        slurm = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "2", "SLURM_JOB_ID": "12"}
        slurm |= {"CODE": str(code), "STATUS": status, "SLURM_CPUS_PER_TASK": "2", "PATH": path}
        return subprocess.Popen(
            ["sh", self.folder / "own.sbatch"],
            env=os.environ | slurm | variables,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: int, status: str = RUNNING, **variables: str) -> tuple[int, str]:
        """The exit code and standard error of the script."""
        process = self.start(code, status, **variables)
        _, error = process.communicate(timeout=60)
        return process.returncode, error

    @property
    def requeues(self) -> list[str]:
        """The kinds of the requeues that were counted."""
        path = self.logs / "7_2.requeues"
        return path.read_text().split() if path.exists() else []

    @property
    def asked(self) -> list[str]:
        """How scontrol was called."""
        path = self.folder / "scontrol.txt"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return Task(tmp_path)


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 129, 130])
def test_a_worker_that_ended_by_itself_ends_the_task(task: Task, code: int) -> None:
    assert task.run(code) == (code, "")
    assert task.asked == []
    assert task.requeues == []


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (138, RUNNING, "timeout"),
        (138, PREEMPTED, "preemption"),
        (143, PREEMPTED, "preemption"),
        (143, TIME_LIMIT, "timeout"),
        (138, TIME_LIMIT, "timeout"),
    ],
)
def test_a_task_requeues_itself_by_its_array(task: Task, code: int, status: str, kind: str) -> None:
    ended, error = task.run(code, status)
    assert ended == 0
    assert f"{kind}s of task 7_2: 1, of " in error
    assert "it is requeued" in error
    assert task.asked == ["show job 7_2", "requeue 7_2"]
    assert task.requeues == [kind]


SHOW, REQUEUE = "show job 7_2", "requeue 7_2"
NOT_REQUEUED = {
    "killed": (137, {"KILLED": "KILL"}, RUNNING, "the worker of task 7_2 was killed", []),
    "cancelled after USR1": (138, {}, CANCELLED, "task 7_2 was cancelled, or Slurm", [SHOW]),
    "cancelled": (143, {}, CANCELLED, "task 7_2 was cancelled, or Slurm requeues it", [SHOW]),
    # mtdlab stop ends a worker with 143 too
    "stopped": (143, {}, RUNNING, "was stopped, by mtdlab stop or by TERM to its worker", [SHOW]),
    "no answer": (138, {"LOST": "yes"}, RUNNING, "it is not requeued from here", [SHOW] * 3),
    "refused": (138, {"REFUSED": "1"}, RUNNING, "7_2 could not be requeued", [SHOW, REQUEUE]),
}


@pytest.mark.parametrize(
    ("code", "variables", "status", "sentence", "asked"), NOT_REQUEUED.values(), ids=NOT_REQUEUED
)
def test_a_task_that_is_not_requeued_says_why(
    task: Task, code: int, variables: dict[str, str], status: str, sentence: str, asked: list[str]
) -> None:
    # the pauses between the three questions
    (task.folder / "bin" / "sleep").symlink_to("/bin/true")
    ended, error = task.run(code, status, **variables)
    assert ended == code
    assert sentence in error
    assert task.asked == asked
    assert len(task.requeues) == asked.count(REQUEUE)


def test_timeouts_and_preemptions_are_counted_apart_and_limited(task: Task) -> None:
    for status in (RUNNING, PREEMPTED, RUNNING, PREEMPTED, RUNNING):
        assert task.run(138, status)[0] == 0
    assert task.requeues.count("timeout") == 3
    assert task.requeues.count("preemption") == 2
    ended, error = task.run(138)
    assert ended == 138
    assert "timeouts of task 7_2: 4, of 3 allowed; it is not requeued; submit" in error
    assert task.asked.count("requeue 7_2") == 5
    # the other count goes on
    ended, error = task.run(138, PREEMPTED)
    assert ended == 0
    assert "preemptions of task 7_2: 3, of 100 allowed; it is requeued" in error


def test_slurm_may_end_the_command_that_requeues(task: Task) -> None:
    ended, error = task.run(138, ENDED="yes")
    assert "it is requeued" in error
    assert "could not" not in error
    assert ended == 0


def test_the_shell_outlives_the_signal_that_slurm_sends_to_all(task: Task) -> None:
    (task.folder / "bin" / "worker").write_text(
        "#!/bin/sh\ntrap 'exit 143' TERM\ntouch ready\nwhile :; do sleep 0.05; done\n"
    )
    process = task.start(0, CANCELLED)
    deadline = time.monotonic() + 30
    while not (task.folder / "ready").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert process.poll() is None
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for srun in children:
        for worker in Path(f"/proc/{srun}/task/{srun}/children").read_text().split():
            os.kill(int(worker), signal.SIGTERM)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "was cancelled" in error


def test_the_worker_gets_its_words_and_its_cores(task: Task) -> None:
    task.write(["worker", "--models", HOSTILE, "$HOME", ""])
    assert task.run(0) == (0, "")
    assert (task.folder / "words.txt").read_text() == f"--models\n{HOSTILE}\n$HOME\n\n"
    assert "OMP_NUM_THREADS=2\n" in (task.folder / "environment.txt").read_text()
    assert not list(task.folder.rglob("oops"))


def test_a_secret_url_comes_from_the_environment(task: Task) -> None:
    task.write(["worker"], secret=True)
    ended, error = task.run(0, MTDLAB_STORAGE="")
    assert ended == 2
    assert "MTDLAB_STORAGE: export it with the URL of the database" in error
    assert not (task.folder / "words.txt").exists()
    assert task.run(0, MTDLAB_STORAGE="postgresql+psycopg://me:secret@host/db") == (0, "")


def test_it_runs_only_as_an_array(task: Task) -> None:
    ended, error = task.run(0, SLURM_ARRAY_JOB_ID="")
    assert (ended, "SLURM_ARRAY_JOB_ID: submit this script with sbatch" in error) == (2, True)


def test_a_folder_that_a_node_lacks_ends_the_task(task: Task) -> None:
    script = task.folder / "own.sbatch"
    script.write_text(script.read_text().replace("cd -- ", "cd -- /no/such"))
    ended, error = task.run(0)
    assert ended == 2
    assert "/no/such" in error
