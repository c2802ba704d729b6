"""Processes of a sweep that die: what is repaired, how often, and what is left."""

import os
import signal
import time
from pathlib import Path

import pytest
from stub_sweep import POINTS, StubSweep

from mtdlab import load_study
from mtdlab.training.checkpoint import MANIFEST


def make(folder: Path, **options: object) -> StubSweep:
    return StubSweep(folder, configurations=2, seeds=2, steps=6, options=options)


def test_a_killed_worker_is_replaced_and_its_trial_resumed(tmp_path: Path) -> None:
    """Of two workers one is killed in training, and one where a model is written."""
    study = make(tmp_path, seconds=0.01, die=["after manifest", "export"])
    printed = study.run("--jobs", "2")
    study.assert_complete()
    attempts = study.attempts()
    assert len({process for process, _, _ in attempts}) >= 3
    assert [row for _, row, step in attempts if step > 0] != []
    assert printed.count("a worker process died (signal 9: Killed)") == 2
    # forgotten with the next checkpoint, of which there is none after a model
    assert study.query("SELECT sum(deaths) FROM mtdlab_trials") == [(1,)]


@pytest.mark.slow
def test_a_model_whose_saving_kills_the_process_does_not_cost_the_result(tmp_path: Path) -> None:
    study = StubSweep(tmp_path, configurations=2, seeds=1, options={"die_in_export": True})
    study.run("--jobs", "2")
    study.assert_complete()
    notes = [note for (note,) in study.query("SELECT note FROM mtdlab_trials")]
    assert any("model not saved: the trial's process has died 2 times" in note for note in notes)


@pytest.mark.slow
def test_a_killed_trial_of_the_baseline_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    study = StubSweep(tmp_path, configurations=2, seeds=1, steps=40, options={"seconds": 0.02})
    with (tmp_path / "study.yaml").open("a") as file:
        file.write("baseline: {temperature: 0.09}\n")
    # it runs after the others of its seed
    with study.running("--jobs", "1", attempts=3) as process:
        saved = tmp_path / "models" / ".checkpoints"
        manifest = f"*/stubs/baseline-0/step-*/{MANIFEST}"
        assert study.wait_until(lambda: any(saved.glob(manifest)), process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    study.run("--jobs", "1")
    rows = study.query("SELECT role, state, score FROM mtdlab_trials ORDER BY position")
    assert [row[:2] for row in rows] == [*[("search", "COMPLETE")] * 2, ("baseline", "COMPLETE")]
    assert rows[-1][2] == pytest.approx(0.09 * sum(range(41)))
    begun_at = [step for _, _, step in study.attempts()]
    assert begun_at[:3] == [0, 0, 0]
    assert begun_at[3] > 0
    assert study.query("SELECT count(*) FROM trials WHERE state = 'COMPLETE'") == [(2,)]
    assert study.leftovers() == []


@pytest.mark.slow
def test_a_fork_that_a_method_leaves_ends_at_the_next_step(tmp_path: Path) -> None:
    """It would record the trial, and go on as a second sweep that prints its own end."""
    study = StubSweep(tmp_path, configurations=1, seeds=1, steps=6, options={"fork": True})
    printed = study.run("--jobs", "1")
    study.assert_complete()
    assert (tmp_path / "forked.txt").read_text() == "1"
    assert "raised ClaimLost: only the process that claimed a trial may report" in printed


@pytest.mark.slow
def test_a_trial_that_kills_its_sweep_three_times_fails(tmp_path: Path) -> None:
    """With one worker the sweep dies itself: the next one finds its trial and counts the death."""
    study = StubSweep(tmp_path, configurations=1, seeds=1, options={"always_die": 0})
    for deaths in range(3):
        assert study.query("SELECT max(deaths) FROM mtdlab_trials") == [(deaths - 1,)][:deaths]
        with study.running("--jobs", "1") as process:
            assert process.wait(120) == -signal.SIGKILL
    printed = study.run("--jobs", "1", code=3)
    reason = "its process died 3 times (at last: it was found dead by a sweep)"
    assert reason in " ".join(printed.split())
    assert study.query("SELECT state, reason_code FROM mtdlab_trials") == [("FAIL", "interrupted")]
    assert study.query("SELECT state FROM trials") == [("FAIL",)]
    # its checkpoint is kept: with --retry-failed it continues from there
    study.set_options({})
    study.run("--jobs", "1", "--retry-failed")
    study.assert_complete()
    assert [step for _, _, step in study.attempts()] == [0, 2, 2, 2]


@pytest.mark.slow
def test_a_trial_that_kills_three_workers_fails_and_the_others_run(tmp_path: Path) -> None:
    study = StubSweep(tmp_path, configurations=1, seeds=2, options={"always_die": 1})
    printed = study.run("--jobs", "2", code=3)
    assert printed.count("a worker process died (signal 9: Killed)") == 3
    assert "process died 3 times (at last: signal 9: Killed)" in " ".join(printed.split())
    rows = study.query("SELECT state, reason_code, deaths, seed FROM mtdlab_trials ORDER BY seed")
    assert rows == [("COMPLETE", "", 0, 0), ("FAIL", "interrupted", 3, 1)]
    assert study.leftovers() == []
    frame = load_study("stubs", str(study.database)).trials
    assert frame.loc[frame["seed"] == 1, "reason_code"].tolist() == ["interrupted"]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("point", POINTS)
def test_a_death_at_any_point_loses_nothing(tmp_path: Path, point: str, jobs: str) -> None:
    """With one worker the sweep itself dies, and the next one continues."""
    study = make(tmp_path, die=[point])
    if jobs == "1":
        with study.running("--jobs", jobs) as process:
            assert process.wait(120) == -signal.SIGKILL
    study.run("--jobs", jobs)
    assert (tmp_path / f"died-{point.replace(' ', '-')}").exists()
    study.assert_complete()


@pytest.mark.slow
def test_a_trial_of_another_sweep_that_dies_is_run_before_this_one_ends(tmp_path: Path) -> None:
    """The other one dies after this one has started, so that only its last look finds it."""
    study = StubSweep(tmp_path, configurations=2, seeds=1, steps=60, options={"seconds": 0.05})
    with (
        study.running("--jobs", "1", attempts=1) as first,
        study.running("--jobs", "1", attempts=2) as second,
    ):
        os.kill(first.pid, signal.SIGKILL)
        first.wait(30)
        _, error = second.communicate(timeout=120)
    assert second.returncode == 0, error
    study.assert_complete()


@pytest.mark.slow
def test_a_worker_that_returns_after_it_was_presumed_dead_discards_its_result(
    tmp_path: Path,
) -> None:
    """It has another name of the machine, so that its heartbeat alone tells that it lives."""
    options = {"seconds": 0.02, "host": "elsewhere"}
    study = StubSweep(tmp_path, configurations=1, seeds=1, steps=100, options=options)
    with study.running("--jobs", "1", attempts=1) as first:
        # its first heartbeat has ended: a stopped process would keep the lock of the database
        time.sleep(0.5)
        os.kill(first.pid, signal.SIGSTOP)
        # until it has been silent for longer than that
        time.sleep(1)
        study.set_options({"seconds": 0.02, "silent_seconds": 1})
        with study.running("--jobs", "1", attempts=2) as second:
            os.kill(first.pid, signal.SIGCONT)
            _, error = first.communicate(timeout=120)
            assert "Traceback" not in error
            second.communicate(timeout=120)
    assert (first.returncode, second.returncode) == (0, 0)
    assert "sts_dev" not in error
    study.assert_complete()
