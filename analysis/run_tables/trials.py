"""The rows of a table as trials: numbers checked, scores scaled, states and MTD read."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.frames import TRIAL_COLUMNS
from analysis.run_tables.cells import (
    Bounds,
    Scale,
    TableError,
    choose_scale,
    is_missing_cell,
    place_of,
    read_numbers,
)
from analysis.run_tables.columns import OF_MTD, Columns
from analysis.tasks import TASKS
from analysis.trace import d_trace

TASK_COLUMNS = (*TASKS, "sts_dev")
_BOUNDS: Mapping[str, Bounds] = {
    "seed": Bounds("a seed must be a whole number", -(2**53), 2**53, whole=True),
    "ema_decay": Bounds("it must be at least 0 and below 1", 0, np.nextafter(1, 0)),
    "queue_size": Bounds("it must be a whole number of at least 0", 0, 2**53, whole=True),
    "batch_size": Bounds("it must be a whole number of at least 1", 1, 2**53, whole=True),
    "initial_queue_size": Bounds("it must be a whole number of at least 0", 0, 2**53, whole=True),
    "best_step": Bounds("it must be a number"),
    "wall_seconds": Bounds("it must be a number of seconds"),
    "peak_memory": Bounds("it must be a number of bytes"),
    "alignment": Bounds("it must be a finite number", -1e300, 1e300),
    "uniformity": Bounds("it must be a finite number", -1e300, 1e300),
    "mean_cosine": Bounds("it must be from -1 to 1", -1.000001, 1.000001),
}
_SCORE = Bounds("a score must be from -100 to 100 (x 100), or from -1 to 1", -100, 100)
_FRACTION = Bounds("with --scale fraction a score must be from -1 to 1", -1, 1)
_DISTANCE = Bounds("an MTD must be at least 1, or empty for a run without one", 1, 1e300)
_SCORES = ("score_before", *TASK_COLUMNS)
_MOST_ROWS = 10
_TEXTS = ("reason", "reason_code", "queue_slice", "note", "run")
_STATES = {
    "complete": "COMPLETE",
    "completed": "COMPLETE",
    "finished": "COMPLETE",
    "fail": "FAIL",
    "failed": "FAIL",
    "crashed": "FAIL",
    "killed": "FAIL",
    "pruned": "PRUNED",
    "running": "RUNNING",
    "waiting": "WAITING",
    "pending": "WAITING",
}


def read_trials(
    cells: pd.DataFrame, path: Path, columns: Columns, scale: Scale | None
) -> tuple[pd.DataFrame, str]:
    """The frame of trials (`TRIAL_COLUMNS` first), and how scores were scaled, as a sentence."""
    named = columns.named
    found: dict[str, pd.Series] = {"number": pd.Series(range(len(cells)), dtype="int64")}
    for name, bounds in _BOUNDS.items():
        if name in named:
            found[name] = read_numbers(cells[named[name]], path, named[name], bounds)
    found |= _read_scores(cells, path, columns, scale)
    factor, rule = choose_scale(found["score"], scale)
    found |= {name: found[name] * factor for name in ("score", *_SCORES) if name in found}
    found["mtd"] = _read_distance(cells, path, columns, found)
    found |= {name: cells[named[name]] for name in _TEXTS if name in named}
    found["state"] = _read_states(cells, path, columns, found["score"])
    found |= {name: _read_setting(cells[column]) for name, column in columns.settings.items()}
    frame = pd.DataFrame(found, index=cells.index)
    _check_seeds(frame, cells, path, columns)
    return _complete(frame), rule


def _read_scores(
    cells: pd.DataFrame, path: Path, columns: Columns, scale: Scale | None
) -> dict[str, pd.Series]:
    bounds = _FRACTION if scale == "fraction" else _SCORE
    return {
        name: read_numbers(cells[column], path, column, bounds, infinite=True)
        for name in ("score", *_SCORES)
        if (column := columns.named.get(name)) is not None
    }


def _read_distance(
    cells: pd.DataFrame, path: Path, columns: Columns, found: Mapping[str, pd.Series]
) -> pd.Series:
    """The column mtd, or MTD by equation 4; NaN for a run without one."""
    if "mtd" in columns:
        name = columns.named["mtd"]
        # 0 is accepted for a method without an MTD
        given = cells[name].mask(cells[name].str.strip().isin(["0", "0.0"]), "")
        return read_numbers(given, path, name, _DISTANCE)
    parts = pd.DataFrame({name: found[name] for name in OF_MTD})
    known = parts.notna().all(axis=1)
    distance = pd.Series(np.nan, index=parts.index)
    distance[known] = d_trace(*(parts.loc[known, name] for name in OF_MTD))
    return distance


def _read_states(cells: pd.DataFrame, path: Path, columns: Columns, scores: pd.Series) -> pd.Series:
    """The state of each run; without that column, COMPLETE with a score and FAIL without."""
    if "state" not in columns:
        return pd.Series(np.where(scores.notna(), "COMPLETE", "FAIL"), index=cells.index)
    name = columns.named["state"]
    states = cells[name].str.strip().str.lower().map(_STATES)
    if states.isna().any():
        row = int(states.isna().to_numpy().argmax())
        raise TableError(
            f"{place_of(path, row, name, cells[name].iloc[row])}; a state must be one of "
            f"{', '.join(_STATES)}"
        )
    return states


def _read_setting(cells: pd.Series) -> pd.Series:
    """Numbers if all values are numbers, else text; missing values are NaN or empty text."""
    missing = is_missing_cell(cells)
    numbers = pd.to_numeric(cells.str.strip().mask(missing), errors="coerce").astype("float64")
    if (numbers.notna() | missing).all():
        return numbers
    return cells.str.strip().mask(missing, "").astype("str")


def _check_seeds(frame: pd.DataFrame, cells: pd.DataFrame, path: Path, columns: Columns) -> None:
    """Raise TableError for a completed run without a seed; other runs may lack one."""
    wrong = frame["seed"].isna() & (frame["state"] == "COMPLETE")
    if wrong.any():
        rows, name = np.flatnonzero(wrong.to_numpy()), columns.named["seed"]
        listed = ", ".join(str(row + 1) for row in rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            listed += f" and {len(rows) - _MOST_ROWS:,} more"
        which, these = ("row", "that row") if len(rows) == 1 else ("rows", "those rows")
        value = cells[name].iloc[rows[0]]
        raise TableError(
            f"{path}: {which} {listed}, column {name}: {value!r}; a completed run must have a "
            f"seed. Fill it in, or delete {these}: the others ({len(frame) - len(rows):,}) can be "
            "read"
        )


def _complete(frame: pd.DataFrame) -> pd.DataFrame:
    """All `TRIAL_COLUMNS` with their types, then the other columns."""
    first = frame.reindex(columns=list(TRIAL_COLUMNS))
    if "reason" not in frame:
        unscored = (first["state"] == "FAIL") & first["score"].isna()
        first["reason"] = np.where(unscored, "no score in the table", "")
    if "queue_slice" not in frame:
        first["queue_slice"] = "all"
    for name, kind in TRIAL_COLUMNS.items():
        if kind == "int64" and first[name].isna().any():
            first[name] = first[name].astype("float64")
        else:
            first[name] = first[name].astype(kind)  # type: ignore[call-overload]
    return first.join(frame.drop(columns=[name for name in TRIAL_COLUMNS if name in frame]))
