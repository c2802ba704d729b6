"""The default study on each engine, one of whose three workers is killed."""

import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

import optuna
import pytest
from slurm_cluster import missing_programs, running_cluster

from mtdlab.errors import MtdlabError
from mtdlab.store.frames import load_frames
from mtdlab.store.progress import list_studies
from mtdlab.store.recorded import read_recorded
from mtdlab.store.store import Store
from tests.many_machines.conftest import Runs, ended
from tests.many_machines.test_dask_cluster import DaskCluster
from tests.postgresql import optuna_storage

COMPLETE = re.compile(r"complete, (\d+) of \1 trials done")
WORKERS = 3
KILLED_AFTER = 4
SECONDS = 2 * 3600

Kill = Callable[[], None]
Engine = Callable[[Runs, ExitStack], tuple[Kill, Callable[[], bool]]]
"""Starts the workers; how to kill one, and whether the others have ended."""


def sweeps(runs: Runs, _: ExitStack) -> tuple[Kill, Callable[[], bool]]:
    """Three sweeps that share the study."""
    return processes(runs, ("sweep", "mtd", "--jobs", "1"))


def workers(runs: Runs, _: ExitStack) -> tuple[Kill, Callable[[], bool]]:
    """Three workers, as on three machines."""
    ended(runs.command("sweep", "mtd", "--jobs", "0"))
    return processes(runs, ("worker", "--study", "mtd", "--wait"))


def processes(runs: Runs, words: tuple[str, ...]) -> tuple[Kill, Callable[[], bool]]:
    """The same command three times. One may end while the other's last trial is running."""
    killed, *others = (runs.command(*words) for _ in range(WORKERS))

    def complete() -> bool:
        if any(process.poll() is None for process in others):
            return False
        printed = [ended(process) for process in others]
        assert any(COMPLETE.search(text) for text in printed)
        return True

    return killed.kill, complete


def dask(runs: Runs, _: ExitStack) -> tuple[Kill, Callable[[], bool]]:
    """One sweep on a dask cluster of three workers."""
    cluster = DaskCluster(runs)
    for _ in range(WORKERS):
        cluster.start_worker()
    sweep = runs.command("sweep", "mtd", "--backend", "dask", "--scheduler", cluster.address)

    def complete() -> bool:
        if sweep.poll() is None:
            return False
        assert COMPLETE.search(ended(sweep))
        return True

    return cluster.workers[0].kill, complete


def slurm(runs: Runs, context: ExitStack) -> tuple[Kill, Callable[[], bool]]:
    """An array of three tasks on a Slurm cluster of one node."""
    if missing := missing_programs():
        pytest.skip(f"no Slurm cluster can be started: {', '.join(missing)} not installed")
    cluster = context.enter_context(running_cluster(user_signal=True))
    resources = ("--tasks", str(WORKERS), "--time", "120", "--sbatch", "mem=900M", "--no-measure")
    ended(runs.command("slurm", "mtd", *resources))
    environment = f"ALL,OMP_NUM_THREADS=1,MTDLAB_STORAGE={runs.url}"
    cluster.run("sbatch", f"--export={environment}", str(runs.folder / "mtd.sbatch"))

    def kill() -> None:
        store = Store(runs.url, read_recorded(runs.url, "mtd").id)
        os.kill(store.owned()[0].owner["pid"], signal.SIGKILL)

    def complete() -> bool:
        cluster.start_waiting()
        return not cluster.queued()

    return kill, complete


@pytest.mark.slow
@pytest.mark.parametrize("engine", [sweeps, workers, dask, slurm])
def test_the_default_study_is_complete_after_a_kill(runs_on_server: Runs, engine: Engine) -> None:
    runs, started = runs_on_server, time.perf_counter()
    with ExitStack() as context:
        kill, complete = engine(runs, context)
        runs.wait_for(lambda: finished(runs) >= KILLED_AFTER, SECONDS)
        kill()
        runs.wait_for(complete, SECONDS)
    study = load_frames("mtd", runs.url, curves=False)
    recorded, beside = study.trials, study.baseline
    assert len(recorded) == study.planned
    assert beside is not None
    assert (beside.trials["state"] == "COMPLETE").sum() == beside.planned
    trials = optuna.load_study(study_name="mtd", storage=optuna_storage(runs.url)).trials
    states = Counter(trial.state.name for trial in trials)
    assert states == {"COMPLETE": len(recorded)}
    assert len(recorded) == len(recorded[["ema_decay", "seed"]].drop_duplicates())
    print(f"\n{engine.__name__}: {len(recorded)} trials in {time.perf_counter() - started:.0f} s")
    # the results are those of any other engine on the same processor
    print(f"mean score {recorded['score'].mean():.12f}")


def finished(runs: Runs) -> int:
    """How many trials are complete; 0 before there is a study."""
    try:
        studies = list_studies(runs.url)
    except MtdlabError:
        return 0
    return sum(study.counts.get("COMPLETE", 0) for study in studies)
