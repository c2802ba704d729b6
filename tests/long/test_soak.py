"""Many stub trials in many processes, with a kill every few seconds: nothing is lost.

The memory, file handles and threads of the sweep's own process must level.
"""

import os
import random
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from stub_sweep import StubSweep, workers_of

MINUTES = float(os.environ.get("MTDLAB_SOAK_MINUTES", "10"))
TRIALS = int(os.environ.get("MTDLAB_SOAK_TRIALS", "2000"))
JOBS = int(os.environ.get("MTDLAB_SOAK_JOBS", "8"))
SEED = int(os.environ.get("MTDLAB_TEST_SEED", "0"))
KILL_SECONDS = (2.0, 6.0)
SEEDS = 10
MOST_GROWTH = 1.2
"""Of the memory between the first and the last quarter of the time."""


@dataclass(frozen=True)
class Use:
    """What a process holds: resident memory in MB, file handles, threads."""

    memory: float
    handles: int
    threads: int


def use_of(process: int) -> Use:
    """What a process holds now."""
    folder = Path(f"/proc/{process}")
    status = dict(
        line.split(":", 1) for line in (folder / "status").read_text().splitlines() if ":" in line
    )
    memory = float(status["VmRSS"].split()[0]) / 1024
    return Use(memory, len(list((folder / "fd").iterdir())), int(status["Threads"]))


@pytest.mark.slow
def test_kills_during_many_trials_lose_nothing(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    # the time of a trial, so that all take most of the minutes
    seconds = MINUTES * 60 * 0.7 * JOBS / TRIALS / 10
    options = {"seconds": seconds, "checkpoint_every": 5}
    configurations = TRIALS // SEEDS
    study = StubSweep(tmp_path, configurations, SEEDS, steps=10, options=options)
    kills, uses = 0, list[Use]()
    with study.running("--jobs", str(JOBS), "--retry-failed") as process:
        deadline = time.monotonic() + MINUTES * 60
        study.wait_until(lambda: len(study.attempts()) >= JOBS, process)
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(rng.uniform(*KILL_SECONDS))
            # a worker that has begun a trial: five that die while they start end a sweep
            begun = {worker for worker, _, _ in study.attempts()}
            with suppress(FileNotFoundError, ProcessLookupError, IndexError):
                victims = sorted(begun.intersection(workers_of(process.pid)))
                os.kill(rng.choice(victims), signal.SIGKILL)
                kills += 1
                uses.append(use_of(process.pid))
        _, error = process.communicate(timeout=3600)
    assert process.returncode in (0, 3), error
    assert "Traceback" not in error
    failed = study.states().get("FAIL", 0)
    if failed:
        # three kills hit the same trial by chance
        study.run("--jobs", "2", "--retry-failed")
    study.assert_complete()
    quarter = max(1, len(uses) // 4)
    first, last = uses[:quarter], uses[-quarter:]
    growth = max(use.memory for use in last) / max(use.memory for use in first)
    print(
        f"{study.planned} trials in {JOBS} processes, {kills} kills in {MINUTES:g} min (seed "
        f"{SEED}): 0 lost, 0 doubled, {failed} failed by three kills; memory x {growth:.2f}, "
        f"handles {max(use.handles for use in first)} -> {max(use.handles for use in last)}, "
        f"threads {max(use.threads for use in first)} -> {max(use.threads for use in last)}"
    )
    assert growth < MOST_GROWTH
    assert max(use.handles for use in last) <= max(use.handles for use in first) + 5
    assert max(use.threads for use in last) <= max(use.threads for use in first) + 2
