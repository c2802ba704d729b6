"""Defaults, names, states, a folder and how a table is read, which the analysis and mtdlab share.

It imports no package, so that commands start fast.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

BUILT_IN = "builtin"
"""The name of the data set, and of its encoder, that come with mtdlab."""
BeyondRun = Literal["leave-out", "keep"]
BEYOND_RUN: BeyondRun = "leave-out"
"""Whether levels of MTD beyond the run take part in the verdict."""

MARGIN = 0.5
"""The margin: a difference of fewer points (score x 100) counts as no difference."""
ALPHA = 0.05
"""The error rate of the verdict."""
MOST_COMPARED = 100
"""The most configurations that are compared where they have no order; of more, the best."""
LEVEL = 0.95
"""The confidence of all intervals but those of a verdict, and of published bands."""
MODELS_FOLDER = "models"
"""The folder in which a sweep keeps models, in the working folder, unless --models names one."""
CONFIRMATION_SUFFIX = "-confirm"
"""What `mtdlab confirm` adds to the name of a study for that of its confirmation."""
CONFIRMATION_SEEDS = 5
"""How many new seeds `mtdlab confirm` runs, unless --seeds gives a number."""


COMES_AGAIN = ("nan_loss", "collapsed")
"""Codes of failures that come again where a trial runs again, with the same seed and settings."""

State = Literal["planned", "running", "paused", "complete", "failed"]


def find_state(counts: Mapping[str, int], begun: int) -> State:
    """The state of a study of which `begun` trials have begun; `counts` are its trials by state.

    Paused: trials wait and none is running. Complete or failed: all trials have ended, at least one
    of them complete or none.
    """
    if counts.get("RUNNING"):
        return "running"
    if counts.get("WAITING"):
        return "paused" if begun else "planned"
    if not begun:
        return "planned"
    return "complete" if counts.get("COMPLETE") else "failed"


def cache_folder() -> Path:
    """The folder of files that can be made again: MTDLAB_CACHE, or the user's cache folder."""
    if configured := os.environ.get("MTDLAB_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mtdlab"


Scale = Literal["fraction", "percent", "own"]
FACTORS: Mapping[Scale, float] = {"fraction": 100.0, "percent": 1.0, "own": 1.0}
"""What scores that are read so are multiplied by."""
ReadScale = Scale | Literal[""]
"""How a table's scores were read; empty for other scores, whose names tell their unit."""
Direction = Literal["maximize", "minimize"]
"""Whether higher or lower scores are better, in Optuna's words."""
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", ".pq", ".json")
"""Ends of the names of files with runs, where a study's name may stand too."""


@dataclass(frozen=True)
class Reading:
    """How a table is read, where its names and values do not tell: see `read_run_table`.

    Empty or None: found by names and values; a table without a column `block` is one of runs.
    `configurations` are the names, KEY=VALUE,... or VALUE, of those that are asked for.
    """

    score: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Sequence[str] = ()
    scale: Scale | None = None
    direction: Direction | None = None
    margin: float | None = None
    beyond_run: BeyondRun = BEYOND_RUN
    block: str = ""
    configurations: Sequence[str] = ()
