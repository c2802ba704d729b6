"""The workers of a dask cluster as those of a sweep: each task claims a trial and runs it.

dask is used by itself and not through joblib, which on a cluster of one worker makes the calls in
the process of the sweep, and ends all calls when the scheduler is lost. Which worker runs which
trial is decided by the claim in the database alone: a task that dask runs twice claims another
trial.
"""

import logging
import os
import queue
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mtdlab.errors import MtdlabError, StorageError, TrialError, nearest, one_line
from mtdlab.store import FinishedTrial
from mtdlab.store.owner import HEARTBEAT_SECONDS
from mtdlab.store.urls import absolute
from mtdlab.sweep.heartbeat import call_repeatedly
from mtdlab.sweep.signals import StopRequest
from mtdlab.sweep.study import Job, OpenStudy

if TYPE_CHECKING:
    from distributed import Client, Future

PROCESSES, DASK = BACKENDS = ("processes", "dask")
POLL_SECONDS = 0.2
CONNECT_SECONDS = 10
"""Time to wait for a scheduler to answer."""
RECONNECT_SECONDS = 120.0
"""Time in which a scheduler that was lost may be started again."""
LOST = (CancelledError, OSError)
"""Errors of a task, or of a question to the scheduler, that was lost with its connection."""
MOST_LOST = 3
"""A sweep ends after so many tasks in succession whose workers died, by dask's own count."""


def run_on_cluster(job: Job, sweep: int) -> FinishedTrial | Exception | None:
    """Claim a trial and run it, in a process of the cluster; stops where the sweep was stopped.

    An error is returned, since dask would print it with the arguments.

    Args:
        sweep: the row of the sweep.
    """
    from mtdlab.sweep.worker import open_in_process, run_next
    from mtdlab.sweep.worker_process import sendable

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
            return run_next(job, stop)
    except Exception as error:
        return sendable(error)


@lru_cache(maxsize=1)
def _check(job: Job) -> None:
    """Check once per process what the trials need, and that it has the inputs of the others."""
    from mtdlab.sweep.artifacts import Artifacts
    from mtdlab.sweep.objectives import objective_of
    from mtdlab.sweep.preflight import check_same_inputs
    from mtdlab.sweep.worker import open_in_process

    found = objective_of(job.spec).check(job)
    store = open_in_process(job).store
    if warning := check_same_inputs(job.spec.name, store, found):
        logging.getLogger(__name__).warning(warning)
    if place := store.artifacts():
        Artifacts(place).check()


class Cluster:
    """The workers of a dask cluster, whose number may change while a sweep runs."""

    def __init__(self, scheduler: str, study: OpenStudy, sweep: int, stop: StopRequest) -> None:
        """Connect. Raises MtdlabError if the scheduler does not answer.

        Args:
            sweep: the row of the sweep, by which it requests the end of the tasks that run.
        """
        self._scheduler, self._study, self._sweep, self._stop = scheduler, study, sweep, stop
        self._job = replace(study.job, url=absolute(study.job.url))
        self._client = connect(scheduler)
        self._running: set[Future[Any]] = set()
        self._ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        self._lost, self._end_requested = 0, False

    @property
    def count(self) -> int:
        """The number of workers now. Raises MtdlabError if one has several threads."""
        threads = self._client.nthreads()
        if any(each > 1 for each in threads.values()):
            raise MtdlabError(
                "a worker of the dask cluster has several threads, but trials share their "
                "process's random generators; start workers with --nthreads 1"
            )
        return len(threads)

    def close(self) -> None:
        """Close the connection; the sweep has ended, so that tasks that run stop by themselves."""
        self._client.close(timeout=CONNECT_SECONDS)

    def run(self, calls: int) -> Iterator[FinishedTrial]:
        """Run `calls` tasks, one on each worker at a time; yields the trials as they end.

        Ends early if a stop is requested, after the running trials have been saved. Raises the
        error of a task, and MtdlabError if the scheduler is lost and does not come back.
        """
        while calls or self._running:
            if self._stop.requested():
                calls = 0
                self._request_end()
            calls -= self._submit(calls)
            try:
                future = self._ended.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if self._client.status in ("closed", "closing"):
                    calls += self._reconnect()
                continue
            if future not in self._running:
                continue
            self._running.discard(future)
            try:
                found = self._result(future)
            except LOST:
                calls += not self._stop.requested()
                continue
            if isinstance(found, Exception):
                raise found
            if found is not None:
                yield found

    def _request_end(self) -> None:
        """Request once that the running tasks end; again after a database that fails."""
        if not self._end_requested:
            with suppress(StorageError):
                self._study.store.request_stop(self._sweep)
                self._end_requested = True

    def _submit(self, calls: int) -> int:
        """Submit up to `calls` tasks for idle workers; how many."""
        if not calls or self._client.status != "running":
            return 0
        try:
            # one waits in the scheduler where there is no worker yet
            wanted = min(calls, max(1, self.count) - len(self._running))
        except LOST:
            return 0
        for _ in range(wanted):
            key = f"mtdlab-{self._job.spec.name}-{uuid.uuid4().hex}"
            task = (run_on_cluster, self._job, self._sweep)
            future = self._client.submit(*task, key=key, pure=False)
            future.add_done_callback(self._ended.put)
            self._running.add(future)
        return max(0, wanted)

    def _result(self, future: "Future[Any]") -> Any:
        """What a task returned. Raises CancelledError for one that has to be submitted again, and
        MtdlabError for an error that the next one would meet too.
        """
        if future.status == "finished":
            found = future.result(timeout=CONNECT_SECONDS)
            self._lost = 0
            return found
        if future.status == "cancelled":
            raise CancelledError  # its scheduler was lost
        error = future.exception(timeout=CONNECT_SECONDS)
        self._lost += 1
        if type(error).__name__ != "KilledWorker":
            raise MtdlabError(
                f"a worker of the dask cluster cannot run trials: {one_line(error)}; install the "
                "same version of mtdlab for every worker"
            )
        if self._lost == MOST_LOST:
            raise TrialError(f"the workers of the dask cluster die: {one_line(error)}")
        raise CancelledError

    def _reconnect(self) -> int:
        """Connect again to a scheduler that was lost; the number of tasks lost with it."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        while not self._stop.requested():
            try:
                self._client = connect(self._scheduler)
                break
            except MtdlabError:
                if time.monotonic() > deadline:
                    raise
        lost, self._running = len(self._running), set()
        return 0 if self._stop.requested() else lost


def connect(scheduler: str) -> "Client":
    """A client of a scheduler. Raises MtdlabError without dask, or if nobody answers."""
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise MtdlabError(
            "--backend dask needs the package distributed: pip install 'mtdlab[dask]'"
        ) from None
    # a scheduler that is lost is reported once, by this module
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options: dict[str, Any] = {"timeout": CONNECT_SECONDS, "set_as_default": False}
    try:
        return Client(scheduler, **options)
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
    if backend == PROCESSES:
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
