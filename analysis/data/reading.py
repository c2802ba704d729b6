"""How a table of runs is read where its columns do not tell; imports no pandas, to start fast."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mtdlab.analysis.data.defaults import BEYOND_RUN, BeyondRun

Scale = Literal["fraction", "percent"]
TABLE_SUFFIXES = (".csv", ".parquet", ".pq", ".json")
"""Ends of the names of files with runs, where a study's name may stand too."""


@dataclass(frozen=True)
class Reading:
    """How a table is read, where its names and values do not tell: see `read_run_table`.

    Empty or None: found by names and values.
    """

    score: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Sequence[str] = ()
    scale: Scale | None = None
    beyond_run: BeyondRun = BEYOND_RUN
