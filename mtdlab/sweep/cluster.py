"""The workers of a dask cluster as those of a sweep: a task on each runs trials until none waits.

dask is used by itself and not through joblib, which on a cluster of one worker makes the calls in
the process of the sweep, and ends all calls when the scheduler is lost. Which worker runs which
trial is decided by the claim in the database alone: a task that dask runs twice claims other
trials.
"""

import logging
import os
import queue
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from mtdlab.errors import MtdlabError, StorageError, TrialError, nearest, one_line
from mtdlab.store import FinishedTrial
from mtdlab.store.owner import HEARTBEAT_SECONDS
from mtdlab.store.restarts import retry_lost
from mtdlab.store.urls import absolute
from mtdlab.sweep.heartbeat import call_repeatedly
from mtdlab.sweep.signals import StopRequest
from mtdlab.sweep.study import Job, OpenStudy

if TYPE_CHECKING:
    from distributed import Client, Future

PROCESSES = "processes"
BACKENDS = (PROCESSES, "dask")
POLL_SECONDS = 0.2
CONNECT_SECONDS = 10
"""Time to wait for a scheduler to answer."""
RECONNECT_SECONDS = 120.0
"""Time in which a scheduler that was lost may be started again."""
LOST = (CancelledError, OSError)
"""Errors of a task, or of a question to the scheduler, that was lost with its connection."""
_NUMBER = "number"
"""The key of the number of a trial in an event; the scheduler adds keys of its own."""
MOST_LOST = 3
"""A sweep ends after so many tasks in succession whose workers died, by dask's own count."""


def run_trials(job: Job, sweep: int, topic: str) -> list[int] | Exception:
    """Run trials in a process of the cluster until none can be claimed or the sweep was stopped.

    The numbers of the trials that ended are returned, and each is an event of dask's as it ends:
    the trial itself is in the database. An error is returned, since dask would print it with the
    arguments.

    Args:
        sweep: the row of the sweep.
        topic: of the events.
    """
    from distributed import get_worker

    from mtdlab.sweep.worker import open_in_process, run_next
    from mtdlab.sweep.worker_process import sendable

    stop, ended = StopRequest(), list[int]()
    try:
        job.spec.ensure_imported()
        _check(job)
        store = open_in_process(job).store

        def obey() -> None:
            if store.has_ended(sweep):
                stop.request()

        obey()
        with call_repeatedly(HEARTBEAT_SECONDS, obey):
            while (trial := run_next(job, stop)) is not None:
                ended.append(trial.number)
                get_worker().log_event(topic, {_NUMBER: trial.number})
    except Exception as error:
        return sendable(error)
    return ended


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

    def __init__(
        self,
        scheduler: str,
        study: OpenStudy,
        sweep: int,
        stop: StopRequest,
        notify: Callable[[str], None],
    ) -> None:
        """Connect. Raises MtdlabError if the scheduler does not answer.

        Args:
            sweep: the row of the sweep, by which it requests the end of the tasks that run.
            notify: called with a sentence where the cluster has no worker.
        """
        self._scheduler, self._study, self._sweep, self._stop = scheduler, study, sweep, stop
        self._notify, self._is_deserted, self._looked_at = notify, False, 0.0
        self._job = replace(study.job, url=absolute(study.job.url))
        self._topic = f"mtdlab-{study.spec.name}-{uuid.uuid4().hex}"
        self._running: set[Future[Any]] = set()
        self._arrived: queue.SimpleQueue[Future[Any] | int] = queue.SimpleQueue()
        # by number; also of earlier runs, of which an event may arrive late
        self._shown: set[int] = set()
        self._lost, self._end_requested = 0, False
        self._client = self._connect()

    def _connect(self) -> "Client":
        """A client that is told of every trial that ends."""
        client = connect(self._scheduler)
        client.subscribe_topic(self._topic, lambda event: self._arrived.put(event[1][_NUMBER]))
        return client

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

    def run(self, waiting: int) -> Iterator[FinishedTrial]:
        """Run `waiting` trials, with a task on each worker; yields them as they end.

        Ends early if a stop is requested, after the running trials have been saved, if none can be
        claimed, and without a worker if none waits in the database. Raises the error of a task, and
        MtdlabError if the scheduler is lost and does not come back.
        """
        while waiting > 0 or self._running:
            if self._stop.requested():
                waiting = 0
                self._request_end()
            self._submit(waiting)
            try:
                arrived = self._arrived.get(timeout=POLL_SECONDS)
            except queue.Empty:
                if self._client.status in ("closed", "closing"):
                    self._reconnect()
                elif self._has_nobody() and (self._stop.requested() or not self._waits()):
                    return
                continue
            if isinstance(arrived, int):
                numbers = [arrived]
            elif (found := self._result(arrived)) is None:
                continue
            elif not (numbers := found):
                waiting = 0
            # that of a task has also those whose event was lost
            for number in numbers:
                if number not in self._shown:
                    self._shown.add(number)
                    waiting, self._lost = waiting - 1, 0
                    yield from retry_lost(partial(self._study.store.finished, number))

    def _request_end(self) -> None:
        """Request once that the running tasks end; again after a database that fails."""
        if not self._end_requested:
            with suppress(StorageError):
                self._study.store.request_stop(self._sweep)
                self._end_requested = True

    def _submit(self, waiting: int) -> None:
        """Submit a task for each idle worker, up to `waiting` tasks in all."""
        if waiting <= len(self._running) or self._client.status != "running":
            return
        try:
            # one waits in the scheduler where there is no worker yet
            wanted = min(waiting, max(1, self.count)) - len(self._running)
        except LOST:
            return
        for _ in range(wanted):
            task = (run_trials, self._job, self._sweep, self._topic)
            key = f"{self._topic}-{uuid.uuid4().hex}"
            future = self._client.submit(*task, key=key, pure=False)
            future.add_done_callback(self._arrived.put)
            self._running.add(future)

    def _has_nobody(self) -> bool:
        """Whether no worker is connected, which is said once, until one joins."""
        if time.monotonic() < self._looked_at + HEARTBEAT_SECONDS:
            return False
        self._looked_at = time.monotonic()
        try:
            is_deserted = self.count == 0
        except LOST:
            return False
        if is_deserted and not self._is_deserted:
            self._notify(
                f"no worker is connected to the dask scheduler {self._scheduler}; the sweep waits "
                f"for one: dask worker {self._scheduler} --nthreads 1"
            )
        self._is_deserted = is_deserted
        return is_deserted

    def _waits(self) -> bool:
        """Whether a trial waits in the database: other sweeps may have run those of this one."""
        return bool(retry_lost(self._study.store.counts).get("WAITING"))

    def _result(self, future: "Future[Any]") -> list[int] | None:
        """The numbers of the trials that a task ran; None for one that was lost.

        Raises:
            MtdlabError: for an error that the next one would meet too.
        """
        if future not in self._running:
            return None  # lost with an earlier connection
        self._running.discard(future)
        if future.status == "cancelled":
            return None  # its scheduler was lost
        try:
            error = future.exception(timeout=CONNECT_SECONDS)
            found = future.result(timeout=CONNECT_SECONDS) if error is None else None
        except LOST:
            return None
        if isinstance(found, Exception):
            raise found
        if error is None:
            return found
        self._lost += 1
        if type(error).__name__ != "KilledWorker":
            raise MtdlabError(
                f"a worker of the dask cluster cannot run trials: {one_line(error)}; install the "
                "same version of mtdlab for every worker"
            )
        if self._lost == MOST_LOST:
            raise TrialError(f"the workers of the dask cluster die: {one_line(error)}")
        return None

    def _reconnect(self) -> None:
        """Connect again to a scheduler that was lost, and with it its tasks."""
        deadline = time.monotonic() + RECONNECT_SECONDS
        self._running = set()
        while not self._stop.requested():
            try:
                self._client = self._connect()
                return
            except MtdlabError:
                if time.monotonic() > deadline:
                    raise


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
