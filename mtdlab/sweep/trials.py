"""The trials of a sweep: run in this process or in workers, until none is left to run."""

import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from mtdlab.config import StudySpec
from mtdlab.store import FINISHED, ProgressReader, Store
from mtdlab.sweep.finished import FinishedTrial
from mtdlab.sweep.open_study import describe_ranking
from mtdlab.sweep.optuna_study import OptunaStudy
from mtdlab.sweep.progress import Display, Tally
from mtdlab.sweep.repeated import repeated
from mtdlab.sweep.signals import StopRequest
from mtdlab.sweep.workers import Workers

POLL_SECONDS = 0.5


class Trials:
    """Runs the trials of one study that wait, and those that are added to it meanwhile.

    workers  the number of worker processes, None for the default, and of those on each GPU. With
             one, trials run in this process.
    ran      how many trials have ended; too_many_failed: whether `max_failed` of the study have
             failed.
    """

    def __init__(
        self,
        spec: StudySpec,
        url: str,
        models: Path,
        store: Store,
        stop: StopRequest,
        workers: tuple[int | None, int],
        max_failed: int | None = None,
    ) -> None:
        self.spec, self.url, self.models, self.store, self.stop = spec, url, models, store, stop
        self.ran, self.too_many_failed = 0, False
        self._wanted, self._max_failed = workers, max_failed
        self._workers: Workers | None = None
        self._display: Display | None = None
        self._worker_has_died = False

    def close(self) -> None:
        """End the worker processes."""
        if self._workers is not None:
            self._workers.close()

    def run_all(self) -> None:
        """Run until no trial waits, none of a dead owner is left, and no look adds any."""
        self._judge_failures()
        while not self._is_over():
            if self.store.counts().get("WAITING"):
                self._run_waiting()
            elif not self._repair() and not self._advance():
                return

    def _is_over(self) -> bool:
        return self.stop.requested() or self.too_many_failed

    def _repair(self) -> bool:
        """Release the trials of dead owners; whether trials wait now."""
        if self._worker_has_died or self.store.counts().get("RUNNING"):
            self._worker_has_died = False
            self._optuna.synchronise(self.store)
        return bool(self.store.counts().get("WAITING"))

    def _advance(self) -> bool:
        """Take the looks that are due; whether trials wait then."""
        if self.spec.until is None:
            return False
        # imported here, since it imports pandas and SciPy
        from mtdlab.sweep.looks import advance

        return advance(self.spec, self.url, self.store, self.stop)

    def _run_waiting(self) -> None:
        # torch takes seconds to import, and a complete study does not need it
        from mtdlab.sweep.objective import objective_of

        difference = objective_of(self.spec).prepare(self.spec, self.store)
        counts = self.store.counts()
        jobs = self._jobs(counts.get("WAITING", 0))
        finished = sum(counts.get(state, 0) for state in FINISHED)
        ranked_by = self.store.select_by(self.spec.metric)
        tally = Tally(sum(counts.values()), finished, jobs, ranked_by, self.spec.known)
        with Display(tally) as display:
            self._display = display
            for note in filter(None, (difference, describe_ranking(self.spec, self.store))):
                display.message(note)
            reader = ProgressReader(self.url, self.store.study_id)
            with repeated(POLL_SECONDS, lambda: display.update(*reader.read())):
                self._show_trials(display, jobs)
            if self.stop.requested():
                display.message("Interrupted. Rerun to resume.")

    def _jobs(self, waiting: int) -> int:
        """The number of workers: not more than trials wait, not fewer than were started."""
        from mtdlab.sweep.slots import default_jobs

        jobs, jobs_per_gpu = self._wanted
        # another sweep may have claimed every trial since: then there is nothing to do
        needed = min(jobs or default_jobs(jobs_per_gpu), max(1, waiting))
        return max(needed, self._workers.count if self._workers else 1)

    def _show_trials(self, display: Display, jobs: int) -> None:
        """Run what waits, and show each trial that ends."""
        while (waiting := self.store.counts().get("WAITING")) and not self._is_over():
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
        most = self._max_failed
        self.too_many_failed = most is not None and self.store.counts().get("FAIL", 0) >= most

    def _ended(self, jobs: int, calls: int) -> Iterator[FinishedTrial]:
        """The trials that end during `calls` calls of `run_next`, as they end."""
        from mtdlab.sweep.slots import threads_each
        from mtdlab.sweep.worker import run_next

        arguments = (self.spec, self.url, self.models)
        if jobs == 1:
            for _ in range(calls):
                if (trial := run_next(*arguments, self.stop)) is not None:
                    yield trial
            return
        if self._workers is None or self._workers.count < jobs:
            if self._workers is not None:
                self._workers.close()
            call = (run_next, arguments)
            self._workers = Workers(jobs, threads_each(jobs), call, self.stop, self._worker_died)
        yield from self._workers.run(calls)

    def _worker_died(self, process: int, how: str) -> bool:
        """Release the trial of a worker that died, or fail it; whether it had one."""
        self._worker_has_died = True
        if self._display is not None:
            self._display.message(f"a worker process died ({how})")
        had_trial = self._optuna.record_death(self.store, process, how)
        self._judge_failures()
        return had_trial

    @cached_property
    def _optuna(self) -> OptunaStudy:
        return OptunaStudy(self.url, self.spec)
