"""A sweep runs the trials of a study that are not done yet.

It is idempotent: run again it resumes the study, and sweeps that run at the same time share it.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from joblib import Parallel, delayed, parallel_config

from mtdlab.config import StudySpec
from mtdlab.errors import StorageError
from mtdlab.store import FINISHED, FinishedRow, Look, ProgressReader, Store
from mtdlab.sweep.finished import FinishedTrial
from mtdlab.sweep.open_study import describe_ranking, open_study
from mtdlab.sweep.preflight import check_before_sweep, check_requirements
from mtdlab.sweep.progress import Display, Tally
from mtdlab.sweep.signals import StopRequest, ctrl_c_ignored, exit_code, stop_on_signals
from mtdlab.terminal import print_text

MODELS = Path("models")
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class SweepResult:
    """The state of a study after a sweep: trials by state, and the exit code.

    select_by  the score that ranks the trials; best  the first by it, None before there is one;
    look  the last look at the verdict, None without one; failures  the failed trials, by number.
    """

    study: str
    storage: str = field(repr=False)
    metric: str
    select_by: str
    best: FinishedRow | None
    counts: dict[str, int]
    ran: int
    seconds: float
    exit_code: int
    look: Look | None = None
    failures: tuple[FinishedRow, ...] = ()

    @property
    def planned(self) -> int:
        """The number of trials of the study."""
        return sum(self.counts.values())


def sweep(
    spec: StudySpec,
    url: str,
    *,
    models: Path = MODELS,
    jobs: int | None = None,
    jobs_per_gpu: int = 1,
    retry_failed: bool = False,
    command: str = "",
) -> SweepResult:
    """Run or resume a study with `jobs` worker processes; by default one per core, on a machine
    with GPUs `jobs_per_gpu` on each.

    The best trial's model is kept in `models`, in a folder named after the study.

    Raises MtdlabError where the study was begun with other settings than the file's, or where
    an encoder or a text is missing; StorageError where the database fails.
    """
    started = time.perf_counter()
    checked = check_before_sweep(spec, url, models.absolute(), retry_failed=retry_failed)
    store = open_study(spec, url, command, notify=partial(print_text, file=sys.stderr))
    if retry_failed:
        store.retry_failed()
    if not checked and store.counts().get("WAITING"):
        # a complete study that was deleted through Optuna begins again
        check_requirements(spec, models.absolute())
    ran, code = 0, 0
    if store.counts().get("WAITING") or spec.until:
        with stop_on_signals() as stop:
            workers = (jobs, jobs_per_gpu)
            ran = _run_until_done(spec, url, models.absolute(), store, workers, stop)
            code = exit_code(stop) if stop.path.exists() else 0
    counts = store.counts()
    return SweepResult(
        study=spec.name,
        storage=url,
        metric=spec.metric,
        select_by=store.select_by(spec.metric),
        best=store.best_trial(),
        counts=counts,
        ran=ran,
        seconds=time.perf_counter() - started,
        exit_code=code or (3 if counts.get("FAIL") else 0),
        look=store.last_look(),
        failures=tuple(store.failures()) if counts.get("FAIL") else (),
    )


def _run_until_done(
    spec: StudySpec,
    url: str,
    models: Path,
    store: Store,
    workers: tuple[int | None, int],
    stop: StopRequest,
) -> int:
    """Run what waits and, in a study with `until`, what its looks add; returns how many ran."""
    ran = 0
    if store.counts().get("WAITING"):
        ran = _run_waiting(spec, url, models, store, workers, stop)
    if spec.until is None:
        return ran
    # imported here, since it imports pandas and SciPy
    from mtdlab.sweep.looks import advance

    while not stop.path.exists() and advance(spec, url, store, stop):
        ran += _run_waiting(spec, url, models, store, workers, stop)
    return ran


def _run_waiting(
    spec: StudySpec,
    url: str,
    models: Path,
    store: Store,
    workers: tuple[int | None, int],
    stop: StopRequest,
) -> int:
    # torch takes seconds to import, and a complete study does not need it
    from mtdlab.sweep.precision import fix_precision
    from mtdlab.sweep.slots import default_jobs
    from mtdlab.sweep.worker import run_next

    difference = fix_precision(spec, store)
    counts = store.counts()
    jobs, jobs_per_gpu = workers
    # another sweep may have claimed every trial since: then there is nothing to do
    jobs = min(jobs or default_jobs(jobs_per_gpu), max(1, counts.get("WAITING", 0)))
    finished = sum(counts.get(state, 0) for state in FINISHED)
    ran = 0
    ranked_by = store.select_by(spec.metric)
    tally = Tally(sum(counts.values()), finished, jobs, ranked_by, spec.known)
    with Display(tally) as display:
        for note in filter(None, (difference, describe_ranking(spec, store))):
            display.message(note)
        with _updating(display, ProgressReader(url, store.study_id)):
            while (waiting := store.counts().get("WAITING")) and not stop.path.exists():
                for trial in _trials(run_next, (spec, url, models, stop), jobs, waiting):
                    ran += 1
                    display.finished(trial)
                # trials that still wait may need parameters that another sweep is drawing
                time.sleep(POLL_SECONDS if waiting else 0)
        if stop.path.exists():
            display.message("Interrupted. Rerun to resume.")
    return ran


def _trials(
    run_next: Callable[..., FinishedTrial | None],
    arguments: tuple[StudySpec, str, Path, StopRequest],
    jobs: int,
    count: int,
) -> Iterator[FinishedTrial]:
    """The results of `count` calls of `run_next` in `jobs` processes, as they finish."""
    from mtdlab.sweep.slots import threads_each

    with parallel_config("loky", inner_max_num_threads=threads_each(jobs)):
        workers = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        with ctrl_c_ignored():
            finished: Iterable[FinishedTrial | None] = workers(
                delayed(_in_folder)(Path.cwd(), run_next, *arguments) for _ in range(count)
            )
        yield from (trial for trial in finished if trial is not None)


def _in_folder(
    folder: Path, run_next: Callable[..., FinishedTrial | None], *arguments: object
) -> FinishedTrial | None:
    """Call `run_next` where the sweep was started.

    joblib may hand out a worker of an earlier sweep of this process, whose working folder was
    another: relative paths of texts and of the database would be looked up there.
    """
    os.chdir(folder)
    return run_next(*arguments)


@contextmanager
def _updating(display: Display, reader: ProgressReader) -> Iterator[None]:
    """Update the display from the database, in a thread of its own."""
    over = threading.Event()

    def update() -> None:
        while not over.wait(POLL_SECONDS):
            # a failed read is repeated soon; it must not end the sweep
            with suppress(StorageError):
                display.update(*reader.read())

    thread = threading.Thread(target=update, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
