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
    """How a table is read, where its names and values do not tell.

    Attributes:
        score: the column of the metric, with or without the tracker's prefix; empty: found by name.
        columns: mtdlab's name of a column -> the table's.
        settings: the only columns that are settings; empty: found by name and by their values.
        scale: whether scores are fractions or x 100; None: by their range.
        beyond_run: whether the verdict compares levels of MTD beyond the run.
    """

    score: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: Sequence[str] = ()
    scale: Scale | None = None
    beyond_run: BeyondRun = BEYOND_RUN
