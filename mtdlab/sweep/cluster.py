"""The workers of a dask cluster as those of a sweep: a task on each runs trials until none waits.

dask is used by itself and not through joblib, which on a cluster of one worker makes the calls in
the process of the sweep, and ends all calls when the scheduler is lost. Which worker runs which
trial is decided by the claim in the database alone: a task that dask runs twice claims other
trials.
"""

import logging
import os
import time
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mtdlab.errors import MtdlabError, nearest, one_line, require
from mtdlab.store.owner import HEARTBEAT_SECONDS
from mtdlab.store.restarts import retry_lost
from mtdlab.store.urls import absolute
from mtdlab.sweep.engine import Death, Engine, Work
from mtdlab.sweep.open_study import check_same_inputs
from mtdlab.trial.artifacts import Artifacts
from mtdlab.trial.heartbeat import call_repeatedly
from mtdlab.trial.signals import StopRequest
from mtdlab.trial.study import Job, objective_of
from mtdlab.trial.worker import open_in_process, report_error
from mtdlab.trial.worker import work as run_here

if TYPE_CHECKING:
    from distributed import Client, Future

BACKENDS = ("processes", "dask")
CONNECT_SECONDS = 10
"""Time to wait for a scheduler to answer."""
RECONNECT_SECONDS = 120.0
"""Time in which a scheduler that was lost may be started again."""
LOST = (CancelledError, OSError)
"""Errors of a task, or of a question to the scheduler, that was lost with its connection."""


def run_trials(job: Job, sweep: int) -> None:
    """Run trials in a process of the cluster until the sweep is over; an error is recorded."""
    stop = StopRequest()
    try:
        job.spec.ensure_imported()
        _check(job)
        store = open_in_process(job).store

        def obey() -> None:
            if store.has_ended(sweep):
                stop.request()

        obey()
        with call_repeatedly(HEARTBEAT_SECONDS, obey):
            run_here(job, sweep, stop)
    except Exception as error:
        report_error(job.url, sweep, error)


@lru_cache(maxsize=1)
def _check(job: Job) -> None:
    """Check once per process what the trials need, and that it has the inputs of the others."""
    found, store = objective_of(job.spec).check(job), open_in_process(job).store
    if warning := check_same_inputs(job.spec.name, store, found):
        logging.getLogger(__name__).warning(warning)
    if place := store.artifacts():
        Artifacts(place).check()


class Cluster(Engine):
    """The workers of a dask cluster, whose number may change while a sweep runs."""

    most = None
    names_processes = False

    def __init__(self, scheduler: str) -> None:
        """Connect at the first start."""
        self._scheduler = scheduler
        self._client: Client | None = None
        self._work: Work | None = None
        self._tasks: set[Future[Any]] = set()
        self._workers, self._is_deserted, self._is_over = 0, False, False

    @property
    def count(self) -> int:
        """How many tasks have not ended; without a worker they wait in the scheduler."""
        return len(self._tasks) if self._workers else 0

    def start(self, wanted: int, work: Work) -> None:
        """Submit a task for each worker that has none, up to `wanted` in all.

        Raises MtdlabError where the scheduler does not answer, or a worker has several threads.
        """
        self._work = work
        if self._client is None:
            self._client = connect(self._scheduler)
            self._count_workers(self._client)
        job = replace(work.study.job, url=absolute(work.study.job.url))
        # one waits in the scheduler where there is no worker yet
        for _ in range(min(wanted, max(1, self._workers)) - len(self._tasks)):
            self._tasks.add(self._client.submit(run_trials, job, work.sweep, pure=False))

    def _count_workers(self, client: "Client") -> None:
        """Count them. Says once that there is none, until one joins."""
        try:
            threads = client.nthreads()
        except LOST:
            return
        if any(count > 1 for count in threads.values()):
            raise MtdlabError(
                "a worker of the dask cluster has several threads, but trials share their "
                "process's random generators; start workers with --nthreads 1"
            )
        if not threads and not self._is_deserted:
            self.notify(
                f"no worker is connected to the dask scheduler {self._scheduler}; the sweep waits "
                f"for one: dask worker {self._scheduler} --nthreads 1"
            )
        self._workers, self._is_deserted = len(threads), not threads

    def deaths(self) -> list[Death]:
        """The tasks whose workers died, by dask's own count.

        Raises MtdlabError for a worker that cannot run trials, and where a scheduler that was lost
        does not come back.
        """
        if self._client is None:
            return []
        if self._client.status in ("closed", "closing"):
            self._client = self._reconnect() or self._client
        self._count_workers(self._client)
        ended = {task for task in self._tasks if task.done()}
        self._tasks -= ended
        return [Death(how) for how in map(_death_of, ended) if how]

    def _reconnect(self) -> "Client | None":
        """Connect again to a scheduler that was lost, and with it its tasks; None if stopped."""
        assert self._work is not None, "there is a connection"
        deadline = time.monotonic() + RECONNECT_SECONDS
        self._tasks.clear()
        while not (self._is_over or self._work.stop.requested()):
            try:
                return connect(self._scheduler)
            except MtdlabError:
                if time.monotonic() > deadline:
                    raise
        return None

    def stop(self) -> None:
        """Let the tasks end, which read in the database that they should."""
        self._is_over = True
        if (work := self._work) is not None:
            retry_lost(lambda: work.study.store.end_workers(work.sweep))

    def close(self) -> None:
        """Close the connection; a task that waits for a worker is given up."""
        if self._client is not None:
            self._client.close(timeout=CONNECT_SECONDS)


def _death_of(task: "Future[Any]") -> str:
    """How the workers of a task died, or empty. Raises MtdlabError for what others would meet."""
    error = None
    with suppress(*LOST):
        error = task.exception(timeout=CONNECT_SECONDS)
    if error is None or task.status == "cancelled":
        return ""
    if type(error).__name__ == "KilledWorker":
        return one_line(error)
    raise MtdlabError(
        f"a worker of the dask cluster cannot run trials: {one_line(error)}; install the "
        "same version of mtdlab for every worker"
    )


def connect(scheduler: str) -> "Client":
    """A client of a scheduler. Raises MtdlabError without dask, or if nobody answers."""
    require("--backend dask", "dask", "distributed")
    from distributed import Client

    # a scheduler that is lost is reported once, by this module
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        return Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise MtdlabError(
            f"the dask scheduler {scheduler} does not answer ({one_line(error)}); "
            "start it with dask scheduler, and rerun to resume"
        ) from None


def find_scheduler(backend: str, given: str | None, jobs: int | None) -> str | None:
    """The scheduler that --backend and --scheduler name; None for processes of this machine.

    By default that of DASK_SCHEDULER_ADDRESS. Raises MtdlabError where the options do not fit.
    """
    if backend not in BACKENDS:
        raise MtdlabError(f"--backend {backend}: {nearest(backend, BACKENDS)}")
    if backend == "processes":
        if given:
            raise MtdlabError(f"--scheduler {given}: needs --backend dask")
        return None
    if jobs:
        raise MtdlabError(
            f"--jobs {jobs}: a dask cluster has workers of its own; leave --jobs out, and start "
            "more workers for more trials at once"
        )
    scheduler = given or os.environ.get("DASK_SCHEDULER_ADDRESS")
    if not scheduler:
        raise MtdlabError("--backend dask: name --scheduler too, such as tcp://127.0.0.1:8786")
    return scheduler
