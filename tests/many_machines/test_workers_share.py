"""Workers that share a study through its database alone, as on many machines."""

import re
import signal

import pytest

from tests.many_machines.conftest import TRIALS, Runs, ended


def test_workers_run_what_a_sweep_has_recorded(runs: Runs) -> None:
    printed = runs.run("sweep", "own.yaml", "--jobs", "0")
    assert f"0 of {TRIALS} trials done ({TRIALS} waiting); 0 run now" in printed
    assert not runs.events("begin")
    workers = [runs.mtdlab("worker", "--study", "own") for _ in range(2)]
    printed_of = [ended(worker) for worker in workers]
    runs.assert_complete()
    ran = [int(re.findall(r"(\d+) run now", printed)[0]) for printed in printed_of]
    assert sum(ran) == TRIALS
    # the command that resumes the study stays that of its sweep
    assert str(runs.store.study().invocation).startswith("mtdlab sweep own.yaml")


@pytest.mark.slow
def test_a_worker_takes_the_profile_and_set_of_the_sweep(runs: Runs) -> None:
    """They are in no file that a worker could read."""
    (runs.folder / "own.yaml").write_text(
        "study: own\nmetric: accuracy\ntrainer: {steps: 3, seconds: 0.01}\n"
        "search: {rate: [1.0]}\nprofiles: {two: {seeds: [7, 8]}}\n"
    )
    runs.run("sweep", "own.yaml", "--profile", "two", "--set", "trainer.steps=2", "--jobs", "0")
    ended(runs.command("rename", "own-two", "renamed"))
    printed = runs.run("worker", "--study", "renamed")
    assert "2 of 2 trials done" in printed
    assert runs.events("end 2").keys() == {"1.0-7", "1.0-8"}


@pytest.mark.slow
def test_a_killed_worker_loses_no_trial(runs_on_server: Runs) -> None:
    runs = runs_on_server
    runs.write(seconds=0.1, seeds=2)
    runs.run("sweep", "own.yaml", "--jobs", "0")
    first, second = (runs.mtdlab("worker", "--study", "own", "--wait") for _ in range(2))
    runs.wait_for(lambda: len(runs.events("end")) >= 3)
    first.send_signal(signal.SIGKILL)
    runs.hurry()
    ended(first, -signal.SIGKILL)
    ended(second)
    runs.assert_complete(killed=1)
    assert sum(runs.events("begin").values()) in (runs.trials, runs.trials + 1)


@pytest.mark.slow
def test_stop_reaches_every_worker_through_the_database(runs_on_server: Runs) -> None:
    runs = runs_on_server
    runs.write(seconds=0.2, seeds=1)
    runs.run("sweep", "own.yaml", "--jobs", "0")
    assert "no sweep or worker runs study own" in ended(runs.command("stop", "own"))
    workers = [runs.mtdlab("worker", "--study", "own") for _ in range(2)]
    runs.wait_for(lambda: len(runs.events("begin")) >= 2)
    printed = ended(runs.command("stop", "own"))
    for worker in workers:
        assert f"requested to stop: process {worker.pid} on " in printed
    for worker in workers:
        # as by SIGTERM
        assert "Interrupted. Rerun to resume." in ended(worker, 143)
    counts = runs.store.counts()
    assert counts["WAITING"] >= 1
    assert "RUNNING" not in counts
    assert runs.store.live_sweeps() == []
    runs.hurry()
    runs.run("worker", "--study", "own")
    runs.assert_complete()
    # a trial that was stopped went on from its checkpoint
    assert sum(runs.events("begin 0").values()) == runs.trials
