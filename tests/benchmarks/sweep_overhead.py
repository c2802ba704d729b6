"""What a trial costs besides its training: our sweep's path, and bare Optuna's.

All of them draw or set the same three parameters for an objective that does nothing, one trial
after another in this process, on a new SQLite file each. Planning the study and opening its
database are not timed; nor is the start of worker processes.
"""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import optuna
from scale import RESULT, SPECTRUM
from sqlalchemy import Connection, Engine, event

from mtdlab.config.method_study import MethodSpec
from mtdlab.config.search import Choices, Dimension
from mtdlab.config.study import Sampler, StudySpec
from mtdlab.store.claims import Result
from mtdlab.store.owner import this_process
from mtdlab.sweep.open_study import open_study
from mtdlab.trial import trainer, worker
from mtdlab.trial.monitor import TrialMonitor
from mtdlab.trial.samplers import distributions
from mtdlab.trial.signals import StopRequest
from mtdlab.trial.study import Job

CURVES, CURVE_STEPS = 8, 500
"""Of a trial's result, which ours stores and Optuna's lacks, and numbers in each."""
WRITING = ("INSERT", "UPDATE", "DELETE")


@dataclass
class WriteCounter:
    """Counts transactions that wrote: on SQLite each waits for the disk, so they are the cost."""

    count: int = 0
    _writing: set[Connection] = field(default_factory=set)

    def __enter__(self) -> "WriteCounter":
        event.listen(Engine, "before_cursor_execute", self._statement)
        event.listen(Engine, "commit", self._commit)
        return self

    def __exit__(self, *_: object) -> None:
        event.remove(Engine, "before_cursor_execute", self._statement)
        event.remove(Engine, "commit", self._commit)

    def _statement(self, connection: Connection, _cursor: Any, text: str, *_: Any) -> None:
        if text.lstrip().upper().startswith(WRITING):
            self._writing.add(connection)

    def _commit(self, connection: Connection) -> None:
        self.count += connection in self._writing
        self._writing.discard(connection)


@dataclass(frozen=True)
class Cost:
    """What one trial took: seconds, and transactions that wrote."""

    seconds: float
    writes: float


def study(trials: int, sampler: Sampler) -> StudySpec:
    """Three parameters; along a grid, `trials` points."""
    search: dict[str, Dimension] = {
        "ema_decay": Choices(tuple(np.linspace(0.5, 0.99, trials).tolist())),
        "temperature": Choices((0.05,)),
        "queue_size": Choices((512,)),
    }
    count = None if sampler == "grid" else trials
    return MethodSpec("bench", "sts_test", {}, search, (0,), sampler, "none", count, "")


def our_trials(folder: Path, trials: int, sampler: Sampler) -> Cost:
    """Trials by the sweep's own path, from claim to result, with one heartbeat each."""
    url, spec = f"sqlite:///{folder / sampler}.db", study(trials, sampler)
    stop = StopRequest()
    store = open_study(spec, url)
    sweep = store.begin_sweep(this_process())
    models = folder / "models"
    job = Job(spec, url, models)
    worker.open_in_process(job)
    with patch.object(trainer, "train_trial", _instant), WriteCounter() as writes:
        start = time.perf_counter()
        assert worker.work(job, sweep, stop)
        seconds = time.perf_counter() - start
    worker.open_in_process.cache_clear()
    assert store.counts() == {"COMPLETE": trials}
    return Cost(seconds / trials, writes.count / trials)


def optuna_trials(folder: Path, trials: int) -> Cost:
    """Trials by `study.ask` and `study.tell`, with the parameters of ours and a random sampler."""
    spec = study(trials, "random")
    bare = optuna.create_study(
        storage=f"sqlite:///{folder / 'optuna'}.db", sampler=optuna.samplers.RandomSampler(seed=0)
    )

    with WriteCounter() as writes:
        start = time.perf_counter()
        for _ in range(trials):
            bare.tell(bare.ask(distributions(spec)), 0.0)
        seconds = time.perf_counter() - start
    return Cost(seconds / trials, writes.count / trials)


def _instant(watch: TrialMonitor) -> tuple[Result, None]:
    """A result as large as a real one, after a single step that says it is alive."""
    watch(1, None)
    watch.run.heartbeat.beat()
    sizes = {f"curve/{number}": CURVE_STEPS for number in range(CURVES)}
    sizes |= {f"spectrum/{moment}": SPECTRUM for moment in ("before", "after")}
    arrays = {name: np.zeros(size, np.float32) for name, size in sizes.items()}
    return replace(RESULT, arrays=arrays), None
