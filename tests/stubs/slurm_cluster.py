"""A Slurm cluster of one node for the tests: munged, slurmctld and slurmd on the loopback.

They run in the foreground, as children of the test, with a configuration and sockets in a folder
of their own, and are ended by their process ids.
"""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import port_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "scancel")
CPUS = 8
"""Of the node, also where the machine has fewer: the tasks of the tests mostly sleep."""
MAX_ARRAY_SIZE = 3
RESTART_SECONDS = 6.0
"""A task that starts again in the second in which it was requeued is refused by slurmd, which has
just revoked its credential."""
CONFIGURATION = """
ClusterName=trial
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters={parameters}
ReturnToService=2
JobRequeue=1
MaxArraySize={size}
KillWait=10
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=16000 State=UNKNOWN
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime=60
PartitionName=harsh Nodes=ALL MaxTime=INFINITE PriorityTier=1 GraceTime=0
PartitionName=high Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
"""


def missing_programs() -> list[str]:
    """The programs of Slurm and munge that are not installed."""
    return [name for name in PROGRAMS if _find(name) is None]


def _find(name: str) -> str | None:
    # Debian keeps the daemons off the PATH of users
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


@dataclass
class Cluster:
    """A running cluster."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _waiting: dict[str, float] = field(default_factory=dict)

    @property
    def environment(self) -> Mapping[str, str]:
        """Of the commands of this cluster."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def run(self, *words: str, check: bool = True) -> str:
        """What a command prints; on standard error too where it fails."""
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            env=os.environ | self.environment,
            timeout=60,
            check=False,
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout + ("" if done.returncode == 0 else done.stderr)

    def queued(self, *states: str) -> list[str]:
        """The tasks in the queue, one a row, as ARRAYJOB_TASK; only those in these states."""
        given = [f"--states={','.join(states)}"] if states else []
        return self.run("squeue", "--noheader", "--array", "--format=%i", *given).split()

    def job(self, task: str) -> str:
        """What the controller knows of a task."""
        return self.run("scontrol", "show", "job", task)

    def start_waiting(self) -> None:
        """Start requeued tasks after `RESTART_SECONDS`: Slurm lets them wait for two minutes."""
        now, waiting = time.monotonic(), self.queued("PENDING")
        self._waiting = {task: self._waiting.get(task, now) for task in waiting}
        for task, since in self._waiting.items():
            if now - since > RESTART_SECONDS:
                self.run("scontrol", "update", f"JobId={task}", "StartTime=now", check=False)

    def start(self, name: str, *options: str) -> None:
        """Start a program; it writes into a file of its name."""
        program = _find(name)
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as out:
            self.processes[name] = subprocess.Popen(
                [program, *options],
                stdout=out,
                stderr=out,
                env=os.environ | self.environment,
                start_new_session=True,
            )

    def log(self) -> str:
        """The ends of what the programs have written."""
        files = (self.folder / f"{name}.out" for name in ("slurmctld", "slurmd"))
        return "\n".join(f"{path.name}:\n{path.read_text()[-6000:]}" for path in files)


@contextmanager
def running_cluster(*, user_signal: bool) -> Iterator[Cluster]:
    """A cluster whose node is idle.

    user_signal  whether preemption sends the signal of --signal (preempt_send_user_signal).
    """
    # a short path: that of a socket has at most 107 characters
    folder = Path(tempfile.mkdtemp(prefix="mtdlab-slurm-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    try:
        _configure(folder, user_signal)
        cluster.start(
            "munged", "--foreground", "--force", "--num-threads=1",
            *(f"--{name}={folder}/munge.{name.removesuffix('-file')}"
              for name in ("socket", "key-file", "log-file", "pid-file", "seed-file")),
        )  # fmt: skip
        _wait(cluster, lambda: (folder / "munge.socket").exists())
        cluster.start("slurmctld", "-D", "-c")
        cluster.start("slurmd", "-D", "-c")
        idle = ("sinfo", "--noheader", "--format=%t", "--partition=low")
        _wait(cluster, lambda: cluster.run(*idle, check=False).strip() == "idle")
        yield cluster
    finally:
        _end(cluster)
        shutil.rmtree(folder, ignore_errors=True)


def _configure(folder: Path, user_signal: bool) -> None:
    for name in ("state", "spool"):
        (folder / name).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    text = CONFIGURATION.format(
        host=socket.gethostname().split(".")[0],
        controller=port_for.select_random(),
        daemon=port_for.select_random(),
        folder=folder,
        user=os.environ.get("USER", "root") if os.geteuid() else "root",
        parameters="preempt_send_user_signal" if user_signal else "",
        size=MAX_ARRAY_SIZE,
        cpus=CPUS,
    )
    if not user_signal:
        text = text.replace("SlurmctldParameters=\n", "")
    (folder / "slurm.conf").write_text(text)


def _wait(cluster: Cluster, condition: object, seconds: float = 60) -> None:
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, cluster.log()
        time.sleep(0.2)


def _end(cluster: Cluster) -> None:
    """Cancel all tasks, wait for their processes, and end the programs, the last started first."""
    if "slurmd" in cluster.processes:
        for task in cluster.queued():
            cluster.run("scancel", "--full", "--signal=KILL", task, check=False)
            cluster.run("scancel", task, check=False)
        deadline = time.monotonic() + 60
        while cluster.queued() and time.monotonic() < deadline:
            time.sleep(0.5)
    for process in reversed(cluster.processes.values()):
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
