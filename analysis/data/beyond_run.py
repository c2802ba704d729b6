"""Levels of MTD beyond the run: which they are, and what is said of them.

An MTD is the age that weights and keys have when the target branch has lost its initial weights and
the queue is full. A level is beyond the run where one of its configurations never has this age. It
takes no part in a verdict on MTD unless the study keeps it.

A row is a configuration: its mtd and settings by name, of a frame or of a study file.
Letters: eta EMA decay, K queue size, N batch size, S steps of a run.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mtdlab.analysis.data.defaults import BEYOND_RUN, BeyondRun
from mtdlab.analysis.data.runs import level_of, levels_of, name_levels
from mtdlab.analysis.measures.trace import EmaDecay

if TYPE_CHECKING:
    import pandas as pd

NOTABLE = 0.25
"""The share of the steps above which a part of the MTD, 1/(1 - eta) or K/N, is reported."""
MOST_REMAINING = 0.1
"""The share of the initial weights above which a run is too short for its decay."""
MOST_FILLING = 0.5
"""The share of the steps above which K/N is too large for the run."""


@dataclass(frozen=True)
class RunLength:
    """The parts of an MTD beside the length of the run. NaN: not known.

    Attributes:
        steps: S.
        trace: 1/(1 - eta) in steps, of a schedule its mean.
        batches: K/N, the steps until a queue holds K keys of the run; 0 without a queue.
        remaining: share of the initial weights in the target branch after S steps, eta^S, of a
            schedule the product of the decays.
    """

    steps: int
    trace: float
    batches: float
    remaining: float

    @property
    def is_slow(self) -> bool:
        """Whether 1/(1 - eta) exceeds a quarter of the steps, or too much of the start remains."""
        return self.trace > NOTABLE * self.steps or self.remaining > MOST_REMAINING

    @property
    def is_filling(self) -> bool:
        """Whether K/N exceeds a quarter of the steps."""
        return self.batches > NOTABLE * self.steps

    @property
    def is_beyond(self) -> bool:
        """Whether eta^S is above 0.1 or K/N above half of the steps: the MTD is not reached."""
        return self.remaining > MOST_REMAINING or self.batches > MOST_FILLING * self.steps


Row = Mapping[Any, Any]
_SCHEDULE = ("ema_decay", "ema_decay_end", "ema_schedule_steps", "ema_order")
_READ = ("mtd", *_SCHEDULE, "queue_size", "batch_size", "steps")
RULE = (
    f"more than {100 * MOST_REMAINING:g} % of the initial weights remain at its end, or the queue "
    f"is filling for more than {100 * MOST_FILLING:g} % of it"
)
"""The rule by which a run's level is beyond the run, in words."""


def assess_row(row: Row) -> RunLength | None:
    """The length of a configuration's run; None without an MTD or a recorded number of steps."""
    known = _number(row, "steps")
    if not (_number(row, "mtd") > 0 and known >= 1):
        return None
    end, period = _number(row, "ema_decay_end"), _number(row, "ema_schedule_steps")
    decay = EmaDecay(
        _number(row, "ema_decay"),
        None if math.isnan(end) else end,
        None if math.isnan(period) else int(period),
        int(row.get("ema_order") == "before-target"),
    )
    steps, trace, remaining = int(known), math.nan, math.nan
    if not math.isnan(decay.start):
        trace, remaining = decay.trace(steps), decay.remaining(steps)
    # the batch size includes gradient accumulation
    return RunLength(
        steps, trace, _number(row, "queue_size") / _number(row, "batch_size"), remaining
    )


def _number(row: Row, name: str) -> float:
    """A finite number, or NaN for anything else: a setting may be missing, or text."""
    try:
        value = float(row[name])
    except (KeyError, TypeError, ValueError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def list_rows(runs: "pd.DataFrame") -> list[Row]:
    """The distinct configurations of runs, by the settings that a run's length depends on."""
    read = [name for name in _READ if name in runs]
    return [*runs[read].drop_duplicates().to_dict("records")]


def _assess(rows: Iterable[Row]) -> list[tuple[Row, RunLength]]:
    """The rows whose run is known, in the order of their MTD."""
    known = [(row, length) for row in rows if (length := assess_row(row)) is not None]
    return sorted(known, key=lambda pair: float(pair[0]["mtd"]))


def find_beyond(rows: Iterable[Row], beyond_run: BeyondRun = BEYOND_RUN) -> tuple[float, ...]:
    """The levels that a verdict leaves out as beyond the run, in rising order; with "keep" none."""
    if beyond_run == "keep":
        return ()
    beyond = (row["mtd"] for row, length in _assess(rows) if length.is_beyond)
    return tuple(sorted({level_of(mtd) for mtd in beyond}))


def leave_out(
    runs: "pd.DataFrame", beyond_run: BeyondRun
) -> "tuple[pd.DataFrame, tuple[float, ...]]":
    """The completed runs at levels that take part in a verdict on MTD, and the other levels.

    Runs without an MTD stay; without a column that the rule needs nothing is left out.
    """
    beyond = find_beyond(list_rows(runs), beyond_run)
    return runs[~levels_of(runs).isin(beyond)], beyond


def describe_left_out(beyond: Sequence[float]) -> str:
    """A sentence on which levels a verdict leaves out and why; empty without any."""
    return f"Left out, being beyond the run: {name_levels(beyond)} ({RULE})." if beyond else ""


def describe_lengths(rows: Iterable[Row], beyond_run: BeyondRun = BEYOND_RUN) -> tuple[str, ...]:
    """Sentences on what remains of the initial weights, and on how long the queue takes to fill.

    A sentence for each decay with 1/(1 - eta), and each queue with K/N, above a quarter of the
    steps, then one for the levels beyond the run; none where there are none.
    """
    assessed, levels = _assess(rows), dict[str, list[float]]()
    for row, length in assessed:
        texts = [_describe_weights(row, length)] if length.is_slow else []
        if length.is_filling:
            full = f"the queue is full after {math.ceil(length.batches):,} steps"
            texts.append(f"(K/N {length.batches:.4g}): {full}, a run has {length.steps:,}")
        for text in texts:
            levels.setdefault(text, []).append(level_of(row["mtd"]))
    sentences = [f"{name_levels(mtds)} {text}." for text, mtds in levels.items()]
    if beyond := find_beyond(row for row, _ in assessed):
        part = "no part in the verdict on MTD (beyond_run: keep adds them)"
        if beyond_run == "keep":
            part = "part in the verdict, as asked (beyond_run: keep)"
        sentences.append(f"Beyond the run, and taking {part}: {name_levels(beyond)}.")
    return tuple(sentences)


def _describe_weights(row: Row, length: RunLength) -> str:
    start, end = _number(row, "ema_decay"), _number(row, "ema_decay_end")
    rises, percent = "" if math.isnan(end) else f" to {end:.4g}", 100 * length.remaining
    # 45, 4 or 0.09
    shown = f"{percent:.0f}" if percent >= 1 else f"{percent:.1g}"
    return (
        f"(η {start:.4g}{rises}): {shown} % of the momentum encoder's initial weights remain after "
        f"{length.steps:,} steps"
    )
