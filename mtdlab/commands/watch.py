"""The view of `mtdlab show --watch`: a study while a sweep runs, until its trials have ended."""

import sys
import time
from contextlib import closing, suppress
from datetime import datetime

import pandas as pd
from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mtdlab.analysis.data.metric import as_read, is_negated, write_score
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.commands.printing import format_value
from mtdlab.settings.roles import BASELINE
from mtdlab.store.database import open_to_read
from mtdlab.store.progress import Moment, read_moment
from mtdlab.store.ranking import FinishedTrial
from mtdlab.store.tables import TrialRow
from mtdlab.sweep.progress import SweepTally, describe, line
from mtdlab.terminal import printable

_SECONDS = 2.0
"""The time between two readings."""
_EVENTS = 5
_OF_RUN = ("seed", "score")
_OTHER_LINES = 9
"""The lines of the view beside its rows: headings, the state, empty lines."""


def watch_study(study: str, url: str) -> None:
    """Show a study until its trials have ended, or Ctrl-C: in place on a terminal, else after each
    trial. Raises StorageError for an unknown study."""
    console, shown = Console(highlight=False), -1
    # after Ctrl-C the sweep goes on without its spectator
    with (
        suppress(KeyboardInterrupt),
        closing(open_to_read(url)) as database,
        Live(console=console, auto_refresh=False) as live,
    ):
        while True:
            with database.reading() as session:
                moment = read_moment(session, study, url)
            if console.is_terminal:
                live.update(draw_moment(moment, console.height), refresh=True)
            elif len(moment.ended) != shown:
                console.print(draw_moment(moment))
            shown = len(moment.ended)
            if moment.overview.is_over:
                return
            time.sleep(_SECONDS)


def draw_moment(moment: Moment, height: int | None = None) -> RenderableType:
    """The view; at most `height` lines high, where that is given."""
    parts: list[RenderableType] = [_line(_state_line(moment))]
    last = moment.ended[-_EVENTS:]
    space = sys.maxsize
    if height is not None:
        space = max(3, height - len(last) - len(moment.running) - _OTHER_LINES)
    if moment.scored:
        scores = as_read(moment.overview.metric)
        parts += ["", _line(f"{scores}, means with 95 % CIs over seeds"), _tabulate(moment, space)]
    if moment.running:
        parts += ["", Text("running now")]
        parts += [_line(f"  {_running_line(trial)}") for trial in moment.running]
    if last:
        parts += ["", Text("last")]
    for trial in last:
        head = f"  {datetime.fromtimestamp(trial.ended or 0.0):%H:%M} "
        parts.append(_line(line(trial, moment.overview.select_by, {}, head)))
    return Group(*parts)


def _line(text: str) -> Text:
    """Text that is cut at the width of the terminal."""
    return Text(printable(text), no_wrap=True, overflow="ellipsis")


def _state_line(moment: Moment) -> str:
    study, running = moment.overview, moment.running
    durations = [trial.wall_seconds for trial in moment.ended if trial.wall_seconds is not None]
    parts = [
        ((row.heartbeat or 0.0) + (row.silent or 0.0) - row.began, row.step / row.steps)
        for row in running
        if row.began is not None and row.steps
    ]
    tally = SweepTally(study.planned, len(moment.ended), max(1, len(running)), study.select_by)
    tally.seconds, tally.running = durations, parts
    counts = f"{study.counts.get('COMPLETE', 0)} of {study.planned} trials done"
    failed = study.counts.get("FAIL", 0)
    facts = [study.state, counts, f"{failed} failed" if failed else ""]
    facts.append(tally.left() if running else "")
    return f"study {study.name}: {', '.join(filter(None, facts))}"


def _running_line(row: TrialRow) -> str:
    number = "" if row.number is None else f"trial {row.number} "
    step = f"step {row.step} of {row.steps}" if row.steps else f"step {row.step}"
    what = describe(row.parameters or {}, {}, row.role)
    return f"{number}seed {row.seed} {what}: {', '.join(filter(None, (step, row.phase)))}"


def _tabulate(moment: Moment, space: int) -> Table:
    """The configurations with their means, the best first, as many as there is space for."""
    metric, runs = moment.overview.metric, pd.DataFrame(map(_read_run, moment.scored)).fillna("")
    names = [str(name) for name in runs if name not in _OF_RUN]
    varied = [name for name in names if runs[name].nunique() > 1] or names[:1]
    means = summarise(runs, by=varied).sort_values("mean", ascending=False)
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    for name in varied:
        # at a space a heading is wrapped, and no column is narrower than a word of it
        heading = printable(name).replace("_", " ")
        table.add_column(heading, overflow="fold", min_width=max(map(len, heading.split())))
    for name in ("seeds", "mean", "95 % CI"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in means.head(space).to_dict("records"):
        bounds = [row["low"], row["high"]][:: -1 if is_negated(metric) else 1]
        interval = " to ".join(write_score(metric, bound) for bound in bounds if bound == bound)
        values = [printable(row[name]) for name in varied]
        table.add_row(*values, str(row["seeds"]), write_score(metric, row["mean"]), interval)
    if len(means) > space:
        table.add_row(f"{len(means) - space} more", *[""] * (len(varied) + 2))
    return table


def _read_run(trial: FinishedTrial) -> dict[str, object]:
    """A trial's searched settings as text, or that it is of the baseline, its seed and score."""
    values = {name: format_value(value) for name, value in trial.parameters.items()}
    if trial.role == BASELINE:
        values = {"role": BASELINE}
    named = values or {"configuration": "as in the file"}
    return {**named, "seed": trial.seed, "score": trial.score}
