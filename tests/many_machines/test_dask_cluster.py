"""A sweep on a real dask cluster of several processes on this machine."""

import os
import re
import signal
from importlib.util import find_spec

import pytest
from forked_commands import ForkedCommand

from mtdlab.store.recorded import read_recorded
from mtdlab.store.store import Store
from tests.many_machines.conftest import INTERVALS, TRIALS, Runs, Started, ended

pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None, reason="the extra dask is not installed"
)


class DaskCluster:
    """A scheduler and workers, started as by `dask scheduler` and `dask worker`."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.workers: list[Started] = []
        self.address = ""
        self.scheduler = self.start_scheduler("tcp://127.0.0.1:0")

    def start_scheduler(self, host: str) -> Started:
        """Start a scheduler, at a free port or again at that of an earlier one."""
        file = self.runs.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        started = self.runs.start(
            *("distributed.cli.dask_scheduler", "--host", host, "--no-dashboard", "--no-show"),
            *("--scheduler-file", str(file)),
        )
        # the file is there before its content
        self.runs.wait_for(lambda: file.exists() and "tcp://" in file.read_text())
        self.address = re.findall(r"tcp://[\d.]+:\d+", file.read_text())[0]
        return started

    def start_worker(self, threads: int = 1) -> None:
        """Start a worker without a nanny, so that a signal reaches the process of its trial."""
        self.workers.append(
            self.runs.start(
                *("distributed.cli.dask_worker", self.address, "--nthreads", str(threads)),
                *("--no-nanny", "--no-dashboard", "--host", "127.0.0.1"),
                *("--death-timeout", "60"),
            )
        )

    def sweep(self, *options: str) -> ForkedCommand:
        """Start the sweep of the study on the cluster."""
        words = ("sweep", "own.yaml", "--backend", "dask", "--scheduler", self.address, *options)
        return self.runs.mtdlab(*words)


@pytest.mark.slow
def test_a_sweep_runs_on_a_cluster_whose_workers_are_killed_and_join(runs: Runs) -> None:
    runs.write(seconds=0.5)
    cluster = DaskCluster(runs)
    for _ in range(2):
        cluster.start_worker()
    sweep = cluster.sweep()
    # both workers are in tasks that end with the study
    runs.wait_for(lambda: "[1/12] trial " in sweep.printed())
    cluster.workers[0].send_signal(signal.SIGKILL)
    cluster.start_worker()
    # while the second worker is in a task that ends with the study
    runs.wait_for(lambda: str(cluster.workers[2].pid) in runs.processes())
    runs.hurry()
    printed = ended(sweep)
    assert "study own in sqlite" in printed
    assert f"complete, {TRIALS} of {TRIALS} trials done" in printed
    runs.assert_complete(killed=1)
    assert sum(runs.events("begin").values()) in (TRIALS, TRIALS + 1)
    assert runs.processes() == {str(worker.pid) for worker in cluster.workers}
    assert_failures_end_the_sweep(runs, cluster)


def assert_failures_end_the_sweep(runs: Runs, cluster: DaskCluster) -> None:
    """The tasks of the workers go on until they learn of the end of the sweep."""
    (runs.folder / "hurry").unlink()
    runs.write(seconds=0.2, fails=True)
    failing = cluster.sweep("--max-failed", "2", "--set", "study=failing")
    assert "ValueError: as the study asks" in ended(failing, 1)
    counts = Store(runs.url, read_recorded(runs.url, "failing").id).counts()
    assert 2 <= counts["FAIL"] < TRIALS


@pytest.mark.slow
def test_a_sweep_without_a_worker_says_so_and_ctrl_c_saves_the_trials(runs: Runs) -> None:
    # longer than the two seconds in which a task learns of it
    runs.write(seconds=1)
    cluster = DaskCluster(runs)
    sweep = cluster.sweep()
    runs.wait_for(lambda: says_that_no_worker_is_there(sweep, cluster))
    cluster.start_worker()
    runs.wait_for(lambda: runs.events("begin"))
    os.kill(sweep.pid, signal.SIGINT)
    assert "Interrupted. Rerun to resume." in ended(sweep, 130)
    assert runs.store.counts() == {"WAITING": TRIALS}
    again = cluster.sweep()
    runs.wait_for(lambda: sum(runs.events("begin").values()) == 2)
    # the worker has taken the trial up again where it was saved
    assert begun_at(runs)[1] >= 1
    os.kill(again.pid, signal.SIGTERM)
    ended(again, 143)
    cluster.workers[0].send_signal(signal.SIGKILL)
    # another sweep runs what is left
    left = cluster.sweep()
    runs.wait_for(lambda: says_that_no_worker_is_there(left, cluster))
    runs.hurry()
    runs.run("sweep", "own.yaml", "--jobs", "1")
    assert f"complete, {TRIALS} of {TRIALS} trials done" in ended(left)


def says_that_no_worker_is_there(sweep: ForkedCommand, cluster: DaskCluster) -> bool:
    said = f"no worker is connected to the dask scheduler {cluster.address}; the sweep waits"
    return said in sweep.printed().replace("\n", " ")


@pytest.mark.slow
def test_a_scheduler_that_is_started_again_goes_on(runs: Runs) -> None:
    runs.write(seconds=0.1)
    cluster = DaskCluster(runs)
    cluster.start_worker()
    sweep = cluster.sweep()
    runs.wait_for(lambda: len(runs.events("end")) >= 3)
    cluster.scheduler.send_signal(signal.SIGKILL)
    ended(cluster.scheduler, -signal.SIGKILL)
    cluster.workers[0].send_signal(signal.SIGKILL)
    cluster.start_scheduler(cluster.address)
    cluster.start_worker()
    ended(sweep)
    runs.assert_complete(killed=1)


@pytest.mark.slow
def test_options_that_do_not_fit_are_refused(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(INTERVALS, "mtdlab.sweep.cluster.CONNECT_SECONDS", 0.2)
    runs.run("sweep", "own.yaml", "--jobs", "0")
    for words, sentence in (
        ("--backend dask", "--backend dask: name --scheduler too"),
        ("--backend dusk", "--backend dusk: "),
        ("--scheduler tcp://127.0.0.1:1", "--scheduler tcp://127.0.0.1:1: needs --backend dask"),
        (
            "--backend dask --scheduler tcp://127.0.0.1:1 --jobs 2",
            "--jobs 2: a dask cluster has workers of its own",
        ),
        (
            "--backend dask --scheduler nobody:1",
            "the dask scheduler nobody:1 does not answer",
        ),
    ):
        assert sentence in runs.run("sweep", "own.yaml", *words.split(), code=2)


@pytest.mark.slow
def test_a_worker_with_several_threads_is_refused(runs: Runs) -> None:
    cluster = DaskCluster(runs)
    cluster.start_worker(threads=2)
    assert "start workers with --nthreads 1" in ended(cluster.sweep(), 2)
    assert not runs.events("begin")


def begun_at(runs: Runs) -> list[int]:
    """The step at which each trial began or went on."""
    return [int(line.split()[1]) for line in runs.log() if line.startswith("begin")]
