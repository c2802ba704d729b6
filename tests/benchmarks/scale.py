"""Seconds and memory of the commands by the number of recorded trials: python FILE [TRIALS ...].

The study has the levels of `mtd` and as many seeds as needed. Its trials are recorded with made-up
results: every table is filled as by a sweep of mtdlab's trainer.
"""

import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from mtdlab.analysis.data.environment import Environment
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.config.reader import read_study
from mtdlab.config.study import StudySpec
from mtdlab.store.claims import Result
from mtdlab.store.database import adding
from mtdlab.store.tables import ArrayRow, ScoreRow, StudyRow, TrialRow
from mtdlab.sweep.open_study import open_study
from mtdlab.trial.worker import without_seed

COUNTS = (1_000, 10_000, 100_000)
LEVELS = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.875, 0.9, 0.92, 0.94]
LEVELS += [0.95, 0.96, 0.965, 0.97, 0.975, 0.98, 0.985, 0.99, 0.9925, 0.995]
CURVES = ("loss", "queue_fill", "score", "alignment", "uniformity", "mean_cosine")
STEPS, SPECTRUM = 160, 128
RESULT = Result(
    "COMPLETE",
    values={
        "score": 40.0,
        "score_before": 30.0,
        "alignment": 0.3,
        "uniformity": -2.0,
        "mean_cosine": 0.1,
        "best_step": 80,
        "wall_seconds": 15.0,
        "peak_memory": 1e9,
    },
    scores={"sts_dev": 40.0, "sts_test": 40.0},
    arrays={f"curve/{name}": np.zeros(STEPS, np.float32) for name in CURVES}
    | {f"spectrum/{moment}": np.zeros(SPECTRUM, np.float32) for moment in ("before", "after")},
    environment=Environment(device="cpu", precision="float32", threads=1, processor="x"),
)
"""As large as a real one."""
PIECE = 2_000
"""Trials that are inserted at once."""


def write_study(folder: Path, trials: int) -> StudySpec:
    """A study file of so many trials."""
    path = folder / "many.yaml"
    path.write_text(
        f"study: many\ntrainer: {{batch_size: 64, queue_size: 512, steps: {STEPS}}}\n"
        f"search: {{ema_decay: {LEVELS}}}\nseeds: {list(range(trials // len(LEVELS)))}\n"
    )
    return read_study(path)


def fill(spec: StudySpec, url: str, waiting: int = 0) -> None:
    """Record every planned trial but the last `waiting` ones as complete."""
    store = open_study(spec, url, Invocation("sweep", ("many.yaml",)))
    random = np.random.default_rng(0)
    with adding(url) as session:
        rows = session.execute(
            select(TrialRow.id, TrialRow.seed, TrialRow.parameters).order_by(TrialRow.position)
        ).all()
        rows = rows[: len(rows) - waiting]
        for first in range(0, len(rows), PIECE):
            _fill(session, spec, first, rows[first:][:PIECE], random)
        session.execute(update(StudyRow).values(next_number=len(rows)))
    store.repair_copy()


def _fill(
    session: Session, spec: StudySpec, first: int, rows: Any, random: np.random.Generator
) -> None:
    known: dict[float, dict[str, Any]] = {}
    ended = {"state": "COMPLETE", "began": time.time(), "ended": time.time()}
    ended |= {**RESULT.values, "environment": RESULT.environment}
    trials, scores, arrays = [], [], []
    for number, row in enumerate(rows, start=first):
        decay = row.parameters["ema_decay"]
        if decay not in known:
            settings = spec.settings(row.parameters, 0)
            known[decay] = {"settings": without_seed(settings), "mtd": settings.mtd}
        score = 40 + 5 * decay + float(random.normal())
        own = known[decay] | {"score": score}
        trials.append({"id": row.id, "number": number, **ended, **own})
        scores += [{"trial_id": row.id, "task": task, "score": score} for task in RESULT.scores]
        for name, zeros in RESULT.arrays.items():
            values = -np.sort(-random.random(len(zeros), np.float32))
            arrays.append({"trial_id": row.id, "name": name, "values": values})
    session.execute(update(TrialRow), trials)
    session.execute(insert(ScoreRow), scores)
    session.execute(insert(ArrayRow), arrays)


def measure(folder: Path, url: str) -> Iterator[tuple[str, float, float]]:
    """Each command with its seconds and its peak memory in MB."""
    for words in (
        "studies",
        "plan many.yaml --no-measure",
        "sweep many.yaml --jobs 0",
        "show many",
        "report --study many",
    ):
        started = time.perf_counter()
        code, used = run(["mtdlab", *words.split(), "--storage", url], folder)
        assert code == 0, words
        yield words, time.perf_counter() - started, used


def run(words: list[str], folder: Path) -> tuple[int, float]:
    """Run a command to its end; its exit code, and its peak memory in MB."""
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024 / 1e6


def make(folder: Path, trials: int) -> None:
    """Make the study file and its database in a folder."""
    fill(write_study(folder, trials), f"sqlite:///{folder / 'many.db'}")


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for count in [int(argument) for argument in sys.argv[1:]] or COUNTS:
        with tempfile.TemporaryDirectory() as name:
            place = Path(name)
            # the peak memory of a command would count that of the process that starts it
            making = multiprocessing.get_context("spawn").Process(target=make, args=(place, count))
            making.start()
            making.join()
            size = (place / "many.db").stat().st_size / 1e6
            print(f"{count:,} trials, {size:.0f} MB")
            for command, seconds, memory in measure(place, f"sqlite:///{place / 'many.db'}"):
                print(f"  {command:30} {seconds:7.1f} s {memory:7.0f} MB", flush=True)
            [page] = place.glob("reports/**/*.html")
            print(f"  page: {page.stat().st_size / 1e6:.2f} MB")
