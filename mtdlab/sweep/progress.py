"""The progress display of a sweep: running trials with their phase, the study, best score, time
left. Progress bars on a terminal (80 columns are enough), lines elsewhere; both on standard error.
"""

import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Column

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.metric import as_read, write_score
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.settings import Setting
from mtdlab.settings.roles import SEARCH, SEARCH_NUISANCE
from mtdlab.store.progress import Progress as StudyProgress
from mtdlab.store.ranking import FinishedTrial
from mtdlab.store.tables import LookRow
from mtdlab.terminal import printable

WIDTH = 100
"""The most columns of a trial's line; longer ones are cut."""
LEAST_PARAMETERS = 16
"""The columns that are left to a trial's parameters, however long the rest is."""


def describe(
    parameters: Mapping[str, Any], known: Mapping[str, Setting], role: str = SEARCH
) -> str:
    """A trial's searched parameters in one line, by their symbols: `η=0.985 K/N=8`.

    Those of a baseline, which stand after its role, are the settings that its file gives it.
    `known` are the settings of the study's methods; one without a symbol keeps its name.
    """
    symbols = {name: setting.symbol or name for name, setting in known.items()}
    words = [] if role == SEARCH else [role]
    # of trials that choose a value, which stands last, it comes before what may be cut
    items = [*parameters.items()][:: -1 if role == SEARCH_NUISANCE else 1]
    for name, value in items:
        symbol = "/".join(symbols.get(part, part) for part in name.split("/"))
        words.append(f"{symbol}={value:g}" if isinstance(value, float) else f"{symbol}={value}")
    return " ".join(words)


def line(
    trial: FinishedTrial,
    select_by: str,
    known: Mapping[str, Setting],
    head: str = "",
    tail: str = "",
) -> str:
    """A finished trial in one line of at most `WIDTH` columns, with its score `select_by`."""
    before = f"{head}trial {trial.number} seed {trial.seed} "
    if trial.state == "COMPLETE":
        mtd = "" if trial.mtd is None else f" MTD {format_mtd(trial.mtd)}"
        score = "none" if trial.ranking is None else write_score(select_by, trial.ranking)
        scored, seconds = f"{as_read(select_by)} {score}", format_seconds(trial.wall_seconds or 0.0)
        after = f"{mtd}: {scored}, {seconds}{tail}"
    else:
        after = f" {trial.state.lower()}: {trial.reason}"
    space = max(LEAST_PARAMETERS, WIDTH - len(before) - len(after))
    text = (before + _cut(describe(trial.parameters, known, trial.role), space)).rstrip() + after
    # what went wrong with a result that counts is not cut
    return _cut(text, WIDTH) + (f"\n{note_of(trial)}" if trial.note else "")


def note_of(trial: FinishedTrial) -> str:
    """The note of a finished trial, as a line below its own."""
    return f"  trial {trial.number}: {trial.note}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def describe_look(look: LookRow, looks: int) -> str:
    """A look in one line."""
    p_value = "no test" if look.p_value is None else f"p {look.p_value:.2g}"
    ends = {
        "continue": f"{len(look.added)} trials added",
        "decided": "the verdict is decided",
        "flat": "ended, since any two levels are within the margin",
        "equivalent": "ended, since what may be the best, or is asked about, is within the margin",
        "max_seeds": "ended at max_seeds",
        "no scores": "ended, since nothing can be compared",
    }
    return (
        f"look {look.look} of {looks} at {look.seeds} seeds, {len(look.trials)} runs: "
        f"{look.verdict} ({p_value}, compared with {look.alpha:.2g}); {ends[look.decision]}"
    )


LEAST_SHARE = 0.02
"""The least part of a trial from which its duration is extrapolated."""


@dataclass
class SweepTally:
    """Counts and times of the trials of a sweep.

    Attributes:
        best: the highest ranking score of the search so far; None before there is one.
        seconds: durations of the trials that finished during this sweep.
        running: seconds since its start, and the part that is done, of each running trial.
    """

    planned: int
    finished: int
    jobs: int
    select_by: str
    known: Mapping[str, Setting] = field(default_factory=dict)
    best: float | None = None
    seconds: list[float] = field(default_factory=list)
    running: list[tuple[float, float]] = field(default_factory=list)

    def add(self, trial: FinishedTrial) -> None:
        """Count a trial."""
        self.finished += 1
        if trial.wall_seconds is not None:
            self.seconds.append(trial.wall_seconds)
        if trial.ranking is not None and trial.role == SEARCH:
            self.best = max(trial.ranking, -math.inf if self.best is None else self.best)

    def left(self) -> str:
        """The estimated time to the end: from the finished trials, before from the running ones."""
        started = [(taken, part) for taken, part in self.running if part >= LEAST_SHARE]
        durations = self.seconds or [taken / part for taken, part in started]
        if not durations or self.finished >= self.planned:
            return ""
        trials = self.planned - self.finished - sum(part for _, part in self.running)
        seconds = max(0.0, trials) * sum(durations) / len(durations) / self.jobs
        return f"{format_seconds(seconds)} left"

    def summary(self, *, named: bool = True) -> str:
        """The best so far, with the name of the score or without, and the time left."""
        name = f"{as_read(self.select_by)} " if named else ""
        best = "" if self.best is None else f"best {name}{write_score(self.select_by, self.best)}"
        return ", ".join(part for part in (best, self.left()) if part)


@contextmanager
def _own_stream() -> Iterator[TextIO]:
    """Standard error as it is now: code of the user may close or redirect it during a trial."""
    number = -1
    with suppress(OSError, ValueError):
        number = sys.stderr.fileno()
    if number != 2:
        # as in a notebook
        yield sys.stderr
        return
    encoding, errors = sys.stderr.encoding, sys.stderr.errors
    with os.fdopen(os.dup(number), "w", 1, encoding=encoding, errors=errors) as stream:
        yield stream


class Display(ExitStack):
    """Shows a tally and the running trials."""

    def __init__(self, tally: SweepTally) -> None:
        super().__init__()
        self.tally = tally
        self.console = Console(file=self.enter_context(_own_stream()), highlight=False)
        self.progress = Progress(
            TextColumn("{task.description}", table_column=Column(no_wrap=True, max_width=22)),
            BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=6)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[note]}", table_column=Column(no_wrap=True, max_width=38)),
            console=self.console,
            disable=not self.console.is_terminal,
            expand=True,
        )
        self.study = self.progress.add_task(
            "trials", total=tally.planned, completed=tally.finished, note="starting workers"
        )
        self.is_starting = True
        self.bars: dict[int, TaskID] = {}
        self.began: dict[int, float] = {}

    def __enter__(self) -> Self:
        self.enter_context(self.progress)
        if not self.console.is_terminal:
            self.message(f"{self.tally.planned} trials, {self.tally.finished} done")
        return self

    def finished(self, trial: FinishedTrial) -> None:
        """Show a finished trial."""
        self.tally.add(trial)
        head = tail = ""
        if not self.console.is_terminal:
            head = f"[{self.tally.finished}/{self.tally.planned}] "
            summary = self.tally.summary(named=False)
            tail = f"; {summary}" if summary else ""
        self.message(line(trial, self.tally.select_by, self.tally.known, head, tail))

    def update(self, now_read: StudyProgress) -> None:
        """Update the bars: one for each running trial, whichever process it runs in."""
        running = {trial.id: trial for trial in now_read.running if trial.settings is not None}
        # looks add trials, and fewer workers run at the end
        self.tally.planned = sum(now_read.counts.values())
        self.tally.jobs = max(1, len(running))
        now = time.monotonic()
        self.began = {row: self.began.get(row, now) for row in running}
        self.tally.running = [
            (now - self.began[row], trial.step / trial.steps if trial.steps else 0.0)
            for row, trial in running.items()
        ]
        self.is_starting = self.is_starting and not running
        note = self.tally.summary() or ("starting workers" if self.is_starting else "")
        planned = self.tally.planned
        self.progress.update(self.study, completed=now_read.finished, total=planned, note=note)
        for row in self.bars.keys() - running.keys():
            self.progress.remove_task(self.bars.pop(row))
        for row, trial in running.items():
            if row not in self.bars:
                what = describe(trial.parameters or {}, self.tally.known, trial.role)
                text = escape(printable(f"seed {trial.seed} {what}"))
                self.bars[row] = self.progress.add_task(text, total=trial.steps, note="")
            self.progress.update(self.bars[row], completed=trial.step, note=trial.phase)

    def message(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(printable(text), markup=False, soft_wrap=True)
