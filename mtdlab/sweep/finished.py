"""A trial that ended, and the words for it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Ended:
    """How a trial ended, for whoever watches."""

    number: int
    seed: int
    parameters: dict[str, Any]
    state: str
    reason: str = ""
    mtd: float = math.nan
    score: float = math.nan
    wall_seconds: float = math.nan


def clock(seconds: float) -> str:
    """Seconds as people say them: 45 s, 12 min, 3 h 20 min."""
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


def sentence(trial: Ended) -> str:
    """A finished trial in one line."""
    what = f"trial {trial.number}  seed {trial.seed}  {describe(trial.parameters)}"
    if trial.state == "COMPLETE":
        told = f"{what}  mtd {trial.mtd:.2f}  score {trial.score:.2f}  {trial.wall_seconds:.0f} s"
        return f"{told}  ({trial.reason})" if trial.reason else told
    return f"{what}  {trial.state.lower()}: {trial.reason}"
