"""The progress display of a sweep: running trials, the study, best score, time left."""

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from mtdlab.store import RunningTrial
from mtdlab.sweep.finished import FinishedTrial, clock, describe, line


@dataclass
class Tally:
    """Counts and times of the trials that finished during this sweep.

    select_by  the name of the score that ranks them.
    """

    planned: int
    finished: int
    jobs: int
    select_by: str
    best: FinishedTrial | None = None
    seconds: list[float] = field(default_factory=list)

    def add(self, trial: FinishedTrial) -> None:
        """Count a trial."""
        self.finished += 1
        if math.isfinite(trial.wall_seconds):
            self.seconds.append(trial.wall_seconds)
        highest = -math.inf if self.best is None else self.best.ranking
        if math.isfinite(trial.ranking) and trial.ranking > highest:
            self.best = trial

    def left(self) -> str:
        """The estimated time to the end, from the trials so far."""
        if not self.seconds:
            return ""
        average = sum(self.seconds) / len(self.seconds)
        return f"about {clock((self.planned - self.finished) * average / self.jobs)} left"

    def summary(self) -> str:
        """The best so far and the time left."""
        best = f"best {self.select_by} {self.best.ranking:.2f}" if self.best else ""
        if self.best and math.isfinite(self.best.mtd):
            best += f" (mtd {self.best.mtd:.2f})"
        return ", ".join(part for part in (best, self.left()) if part)


class Display:
    """Progress bars on a terminal, plain lines elsewhere; both on standard error."""

    def __init__(self, tally: Tally) -> None:
        self.tally = tally
        self.console = Console(stderr=True, highlight=False)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            console=self.console,
            disable=not self.console.is_terminal,
        )
        self.study = self.progress.add_task(
            "trials", total=tally.planned, completed=tally.finished, note=""
        )
        self.bars: dict[int, TaskID] = {}
        self.started = time.monotonic()

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def finished(self, trial: FinishedTrial) -> None:
        """Show a finished trial."""
        self.tally.add(trial)
        text = line(trial)
        if not self.console.is_terminal:
            text = f"[{self.tally.finished}/{self.tally.planned}] {text}  ({self.tally.summary()})"
        self.console.print(text, markup=False, soft_wrap=True)

    def update(self, trials: Iterable[RunningTrial], finished: int) -> None:
        """Update the bars: one for each running trial, whichever process it runs in."""
        self.progress.update(self.study, completed=finished, note=self.tally.summary())
        running = {trial.row: trial for trial in trials}
        for row in self.bars.keys() - running.keys():
            self.progress.remove_task(self.bars.pop(row))
        for row, trial in running.items():
            if row not in self.bars:
                name = f"  {describe(trial.parameters)} seed={trial.seed}"
                self.bars[row] = self.progress.add_task(name, total=trial.steps, note="steps")
            self.progress.update(self.bars[row], completed=trial.step)

    def message(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(text, markup=False, soft_wrap=True)
