"""Processes that claim queued trials of one study: each trial is claimed once.

Without BEGIN IMMEDIATE two processes claim the same trial, which the second test shows.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from stub_store import new_store

from mtdlab.config.study import PlannedTrial

ROUNDS = int(os.environ.get("MTDLAB_POP_ROUNDS", "5"))
TRIALS, PROCESSES = 200, 4
POP = """
import json, sys, time
from pathlib import Path
from types import SimpleNamespace
from mtdlab.store import claims, database
from mtdlab.store.store import Store
url, go, immediate = sys.argv[1:]
if immediate == "no":
    database.event = SimpleNamespace(listen=lambda *_: None)
store, name = Store(url, 1), {"pid": int(Path("/proc/self/stat").read_text().split()[0])}
print("ready", flush=True)
while not Path(go).exists():
    time.sleep(0.001)
found = []
while (claim := store.claim(name)) is not None:
    found.append(claim.row)
print(json.dumps(found))
"""


def pop(folder: Path, immediate: str) -> list[int]:
    """The rows that the processes claimed of a study of `TRIALS`."""
    folder.mkdir()
    url = f"sqlite:///{folder / 'a.db'}"
    new_store(url, *(PlannedTrial(f"c{index}", 0, {"x": index}) for index in range(TRIALS)))
    command = [sys.executable, "-c", POP, url, str(folder / "go"), immediate]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    (folder / "go").touch()
    found: list[int] = []
    for process in processes:
        output, _ = process.communicate(timeout=300)
        found += json.loads(output)
    return found


@pytest.mark.slow
def test_queued_trials_are_claimed_once(tmp_path: Path) -> None:
    for round_ in range(ROUNDS):
        found = pop(tmp_path / str(round_), "yes")
        assert len(found) == len(set(found)) == TRIALS
    print(f"{ROUNDS} x {TRIALS} trials for {PROCESSES} processes: 0 claimed twice")


@pytest.mark.slow
def test_without_begin_immediate_a_trial_is_claimed_twice(tmp_path: Path) -> None:
    for round_ in range(10):
        found = pop(tmp_path / str(round_), "no")
        if len(found) != len(set(found)):
            return
    pytest.fail("no trial was claimed twice: the other test could not fail")
