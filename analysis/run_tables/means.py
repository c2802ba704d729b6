"""A table of level means: columns mtd, mean, low and high."""

from pathlib import Path

import pandas as pd

from analysis.level_means import MOST_LEVELS, LevelMeans
from analysis.run_tables.cells import (
    Bounds,
    Scale,
    TableError,
    choose_scale,
    folder_name,
    place_of,
    read_numbers,
)

_COLUMNS = ("mtd", "mean", "low", "high")
_MTD = Bounds("an MTD must be at least 1", 1, 1e300)
_VALUE = Bounds("it must be a finite number", -1e300, 1e300)


def is_level_means(cells: pd.DataFrame) -> bool:
    """Whether a table has means instead of runs: columns mtd, mean, low, high, no score or seed."""
    return set(_COLUMNS) <= set(cells) and not {"score", "seed"} & set(cells)


def read_level_means(cells: pd.DataFrame, path: Path, scale: Scale | None = None) -> LevelMeans:
    """The means x 100 in rising order of MTD; other columns are left out.

    scale  as for the scores of runs.

    Raises TableError for fewer than 3 levels or more than 100, a missing value, a level that occurs
    twice, or a mean outside its band.
    """
    frame = pd.DataFrame(
        {
            name: read_numbers(cells[name], path, name, _MTD if name == "mtd" else _VALUE)
            for name in _COLUMNS
        }
    )
    if not 3 <= len(frame) <= MOST_LEVELS:
        raise TableError(
            f"{path}: {len(frame)} level means; between 3 and {MOST_LEVELS} can be compared"
        )
    checks = {
        "a level mean needs mtd, mean, low and high": frame.isna().any(axis=1),
        "each level must occur once": frame["mtd"].duplicated(),
        "the mean must lie inside its band, and low below high": ~(
            frame["mean"].between(frame["low"], frame["high"]) & (frame["low"] < frame["high"])
        ),
    }
    for rule, wrong in checks.items():
        if wrong.any():
            row = int(wrong.to_numpy().argmax())
            values = ", ".join(str(cells[name].iloc[row]) for name in _COLUMNS)
            raise TableError(f"{place_of(path, row, ', '.join(_COLUMNS), values)}; {rule}")
    factor, rule = choose_scale(frame["mean"], scale)
    frame = frame.assign(**{name: frame[name] * factor for name in _COLUMNS[1:]})
    source = f"Level means read from {path.name}. {rule}"
    return LevelMeans(folder_name(path), source, frame.sort_values("mtd", ignore_index=True))
