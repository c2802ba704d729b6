"""Sweeps that are killed at random moments and run again until they are complete.

The last line of each test counts what was tried, lost and doubled.
"""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
from stub_sweep import StubSweep, wait_for_group, workers_of

KILLS = int(os.environ.get("MTDLAB_KILLS", "200"))
SEED = int(os.environ.get("MTDLAB_TEST_SEED", "0"))
END_SECONDS = 30.0
"""Until the workers of a killed sweep have ended."""


def kill(process: int, target: str) -> bool:
    """Kill a sweep, a worker of it or all of them; False if there was nothing to kill."""
    if target == "group":
        os.killpg(process, signal.SIGKILL)
        return True
    receivers = workers_of(process) if target == "worker" else [process]
    with suppress(ProcessLookupError):
        for receiver in random.sample(receivers, min(1, len(receivers))):
            os.kill(receiver, signal.SIGKILL)
            return True
    return False


def kill_at_random(study: StubSweep, jobs: int, rng: random.Random, most: int) -> int:
    """Run a sweep until it ends or is killed; the number of kills, at most `most`.

    Of two workers one may be killed several times in one sweep, which goes on.
    """
    kills, began = 0, len(study.attempts())
    with study.running("--jobs", str(jobs)) as process:
        study.wait_until(lambda: len(study.attempts()) > began, process)
        while process.poll() is None and kills < most:
            time.sleep(rng.uniform(0, 0.6))
            target = rng.choice(("sweep", "group", "worker") if jobs > 1 else ("sweep",))
            kills += process.poll() is None and kill(process.pid, target)
            if target != "worker":
                break
        _, error = process.communicate(timeout=300)
        assert process.returncode in (0, 3, -signal.SIGKILL), error
        assert "Traceback" not in error
        assert wait_for_group(process.pid, END_SECONDS) == []
    return kills


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_kills_at_random_moments_lose_nothing(tmp_path: Path, jobs: int) -> None:
    rng, kills, studies, trials = random.Random(SEED), 0, 0, 0
    while kills < KILLS:
        options = {"seconds": 0.01, "export_seconds": 0.05, "checkpoint_every": 7}
        study = StubSweep(tmp_path / str(studies), 10, seeds=4, steps=40, options=options)
        while kills < KILLS and study.states() != {"COMPLETE": study.planned}:
            kills += kill_at_random(study, jobs, rng, KILLS - kills)
            # a trial that three kills hit by chance has failed
            if study.states().get("FAIL"):
                study.run("--jobs", str(jobs), "--retry-failed")
        study.run("--jobs", str(jobs))
        study.assert_complete()
        studies, trials = studies + 1, trials + study.planned
        print(f"{kills} kills", flush=True)
    print(f"{kills} kills with {jobs} workers (seed {SEED}), {trials} trials, 0 lost, 0 doubled")
