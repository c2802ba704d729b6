"""The trials of a sweep: run in this process or in workers, until none is left to run."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mtdlab.config import StudySpec
from mtdlab.store import FINISHED, FinishedTrial, ProgressReader
from mtdlab.store.owner import HEARTBEAT_SECONDS, may_be_dead
from mtdlab.store.restarts import retry_lost
from mtdlab.sweep.fork_server import ForkServer
from mtdlab.sweep.heartbeat import call_repeatedly
from mtdlab.sweep.progress import Display, Tally
from mtdlab.sweep.signals import StopRequest
from mtdlab.sweep.study import OpenStudy
from mtdlab.sweep.workers import Workers
from mtdlab.terminal import begin_phase

if TYPE_CHECKING:
    from mtdlab.sweep.cluster import Cluster

POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Execution:
    """How the trials of a sweep are run.

    Attributes:
        jobs: worker processes, None for the default; with one, trials run in this process.
        jobs_per_gpu: worker processes on each GPU, where `jobs` is not given.
        max_failed: the failed trials of the study that end the sweep; None: any number may fail.
        wait: whether the sweep stays until no other process runs a trial of the study, so that it
            runs the trials of those that die.
        scheduler: of a dask cluster whose workers run the trials; None: processes of this machine.
    """

    jobs: int | None = None
    jobs_per_gpu: int = 1
    max_failed: int | None = None
    wait: bool = False
    scheduler: str | None = None


def early_server(spec: StudySpec, execution: Execution) -> ForkServer | None:
    """The server of workers, which imports their modules while this process checks the inputs.

    None where the trials will run in this process or on a cluster.
    """
    begin_phase("importing the packages that train")
    from mtdlab.sweep.objectives import modules_of
    from mtdlab.sweep.slots import default_jobs, threads_each

    jobs = 1
    if execution.scheduler is None and execution.jobs != 0:
        wanted = execution.jobs or default_jobs(execution.jobs_per_gpu)
        jobs = min(wanted, len(spec.first_units()) + (spec.baseline is not None))
    return None if jobs == 1 else ForkServer(threads_each(jobs), modules_of(spec))


class Trials:
    """Runs the trials of one study that wait, and those that are added to it meanwhile.

    `sweep` is the row of the sweep that runs them, `server` that of `early_server`.

    Attributes:
        ran: how many trials have ended.
        too_many_failed: whether `max_failed` of the study have failed.
    """

    def __init__(
        self,
        study: OpenStudy,
        stop: StopRequest,
        execution: Execution,
        sweep: int,
        server: ForkServer | None = None,
    ) -> None:
        self.study, self.spec, self.store, self.stop = study, study.spec, study.store, stop
        self.ran, self.too_many_failed = 0, False
        self._execution, self._sweep, self._server = execution, sweep, server
        self._workers: Workers | None = None
        self._cluster: Cluster | None = None
        self._display: Display | None = None
        self._best: float | None = None
        self._worker_has_died = False

    def close(self) -> None:
        """End the worker processes, and the connection to a cluster."""
        for engine in (self._workers, self._cluster):
            if engine is not None:
                engine.close()

    def run_all(self) -> None:
        """Run until no trial waits, none of a dead owner is left, and no look adds any."""
        self._judge_failures()
        while not self._is_over():
            if self._counts().get("WAITING"):
                self._run_waiting()
            elif not self._repair() and not self._advance():
                if not self._must_wait():
                    return
                time.sleep(HEARTBEAT_SECONDS)

    def _counts(self) -> dict[str, int]:
        return retry_lost(self.store.counts)

    def _is_over(self) -> bool:
        return self.stop.requested() or self.too_many_failed

    def _repair(self) -> bool:
        """Release the trials of dead owners, and repair what they left; whether trials wait now."""
        if self._worker_has_died or self._counts().get("RUNNING"):
            self._worker_has_died = False
            retry_lost(self.store.release_dead)
        return bool(self._counts().get("WAITING"))

    def _must_wait(self) -> bool:
        """Whether trials that other processes run may still have to be run here."""
        owned = retry_lost(self.store.owned)
        # a worker of a cluster may have died with its machine
        wait = self._execution.wait or self._execution.scheduler is not None
        return any(wait or may_be_dead(row.owner or {}, row.silent) for row in owned)

    def _advance(self) -> bool:
        """Take the looks that are due; whether trials wait then."""
        if self.spec.until is None:
            return False
        # imported here, since it imports pandas and SciPy
        from mtdlab.sweep.interim_analysis import advance

        return advance(self.study, self.stop)

    def _run_waiting(self) -> None:
        # torch takes seconds to import, and a complete study does not need it
        from mtdlab.sweep.objectives import objective_of

        difference = objective_of(self.spec).prepare(self.study)
        counts = self._counts()
        jobs = self._jobs(counts.get("WAITING", 0))
        finished = sum(counts.get(state, 0) for state in FINISHED)
        ranked_by = self.store.select_by(self.spec.metric)
        tally = Tally(sum(counts.values()), finished, jobs, ranked_by, self.spec.known, self._best)
        with Display(tally) as display:
            self._display = display
            if difference:
                display.message(difference)
            reader = ProgressReader(self.study.job.url, self.store.study_id)
            with call_repeatedly(POLL_SECONDS, lambda: display.update(*reader.read())):
                self._show_trials(display, jobs)
            if self.stop.requested():
                display.message("Interrupted. Rerun to resume.")
        self._best = tally.best

    def _jobs(self, waiting: int) -> int:
        """The number of workers: not more than trials wait, not fewer than were started."""
        if self._execution.scheduler is not None:
            return max(1, self._connected(self._execution.scheduler).count)
        from mtdlab.sweep.slots import default_jobs

        wanted = self._execution.jobs or default_jobs(self._execution.jobs_per_gpu)
        # another sweep may have claimed every trial since: then there is nothing to do
        needed = min(wanted, max(1, waiting))
        return max(needed, self._workers.count if self._workers else 1)

    def _show_trials(self, display: Display, jobs: int) -> None:
        """Run what waits, and show each trial that ends."""
        while (waiting := self._counts().get("WAITING")) and not self._is_over():
            before = self.ran
            for trial in self._ended(jobs, waiting):
                self.ran += 1
                display.finished(trial)
                if trial.state == "FAIL":
                    self._judge_failures()
                if self.too_many_failed:
                    return
            if self.ran == before and not self._is_over() and self._repair():
                # what waits needs parameters that another sweep is drawing
                time.sleep(POLL_SECONDS)

    def _judge_failures(self) -> None:
        most = self._execution.max_failed
        self.too_many_failed = most is not None and self._counts().get("FAIL", 0) >= most

    def _ended(self, jobs: int, calls: int) -> Iterator[FinishedTrial]:
        """The trials that end during `calls` calls of `run_next`, as they end."""
        if self._execution.scheduler is not None:
            yield from self._connected(self._execution.scheduler).run(calls)
        elif jobs == 1:
            from mtdlab.sweep.worker import run_next

            for _ in range(calls):
                if (trial := run_next(self.study.job, self.stop)) is not None:
                    yield trial
        else:
            yield from self._started(jobs).run(calls)

    def _connected(self, scheduler: str) -> "Cluster":
        """The workers of a dask cluster."""
        if self._cluster is None:
            from mtdlab.sweep.cluster import Cluster

            self._cluster = Cluster(scheduler, self.study, self._sweep, self.stop, self._show)
        return self._cluster

    def _started(self, jobs: int) -> Workers:
        """Worker processes of this machine."""
        from mtdlab.sweep.objectives import modules_of
        from mtdlab.sweep.slots import threads_each
        from mtdlab.sweep.worker import run_next

        if self._workers is None or self._workers.count < jobs:
            if self._workers is not None:
                self._workers.close()
            call, threads = (run_next, (self.study.job,)), threads_each(jobs)
            server, self._server = self._server, None
            if server is not None and server.threads != threads:
                server.close()
                server = None
            server = server or ForkServer(threads, modules_of(self.spec))
            self._workers = Workers(jobs, threads, call, self.stop, self._worker_died, server)
        return self._workers

    def _show(self, text: str) -> None:
        if self._display is not None:
            self._display.message(text)

    def _worker_died(self, process: int, how: str) -> bool:
        """Release the trial of a worker that died, or fail it; whether it had one."""
        self._worker_has_died = True
        self._show(f"a worker process died ({how})")
        had_trial = self.store.record_worker_death(process, how)
        self._judge_failures()
        return had_trial
