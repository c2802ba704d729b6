"""A small database as this schema version has it, as SQL: python FILE writes it anew.

Two studies, both interrupted: `grid` with a failed trial and with one whose model could not be
saved, `drawn` with a pruned one. Nothing was trained for them.
"""

import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from mtdlab.analysis.data.environment import Environment, RecordedCorpus, RecordedEncoder
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.config.reader import read_study
from mtdlab.evaluation.items import similarities
from mtdlab.settings import TrainerSettings
from mtdlab.store.claims import Result
from mtdlab.store.tables import SCHEMA_VERSION
from mtdlab.sweep import run
from mtdlab.trial import trainer, worker
from mtdlab.trial.signals import Interrupted

SQL = Path(__file__).parent / "data" / f"schema-{SCHEMA_VERSION}.sql"
GRID = """
study: grid
metric: sts_test
trainer: {batch_size: 8, steps: 4, evaluate_every: 2}
search:
  ema_decay: [0.5, 0.75]
  queue_size: {times: batch_size, values: [1, 2]}
  initial_queue_size: [0]
seeds: [0, 1]
"""
DRAWN = """
study: drawn
metric: sts_dev
trainer: {batch_size: 8, steps: 4, evaluate_every: 2, initial_queue_size: 0}
search:
  ema_decay: {low: 0.5, high: 0.9}
  queue_size: {low: 8, high: 64, step: 8}
sampler: random
pruner: median
trials: 3
seeds: [0, 1]
"""
NOTE = "model not saved: OSError: [Errno 28] No space left on device"
ENVIRONMENT = Environment(
    corpus=RecordedCorpus("builtin", 24_000, "sentences", "0f" * 32),
    encoder=RecordedEncoder("builtin", 890_000, "cls pooling"),
    device="cpu",
    precision="float32",
    threads=1,
)
STEP_CURVES = ("loss", "fgsm_changed", "ema_decay", "queue_fill")
EVALUATION_CURVES = ("score", "alignment", "uniformity", "mean_cosine")
Run = tuple[str, str]
COMPLETE = ("COMPLETE", "")
RUNS: dict[str, list[Run]] = {
    "grid": [COMPLETE, ("FAIL", "the loss is nan at step 3"), *[COMPLETE] * 4],
    "drawn": [COMPLETE, ("PRUNED", "pruned at step 2")],
}


def result_of(settings: TrainerSettings, index: int) -> Result:
    """A complete trial's result; curves and spectra are random numbers."""
    random = np.random.default_rng(index)
    arrays = {f"curve/{name}": random.random(4) for name in STEP_CURVES + EVALUATION_CURVES}
    for name in EVALUATION_CURVES:
        arrays[f"curve/{name}"][[0, 2]] = np.nan
    for moment in ("before", "after"):
        arrays[f"spectrum/{moment}"] = np.sort(random.random(5))[::-1]
    score = 40 + 10 * settings.ema_decay + settings.seed
    values = {
        "score": score,
        "score_before": 10.5,
        "alignment": 0.25,
        "uniformity": -2.5,
        "mean_cosine": 0.125,
        "best_step": 4,
        "wall_seconds": 1.5,
        "peak_memory": 2.0**29,
    }
    return Result(
        "COMPLETE",
        values=values,
        scores={"sts_dev": score + 1, "sts_test": score},
        arrays={name: array.astype(np.float32) for name, array in arrays.items()},
        environment=ENVIRONMENT,
        items={"sts_test": similarities(random.random(8), np.arange(8) % 5, "ab" * 32)},
    )


def replacement_of_training(runs: Iterator[tuple[int, Run]]) -> Any:
    """A replacement of `trainer.train_trial` that interrupts the sweep after the last run."""

    def train(monitor: Any) -> tuple[Result, None]:
        index, (state, reason) = next(runs, (0, ("", "")))
        if not state:
            monitor.run.stop.request()
            raise Interrupted
        if state == "COMPLETE":
            if index == 2:
                monitor.checkpoints.notes.append(NOTE)
            return result_of(monitor.settings, index), None
        code = "nan_loss" if state == "FAIL" else ""
        return Result(state, reason, environment=ENVIRONMENT, reason_code=code), None

    return train


def make(out: Path) -> None:
    """Write the database to `out`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        patch("mtdlab.trial.trainer.check_inputs"),
    ):
        for name, text in (("grid", GRID), ("drawn", DRAWN)):
            file = Path(folder) / f"{name}.yaml"
            file.write_text(text)
            runs = iter(list(enumerate(RUNS[name])))
            with patch.object(trainer, "train_trial", replacement_of_training(runs)):
                run.sweep(
                    read_study(file),
                    f"sqlite:///{out}",
                    run.Execution(jobs=1),
                    models=Path(folder) / "models",
                    invocation=Invocation("sweep", (f"{name}.yaml",)),
                )
            worker.open_in_process.cache_clear()


def restore(path: Path) -> Path:
    """Write the recorded database to `path`, which it returns."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(SQL.read_text(encoding="utf-8"))
    return path


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        make(Path(made) / "made.db")
        with closing(sqlite3.connect(Path(made) / "made.db")) as database:
            text = "\n".join(database.iterdump()) + "\n"
        SQL.write_text(re.sub(r"/[\w/]*tmp\w+", "/studies", text), encoding="utf-8")
