"""The default study on each engine, one of whose workers is killed. Slurm's is in tests/long."""

import signal
import time

import optuna
import pytest

from mtdlab.store import list_studies
from mtdlab.sweep.optuna_study import open_storage
from tests.many_machines.conftest import Runs, ended
from tests.many_machines.test_dask_cluster import DaskCluster

TRIALS = 56
SECONDS = 3 * 3600


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sweep", "workers", "dask"])
def test_the_default_study_is_complete_after_a_kill(runs_on_server: Runs, engine: str) -> None:
    runs = runs_on_server
    started = time.perf_counter()
    if engine == "sweep":
        killed, last = (runs.start("mtdlab", "sweep", "mtd", "--jobs", "1") for _ in range(2))
    elif engine == "workers":
        ended(runs.start("mtdlab", "sweep", "mtd", "--jobs", "0"))
        words = ("mtdlab", "worker", "--study", "mtd", "--wait")
        killed, last = (runs.start(*words) for _ in range(2))
    else:
        cluster = DaskCluster(runs)
        for _ in range(2):
            cluster.start_worker()
        killed = cluster.workers[0]
        words = ("mtdlab", "sweep", "mtd", "--backend", "dask", "--scheduler", cluster.address)
        last = runs.start(*words)
    runs.wait_for(lambda: finished(runs) >= 4, SECONDS)
    killed.send_signal(signal.SIGKILL)
    runs.wait_for(lambda: last.poll() is not None, SECONDS)
    printed = ended(last)
    assert f"is complete: {TRIALS} of {TRIALS} trials done" in printed
    trials = optuna.load_study(study_name="mtd", storage=open_storage(runs.url)).trials
    assert [trial.state.name for trial in trials] == ["COMPLETE"] * TRIALS
    pairs = {(trial.params["ema_decay"], trial.user_attrs["seed"]) for trial in trials}
    assert len(pairs) == TRIALS
    print(f"\n{engine}: {TRIALS} trials in {time.perf_counter() - started:.0f} s")


def finished(runs: Runs) -> int:
    """How many trials are complete; 0 before there is a study."""
    try:
        studies = list_studies(runs.url)
    except Exception:
        return 0
    return sum(study.counts.get("COMPLETE", 0) for study in studies)
