"""Signals at random moments of a sweep: exit code, trials, processes and folders that are left.

Each run prints nothing; the last line counts the runs, lost and doubled trials, and other faults.
"""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

import pytest
from stub_sweep import StubSweep, wait_for_group, workers_of

RUNS = int(os.environ.get("MTDLAB_SIGNAL_RUNS", "100"))
SEED = int(os.environ.get("MTDLAB_TEST_SEED", "0"))
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
TARGETS = ("sweep", "worker", "group", "twice")
STOP_SECONDS = 240.0
"""Until a sweep has stopped: a worker that is still importing stops after that, which takes most
of a minute on a busy machine."""
END_SECONDS = 25.0
"""Until the last process of a stopped sweep has ended, on a busy machine."""


def send(sweep: int, number: signal.Signals, target: str) -> bool:
    """Send a signal; False if there is no worker to send it to."""
    if target == "group":
        os.killpg(sweep, number)
        return True
    receivers = workers_of(sweep) if target == "worker" else [sweep]
    if not receivers:
        return False
    os.kill(random.choice(receivers), number)
    if target == "twice":
        time.sleep(0.7)
        with suppress(ProcessLookupError):
            os.kill(sweep, number)
    return True


def run_once(study: StubSweep, number: signal.Signals, target: str, jobs: int, wait: float) -> str:
    """Run a sweep and send a signal after `wait` seconds; the fault that was found."""
    with study.running("--jobs", str(jobs)) as process:
        deadline = time.monotonic() + wait
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        sent = process.poll() is None and send(process.pid, number, target)
        while not sent and process.poll() is None:
            sent = send(process.pid, number, target)
            time.sleep(0.01)
        try:
            _, error = process.communicate(timeout=STOP_SECONDS)
        except TimeoutExpired:
            return "did not end"
        left = wait_for_group(process.pid, END_SECONDS)
    code = process.returncode
    # the shell shows 128 + n for a process that the signal ended before it was handled
    ended = code in (128 + number, -number) or (
        code == 0 and study.states() == {"COMPLETE": study.planned}
    )
    running = study.states().get("RUNNING", 0) if target != "twice" else 0
    faults = {
        f"exit code {code}": not ended,
        f"traceback: {error}": "Traceback" in error or "Exception" in error,
        f"{running} running": running > 0,
        f"processes {left}": bool(left),
        f"left {study.leftovers()}": bool(study.leftovers()),
    }
    return "; ".join(text for text, found in faults.items() if found)


@pytest.mark.slow
def test_signals_at_random_moments(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    faults, sent, finished = [], 0, 0
    longest = 12.0
    for run in range(RUNS):
        options = {"seconds": 0.02, "export_seconds": 0.2}
        study = StubSweep(tmp_path / str(run), configurations=4, seeds=3, steps=30, options=options)
        number, target = SIGNALS[run % 4], TARGETS[run // 4 % 4]
        jobs, wait = rng.choice((1, 2, 2)), rng.uniform(0, longest)
        if jobs == 1 and target == "worker":
            jobs = 2
        fault = run_once(study, number, target, jobs, wait)
        sent += 1
        finished += study.states() == {"COMPLETE": study.planned}
        if fault:
            faults.append(f"{number.name} to {target}, {jobs} jobs, after {wait:.2f} s: {fault}")
        print(faults[-1] if fault else f"{number.name} {target} {jobs} {wait:.1f}", flush=True)
    print(f"{sent} signals (seed {SEED}), {finished} after the end, {len(faults)} faults")
    assert faults == []
