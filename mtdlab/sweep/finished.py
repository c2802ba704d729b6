"""Finished trials and looks, and their lines in the output."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.settings import Setting
    from mtdlab.store import Look

WIDTH = 100
"""The most columns of a trial's line; longer ones are cut."""
LEAST_PARAMETERS = 16
"""The columns that are left to a trial's parameters, however long the rest is."""


@dataclass(frozen=True)
class FinishedTrial:
    """How a trial ended, as the progress display needs it. `ranking` is the score that ranks it."""

    number: int
    seed: int
    parameters: dict[str, Any]
    state: str
    reason: str = ""
    mtd: float = math.nan
    score: float = math.nan
    ranking: float = math.nan
    wall_seconds: float = math.nan
    note: str = ""


def clock(seconds: float) -> str:
    """A duration: 45 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def describe(parameters: Mapping[str, Any], known: "Mapping[str, Setting]") -> str:
    """A trial's searched parameters in one line, by their symbols: `η=0.985 K/N=8`.

    known  the settings of the study's methods, by name.
    """
    return " ".join(
        f"{_symbol(name, known)}={value:g}"
        if isinstance(value, float)
        else f"{_symbol(name, known)}={value}"
        for name, value in parameters.items()
    )


def _symbol(name: str, known: "Mapping[str, Setting]") -> str:
    """`K/N` for `queue_size/batch_size`; a setting without a symbol keeps its name."""
    parts = name.split("/")
    return "/".join((known[part].symbol if part in known else "") or part for part in parts)


def line(
    trial: FinishedTrial,
    select_by: str,
    known: "Mapping[str, Setting]",
    head: str = "",
    tail: str = "",
) -> str:
    """A finished trial in one line of at most `WIDTH` columns, with its ranking score.

    select_by   the name of that score.
    head, tail  what stands before and after it.
    """
    # imports pandas, which --help does without
    from analysis.runs import format_mtd

    before = f"{head}trial {trial.number} seed {trial.seed} "
    if trial.state == "COMPLETE":
        mtd = f" MTD {format_mtd(trial.mtd)}" if math.isfinite(trial.mtd) else ""
        after = f"{mtd}: {select_by} {trial.ranking:.2f}, {clock(trial.wall_seconds)}{tail}"
    else:
        after = f" {trial.state.lower()}: {trial.reason}"
    space = max(LEAST_PARAMETERS, WIDTH - len(before) - len(after))
    text = (before + _cut(describe(trial.parameters, known), space)).rstrip() + after
    # what went wrong with a result that counts is not cut
    return _cut(text, WIDTH) + (f"\n  trial {trial.number}: {trial.note}" if trial.note else "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def describe_look(look: "Look", looks: int) -> str:
    """A look in one line."""
    p_value = "no test" if look.p_value is None else f"p {look.p_value:.2g}"
    ends = {
        "continue": f"{len(look.added)} trials added",
        "decided": "the verdict is decided",
        "flat": "ended, since the score is flat",
        "max_seeds": "ended at max_seeds",
        "no scores": "ended, since nothing can be compared",
    }
    return (
        f"look {look.look} of {looks} at {look.seeds} seeds, {len(look.trials)} runs: "
        f"{look.verdict} ({p_value}, compared with {look.alpha:.2g}); {ends[look.decision]}"
    )
