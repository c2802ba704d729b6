"""Finished trials and looks, and their lines in the output."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtdlab.store import Look


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


def describe(parameters: Mapping[str, Any]) -> str:
    """A trial's searched parameters in one line."""
    return " ".join(
        f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in parameters.items()
    )


def line(trial: FinishedTrial) -> str:
    """A finished trial in one line."""
    what = f"trial {trial.number}  seed {trial.seed}  {describe(trial.parameters)}"
    if trial.state == "COMPLETE":
        mtd = f"  mtd {trial.mtd:.2f}" if math.isfinite(trial.mtd) else ""
        done = f"{what}{mtd}  score {trial.score:.2f}  {trial.wall_seconds:.0f} s"
        return f"{done}  ({trial.note})" if trial.note else done
    return f"{what}  {trial.state.lower()}: {trial.reason}"


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
