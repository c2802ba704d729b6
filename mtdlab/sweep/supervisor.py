"""The supervisor of a sweep: reads the database twice a second, and decides what the workers do.

One reading serves the display, the limit of failed trials, the trials of dead processes, the looks,
and the start of workers. The workers run trials by themselves (`worker.work`).
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

from mtdlab.errors import MtdlabError, NothingToReport, StorageError, TrialError
from mtdlab.store.owner import may_be_dead
from mtdlab.store.progress import Progress, ProgressReader
from mtdlab.store.restarts import retry_lost, without_waiting
from mtdlab.store.tables import TrialRow
from mtdlab.sweep.engine import MOST_FAILED_STARTS, Death, Engine, Work
from mtdlab.sweep.progress import Display, SweepTally, note_of
from mtdlab.terminal import begin_phase, warn
from mtdlab.trial.signals import handled_signals
from mtdlab.trial.study import deleted

POLL_SECONDS = 0.5
END_SECONDS = 0.1
"""Between two readings while the workers end."""
PLAIN_PHASES = ("", "loading", "running")
"""Phases before the first step that are no news."""


class Supervisor:
    """Runs the trials of one study that wait, and those that are added to it meanwhile.

    Attributes:
        ran: how many trials have ended.
        too_many_failed: whether `max_failed` of the study have failed.
    """

    def __init__(
        self, work: Work, engine: Engine, max_failed: int | None = None, *, wait: bool = False
    ) -> None:
        """`max_failed` and `wait` are those of `Execution`."""
        self.ran, self.too_many_failed = 0, False
        self._work, self._engine, self._max_failed = work, engine, max_failed
        # a worker of a cluster may die with its machine
        self._waits = wait or not engine.names_processes
        self._study, self._store, self._stop = work.study, work.study.store, work.stop
        self._reader = ProgressReader(self._store.database.url, self._store.study_id, work.sweep)
        self._opened = ExitStack()
        self._display: Display | None = None
        self._noted: dict[int, str] = {}
        self._wanted, self._failed_starts = 0, 0
        self._is_ending, self._is_decided = False, self._study.spec.until is None
        engine.notify = self._show

    def run(self) -> None:
        """Run until no trial waits, none of a dead owner is left, and no look adds any.

        Raises the error of a worker, StorageError where the database fails, and TrialError where
        the workers die while they start.
        """
        with self._opened:
            try:
                while self._goes_on():
                    self._engine.wait(POLL_SECONDS)
            except BaseException:
                # the first error is the one to be raised
                with suppress(Exception):
                    self._end()
                raise
            self._end()
            for trial in self._store.noted_by(self._work.sweep):
                if self._noted.get(trial.row) != trial.note:
                    self._show(note_of(trial))
            if self._stop.requested():
                self._show("Interrupted. Rerun to resume.")

    def _end(self) -> None:
        """End the workers, and record and show what happens to their trials meanwhile."""
        self._is_ending = True
        self._engine.stop()
        while self._engine.count:
            self._engine.wait(END_SECONDS)
            # what is wrong now is raised when all have ended
            with suppress(Exception):
                self._poll()
        self._poll()

    def _goes_on(self) -> bool:
        """Poll once, and start what is needed; False where the sweep has ended."""
        progress = self._poll()
        if self._stop.requested() or self.too_many_failed:
            return False
        if progress is None:
            return True
        mine = [row for row in progress.running if row.sweep == self._work.sweep]
        waiting = progress.counts.get("WAITING", 0)
        if not waiting:
            return bool(mine) or self._is_kept(progress.running)
        if not mine:
            # never fewer workers than before
            self._wanted = max(self._wanted, min(self._engine.most or waiting, waiting))
        self._engine.start(self._wanted, self._work)
        return True

    def _is_kept(self, running: Sequence[TrialRow]) -> bool:
        """Whether trials of other processes, a choice, or a look may still be left to this one."""
        awaits_choice = bool(self._study.spec.unchosen_groups)
        if awaits_choice or not self._is_decided:
            # both count every planned trial
            if running:
                return True
            # imported here, since it imports pandas and SciPy
            from mtdlab.sweep.looks import choose_nuisance, take_look

            left = choose_nuisance(self._study) if awaits_choice else ""
            if (awaits_choice and not left) or (not self._is_decided and take_look(self._study)):
                return True
            self._is_decided = True
            if self._display is None:
                warn(left)
            self._show(left)
        return any(self._waits or may_be_dead(row.owner or {}, row.silent) for row in running)

    def _poll(self) -> Progress | None:
        """Read, show and repair once; None where it cannot be read. Raises a worker's error."""
        deaths = []
        for death in self._engine.deaths():
            bury = partial(self._store.record_worker_death, death.process, death.how)
            # of a process on another machine the heartbeat tells
            deaths.append((death, death.process is not None and retry_lost(bury)))
        if (progress := self._read()) is None:
            return None
        if not progress.counts:
            raise deleted(self._study.spec)
        self._show_progress(progress)
        if progress.error is not None:
            raise _error_of(progress.error)
        for death, had_trial in deaths:
            self._judge(death, had_trial=had_trial)
        failed = progress.counts.get("FAIL", 0)
        if self._max_failed is not None and not self._stop.requested():
            self.too_many_failed |= failed >= self._max_failed
        left = [row for row in progress.running if row.is_abandoned]
        if self._engine.names_processes:
            # of its own workers the engine tells each death
            left = [row for row in left if row.sweep != self._work.sweep]
        if left:
            retry_lost(self._store.release_abandoned)
        return progress

    def _read(self) -> Progress | None:
        if self._engine.count:
            with suppress(StorageError), without_waiting():
                return self._reader.read()
            return None
        # undoes the transaction of a killed process, which the reader could not
        retry_lost(self._store.counts)
        return retry_lost(self._reader.read)

    def _judge(self, death: Death, *, had_trial: bool) -> None:
        """Show a death, and learn from it. Raises TrialError after too many of them."""
        if not had_trial:
            if self._is_ending:
                return
            if death.code is not None and death.code - 128 in handled_signals():
                self._stop.request(death.code - 128)
                return
        self._show(f"a worker process died ({death.how})")
        self._failed_starts = 0 if had_trial else self._failed_starts + 1
        if death.code == StorageError.exit_code:
            # it could not record its error, which this transaction meets too
            self._store.continue_sweep(self._work.sweep)
        if self._failed_starts == MOST_FAILED_STARTS:
            raise TrialError(f"the workers end while they start ({death.how})")

    def _show_progress(self, progress: Progress) -> None:
        if self._display is None and progress.counts.get("WAITING"):
            planned, ranked_by = sum(progress.counts.values()), self._study.row.select_by
            tally = SweepTally(planned, progress.finished, 1, ranked_by, self._study.spec.known)
            if (best := retry_lost(self._store.best_trial)) is not None:
                tally.best = best.ranking
            self._display = self._opened.enter_context(Display(tally))
        if progress.ended:
            self._failed_starts = 0
        self.ran += len(progress.ended)
        self._noted |= {trial.row: trial.note for trial in progress.ended}
        if self._display is not None:
            for trial in progress.ended:
                self._display.finished(trial)
            self._display.update(progress)
        for row in progress.running:
            if row.sweep == self._work.sweep and not row.step and row.phase not in PLAIN_PHASES:
                begin_phase(row.phase)

    def _show(self, text: str) -> None:
        if self._display is not None:
            self._display.message(text)


def _error_of(recorded: Mapping[str, Any]) -> Exception:
    """The error that a worker has recorded (`SweepRow.error`)."""
    message = recorded["message"]
    if "traceback" in recorded:
        error = RuntimeError(message)
        error.add_note(recorded["traceback"])
        return error
    kinds = {kind.exit_code: kind for kind in (MtdlabError, StorageError, NothingToReport)}
    return kinds.get(recorded["exit_code"], MtdlabError)(message)
