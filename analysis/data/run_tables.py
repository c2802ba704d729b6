"""Tables of runs made with other programs as `StudyFrames`: CSV, Parquet, exports of W&B.

Columns are recognised by mtdlab's names, by those of a W&B export, or as given.
"""

import difflib
import hashlib
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.data.cells import (
    Bounds,
    Scale,
    TableError,
    choose_scale,
    folder_name,
    is_missing_cell,
    place_of,
    read_cells,
    read_numbers,
)
from analysis.data.frames import ENVIRONMENT_COLUMNS, TRIAL_COLUMNS, Setting, StudyFrames
from analysis.data.level_means import LevelMeans, is_level_means, read_level_means
from analysis.data.tasks import TASKS
from analysis.measures.trace import PARTS, d_trace

SETTING_NAMES = (*PARTS, "initial_queue_size", "queue_slice")
_READ = (*(name for name in TRIAL_COLUMNS if name != "number"), *TASKS, "sts_dev", "note")
_ENVIRONMENT = tuple(name for name in ENVIRONMENT_COLUMNS if name != "number")
_CONFIG = ("config.", "config/", "config:")
_SUMMARY = ("summary.", "summary/", "summary:")
_VALUE = ".value"
# Columns of the runs table of Weights & Biases that describe a run: those read, with the name that
# mtdlab uses, and those ignored.
_WANDB_READ = {"name": "run", "runtime": "wall_seconds", "gpu type": "device"}
_WANDB_ONLY = frozenset(
    (
        *("id", "notes", "user", "tags", "created", "created_at", "updated", "start time"),
        *("end time", "sweep", "group", "job type", "hostname", "commit", "github", "project"),
        *("path", "url", "gpu count", "cpu count"),
    )
)


@dataclass(frozen=True)
class Columns:
    """The meaning of a table's columns.

    Attributes:
        named: mtdlab's name -> the file's column, for the columns that mtdlab has a name for.
        settings: name of a setting -> the file's column, for every other hyperparameter.
        others: the file's columns that are not read.
    """

    named: Mapping[str, str]
    settings: Mapping[str, str]
    others: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.named


def find_columns(cells: pd.DataFrame, path: Path, stated: Mapping[str, str]) -> Columns:
    """The columns of a table of runs.

    Args:
        stated: mtdlab's name -> the file's column, for columns with other names.

    Raises:
        TableError: for a stated column that does not exist, for two columns with the same meaning,
            and for a missing score, seed or MTD.
    """
    found = _stated(cells, path, stated)
    wandb = _is_wandb(cells)
    for name in cells:
        ours = _known_name(str(name), wandb)
        if ours is None or str(name) in found.values() or ours in stated:
            continue
        if ours in found and found[ours] != ours and str(name) != ours:
            raise TableError(
                f"{path}: columns {found[ours]!r} and {name!r} both mean {ours}; choose one "
                f"with --column {ours}=COLUMN"
            )
        if found.get(ours) != ours:
            found[ours] = str(name)
    _check_required(found, cells, path)
    rest = [str(name) for name in cells if str(name) not in found.values()]
    settings = {
        _bare(name): name
        for name in _find_settings(rest, cells, found, wandb)
        if _bare(name) not in found and _bare(name) not in TRIAL_COLUMNS
    }
    left = tuple(name for name in rest if name not in settings.values())
    return Columns(found, settings, left)


def _stated(cells: pd.DataFrame, path: Path, stated: Mapping[str, str]) -> dict[str, str]:
    known = (*_READ, *_ENVIRONMENT, "run")
    for ours, name in stated.items():
        if ours not in known:
            raise TableError(
                f"{path}: --column {ours}={name}: unknown name {ours!r}; {_nearest(ours, known)}"
            )
        if name not in cells:
            raise TableError(f"{path}: no column {name!r}; {_nearest(name, cells)}")
    return dict(stated)


def _nearest(word: str, known: Iterable[object]) -> str:
    options = [str(name) for name in known]
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(options[:40])}"


def _is_wandb(cells: pd.DataFrame) -> bool:
    """Whether the table is a W&B export: a column State, and Name, ID, Created or Runtime."""
    names = {str(name).lower() for name in cells}
    return "state" in names and bool(names & {"name", "id", "created", "runtime"})


def _bare(name: str) -> str:
    """A column's name without the prefix and the suffix of W&B."""
    for prefix in (*_CONFIG, *_SUMMARY):
        if name.startswith(prefix):
            name = name.removeprefix(prefix)
            break
    return name.removesuffix(_VALUE)


def _known_name(name: str, wandb: bool) -> str | None:
    """mtdlab's name for a column of the file; None if there is none."""
    bare = _bare(name)
    if wandb and bare.lower() in _WANDB_READ:
        return _WANDB_READ[bare.lower()]
    folded = {known.lower(): known for known in (*_READ, *_ENVIRONMENT)}
    return folded.get(bare.lower())


def _check_required(found: Mapping[str, str], cells: pd.DataFrame, path: Path) -> None:
    if "config" in cells and not {"seed", "score"} <= set(found):
        raise TableError(
            f"{path}: column 'config' has all settings of a run in one cell; write one column per "
            "setting, as pandas.json_normalize does"
        )
    names = ", ".join(str(name) for name in list(cells)[:40])
    if "score" not in found:
        raise TableError(
            f"{path}: no column score among {names}; name the metric's column with --score COLUMN"
        )
    if "seed" not in found:
        raise TableError(
            f"{path}: no column seed among {names}; every run needs its seed, since the seed is "
            "the unit of replication; name the column with --column seed=COLUMN"
        )
    missing = [name for name in PARTS if name not in found]
    if "mtd" not in found and missing:
        raise TableError(
            f"{path}: no column mtd, and no {', '.join(missing)} to compute it from, among "
            f"{names}; name a column with --column ema_decay=COLUMN"
        )


def _find_settings(
    rest: Sequence[str], cells: pd.DataFrame, found: Mapping[str, str], wandb: bool
) -> list[str]:
    """The columns that are hyperparameters.

    If any column has a prefix such as `config.`, the columns with one. Else every column whose
    values
    repeat over seeds, as those of hyperparameters do; measurements differ between runs.
    """
    configured = [name for name in rest if name.startswith(_CONFIG)]
    every = [str(name) for name in cells]
    if any(name.startswith(_CONFIG) for name in every):
        return configured
    seeds = cells[found["seed"]]
    return [
        name
        for name in rest
        if not name.startswith(("_", *_SUMMARY))
        and not (wandb and name.lower() in _WANDB_ONLY)
        and _repeats(cells[name], seeds)
    ]


def _repeats(values: pd.Series, seeds: pd.Series) -> bool:
    """Whether most values of a column occur with several seeds; True with one seed."""
    known = ~is_missing_cell(values)
    if not known.any():
        return False
    if seeds[known].nunique() < 2:
        return True
    seeds_of = seeds[known].groupby(values[known]).nunique()
    return bool((seeds_of > 1).mean() > 0.5)


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
    parts = pd.DataFrame({name: found[name] for name in PARTS})
    known = parts.notna().all(axis=1)
    distance = pd.Series(np.nan, index=parts.index)
    distance[known] = d_trace(*(parts.loc[known, name] for name in PARTS))
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


_SETTINGS = {
    "ema_decay": Setting("ema_decay", "η", description="decay of the average of the weights"),
    "queue_size": Setting("queue_size", "K", "keys", "keys of earlier batches in the queue"),
    "batch_size": Setting("batch_size", "N", "sentences", "sentences in a batch"),
    "initial_queue_size": Setting(
        "initial_queue_size", "K_s", "keys", "random keys that the queue starts with"
    ),
}


def open_table(
    path: Path,
    *,
    score: str = "score",
    columns: Mapping[str, str] | None = None,
    scale: Scale | None = None,
) -> StudyFrames | LevelMeans:
    """Read runs as a study, or level means if the file has columns mtd, mean, low, high.

    Arguments and errors as for `analysis.read_run_table`.
    """
    cells = read_cells(path)
    if is_level_means(cells):
        return read_level_means(cells, path, scale)
    return build_study(cells, path, score, columns or {}, scale)


def build_study(
    cells: pd.DataFrame,
    path: Path,
    score: str,
    stated: Mapping[str, str],
    scale: Scale | None,
) -> StudyFrames:
    """The study of a table of runs; see `analysis.read_run_table`."""
    named = dict(stated) if score == "score" else {**stated, "score": score}
    columns = find_columns(cells, path, named)
    trials, rule = read_trials(cells, path, columns, scale)
    settings = {
        name: _SETTINGS.get(name, Setting(name))
        for name in (*(name for name in SETTING_NAMES if name in columns), *columns.settings)
    }
    scores = [name for name in TASK_COLUMNS if name in trials]
    metric = columns.named["score"]
    return StudyFrames(
        name=folder_name(path),
        metric=metric,
        planned=len(trials),
        trials=trials.drop(columns=scores),
        scores=_melt(trials, scores),
        sampler="not recorded",
        facts=_list_facts(cells, path, columns, rule),
        environment=_read_environment(cells, columns),
        settings=settings,
        command=_command(path, score, stated, scale),
        description=f"Runs read from {path.name}, not made by mtdlab. {rule}",
    )


def _command(path: Path, score: str, stated: Mapping[str, str], scale: Scale | None) -> str:
    """The command that reads the table."""
    words = ["mtdlab", "report", "--table", str(path)]
    words += ["--score", score] if score != "score" else []
    words += [word for pair in stated.items() for word in ("--column", "=".join(pair))]
    return shlex.join([*words, *(("--scale", scale) if scale else ())])


def _melt(trials: pd.DataFrame, tasks: list[str]) -> pd.DataFrame:
    """A row per run and task: number, task, score."""
    long = trials[["number", *tasks]].melt("number", var_name="task", value_name="score")
    return long.astype({"task": "str", "score": "float64"})


def _read_environment(cells: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """`ENVIRONMENT_COLUMNS` of each run, those that the table has."""
    names = [name for name in ENVIRONMENT_COLUMNS if name in columns]
    text = {name: cells[columns.named[name]].str.strip() for name in names}
    frame = pd.DataFrame(text, index=cells.index)
    frame.insert(0, "number", np.arange(len(cells)))
    return frame


def _list_facts(cells: pd.DataFrame, path: Path, columns: Columns, rule: str) -> dict[str, str]:
    """The file, and which column was read as what."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    distance = (
        f"column {columns.named['mtd']}"
        if "mtd" in columns
        else "computed: 1/(1 - ema_decay) + queue_size/batch_size"
    )
    facts = {
        "table": f"{path.name}, {len(cells):,} rows, SHA-256 {digest}",
        "score": f"column {columns.named['score']}. {rule}",
        "MTD": distance,
        "columns read": ", ".join(columns.named.values()),
        "settings": ", ".join(columns.settings.values()),
        "columns not read": ", ".join(columns.others),
    }
    return {name: value for name, value in facts.items() if value}
