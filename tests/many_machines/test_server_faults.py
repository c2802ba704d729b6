"""Eight workers on one PostgreSQL server: undisturbed, disconnected, and while it restarts."""

import random
import time

import pytest
from pytest_postgresql.executors import PostgreSQLExecutor

from tests.many_machines.conftest import Runs, Started
from tests.postgresql import cut_connections, wait_until_ready

WORKERS = 8
SEEDS = 40
TRIALS = 160


def start_workers(runs: Runs, seconds: float) -> list[Started]:
    """Record the study of 160 trials, start its workers, wait until all of them run trials."""
    runs.write(seconds=seconds, seeds=SEEDS)
    runs.run("sweep", "own.yaml", "--jobs", "0")
    workers = [runs.mtdlab("worker", "--study", "own", "--wait") for _ in range(WORKERS)]
    runs.wait_for(lambda: len(runs.processes()) == WORKERS)
    return workers


def codes(workers: list[Started]) -> list[int]:
    """The exit codes of workers."""
    for worker in workers:
        worker.communicate(timeout=600)
    return [worker.returncode for worker in workers]


@pytest.mark.slow
def test_eight_workers_run_160_trials_once_each(runs_on_server: Runs) -> None:
    workers = start_workers(runs_on_server, 0.1)
    assert codes(workers) == [0] * WORKERS
    runs_on_server.assert_complete()
    assert sum(runs_on_server.events("begin").values()) == TRIALS


@pytest.mark.slow
def test_connections_that_are_cut_lose_no_trial(runs_on_server: Runs) -> None:
    runs, chance = runs_on_server, random.Random(0)
    workers = start_workers(runs, 0.4)
    cut = 0
    while runs.store.counts().get("WAITING", 0) > WORKERS:
        cut += cut_connections(runs.url)
        time.sleep(chance.uniform(0.2, 2))
    ended = codes(workers)
    print(f"\n{cut} connections cut; exit codes {ended}")
    runs.assert_complete(killed=cut)
    assert cut > 0
    assert ended == [0] * WORKERS


@pytest.mark.slow
def test_a_server_that_restarts_loses_no_trial(
    runs_on_server: Runs, postgresql_server: PostgreSQLExecutor
) -> None:
    runs, repeats = runs_on_server, 3
    workers = start_workers(runs, 0.4)
    for repeat in range(repeats):
        runs.wait_for(lambda done=40 * (repeat + 1): len(runs.events("end")) >= done)
        postgresql_server.stop()
        time.sleep(2)
        postgresql_server.start()
        wait_until_ready(runs.url)
    ended = codes(workers)
    print(f"\nexit codes {ended} after {repeats} restarts")
    runs.assert_complete(killed=WORKERS * repeats)
    assert ended == [0] * WORKERS
