"""Tables of runs made with other programs as `StudyFrames`: CSV, Parquet, exports of W&B.

Columns are recognised by mtdlab's names, by those of a W&B export, or as given.
"""

import difflib
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.data.cells import (
    FINITE,
    Bounds,
    Scale,
    TableError,
    choose_scale,
    folder_name,
    is_missing_cell,
    read_numbers,
    refuse_first,
)
from analysis.data.defaults import BEYOND_RUN, BeyondRun
from analysis.data.frames import ENVIRONMENT_COLUMNS, TRIAL_COLUMNS, RecordedSetting, StudyFrames
from analysis.data.invocation import Invocation
from analysis.data.tasks import TASKS
from analysis.measures.trace import PARTS, d_trace

Columns = Mapping[str, pd.Series]
STATE_NAMES = ("state", "status")
"""Names of the column of states: mtdlab's, that of Optuna and W&B, and MLflow's."""
SETTING_NAMES = (*PARTS, "initial_queue_size", "queue_slice")
_READ = (*(name for name in TRIAL_COLUMNS if name != "number"), *TASKS, "sts_dev", "note")
_ENVIRONMENT = (*(name for name in ENVIRONMENT_COLUMNS if name != "number"), "versions")
_CONFIG = ("config.", "config/", "config:")
_SUMMARY = ("summary.", "summary/", "summary:")
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
class RunTable:
    """The cells of a table of runs, and the meaning of its columns.

    Attributes:
        named: mtdlab's name -> the file's column, for the columns that mtdlab has a name for.
        states: the file's columns that say what became of a run.
        settings: name of a setting -> the file's column, for every other hyperparameter.
        others: the file's columns that are not read.
    """

    cells: pd.DataFrame
    named: Mapping[str, str]
    states: tuple[str, ...]
    settings: Mapping[str, str]
    others: tuple[str, ...]

    def text(self, name: str) -> pd.Series:
        """The cells of the column that mtdlab calls `name`, stripped."""
        return self.cells[self.named[name]].str.strip()

    def numbers(self, bounds: Mapping[str, Bounds], *, infinite: bool = False) -> Columns:
        """The columns with these bounds that the table has."""
        return {
            name: read_numbers(self.cells, self.named[name], limits, infinite=infinite)
            for name, limits in bounds.items()
            if name in self.named
        }


def find_columns(cells: pd.DataFrame, stated: Mapping[str, str]) -> RunTable:
    """The table with the meaning of its columns.

    `stated` are columns with other names: mtdlab's name -> the file's. Raises TableError for a
    stated column that does not exist, for two columns with the same meaning, and for a missing
    score, seed or MTD. Whether several columns of states agree is left to `_read_states`.
    """
    header = [str(name) for name in cells]
    lower = {name.lower() for name in header}
    wandb = "state" in lower and bool(lower & {"name", "id", "created", "runtime"})
    known = {name.lower(): name for name in (*_READ, *_ENVIRONMENT) if name != "state"}
    known |= _WANDB_READ if wandb else {}
    _check_stated(header, stated)
    named = dict(stated)
    for name in header:
        ours = known.get(_bare(name).lower())
        if ours is None or name in named.values() or ours in stated:
            continue
        if ours in named and named[ours] != ours and name != ours:
            raise TableError(
                f"columns {named[ours]!r} and {name!r} both mean {ours}; choose one "
                f"with --column {ours}=COLUMN"
            )
        if named.get(ours) != ours:
            named[ours] = name
    _check_required(named, header)
    states = tuple(name for name in header if _bare(name).lower() in STATE_NAMES)
    if "state" in stated:
        states = (stated["state"],)
    if states:
        named["state"] = states[0]
    rest = [name for name in header if name not in (*named.values(), *states)]
    settings = {
        _bare(name): name
        for name in _find_settings(rest, cells, named, wandb)
        if _bare(name) not in (*named, *TRIAL_COLUMNS, *STATE_NAMES)
    }
    left = tuple(name for name in rest if name not in settings.values())
    return RunTable(cells, named, states, settings, left)


def _check_stated(header: Sequence[str], stated: Mapping[str, str]) -> None:
    known = (*_READ, *_ENVIRONMENT, "run")
    for ours, name in stated.items():
        if ours not in known:
            raise TableError(
                f"--column {ours}={name}: unknown name {ours!r}; {_nearest(ours, known)}"
            )
        if name not in header:
            raise TableError(f"no column {name!r}; {_nearest(name, header)}")


def _nearest(word: str, options: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(options[:40])}"


def _bare(name: str) -> str:
    """A column's name without the prefix and the suffix of W&B."""
    return re.sub(r"^(config|summary)[./:]", "", name).removesuffix(".value")


def _check_required(named: Mapping[str, str], header: Sequence[str]) -> None:
    if "config" in header and not {"seed", "score"} <= set(named):
        raise TableError(
            "column 'config' has all settings of a run in one cell; write one column per "
            "setting, as pandas.json_normalize does"
        )
    names = ", ".join(header[:40])
    if "score" not in named:
        raise TableError(
            f"no column score among {names}; name the metric's column with --score COLUMN"
        )
    if "seed" not in named:
        raise TableError(
            f"no column seed among {names}; every run needs its seed, since the seed is "
            "the unit of replication; name the column with --column seed=COLUMN"
        )
    missing = [name for name in PARTS if name not in named]
    if "mtd" not in named and missing:
        raise TableError(
            f"no column mtd, and no {', '.join(missing)} to compute it from, among "
            f"{names}; name a column with --column ema_decay=COLUMN"
        )


def _find_settings(
    rest: Sequence[str], cells: pd.DataFrame, named: Mapping[str, str], wandb: bool
) -> list[str]:
    """The columns that are hyperparameters.

    If any column has a prefix such as `config.`, they are the columns with one. Else they are the
    columns whose values repeat over seeds, as those of hyperparameters do; measurements differ
    between runs.
    """
    if any(str(name).startswith(_CONFIG) for name in cells):
        return [name for name in rest if name.startswith(_CONFIG)]
    seeds = cells[named["seed"]]
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
    if seeds[known].nunique() < 2:
        return bool(known.any())
    seeds_of = seeds[known].groupby(values[known]).nunique()
    return bool((seeds_of > 1).mean() > 0.5)


TASK_COLUMNS = (*TASKS, "sts_dev")
_SIZE = Bounds("it must be a whole number of at least 0", 0, 2**53, whole=True)
_BOUNDS: Mapping[str, Bounds] = {
    "seed": Bounds("a seed must be a whole number", -(2**53), 2**53, whole=True),
    "ema_decay": Bounds("it must be at least 0 and below 1", 0, np.nextafter(1, 0)),
    "queue_size": _SIZE,
    "batch_size": Bounds("it must be a whole number of at least 1", 1, 2**53, whole=True),
    "initial_queue_size": _SIZE,
    "best_step": Bounds("it must be a number"),
    "wall_seconds": Bounds("it must be a number of seconds"),
    "peak_memory": Bounds("it must be a number of bytes"),
    "alignment": FINITE,
    "uniformity": FINITE,
    "mean_cosine": Bounds("it must be from -1 to 1", -1.000001, 1.000001),
}
_SCORE = Bounds("a score must be from -100 to 100 (x 100), or from -1 to 1", -100, 100)
_FRACTION = Bounds("with --scale fraction a score must be from -1 to 1", -1, 1)
_DISTANCE = Bounds("an MTD must be at least 1, or empty for a run without one", 1, 1e300)
_SCORES = ("score", "score_before", *TASK_COLUMNS)
_MOST_ROWS = 10
_TEXTS = ("reason", "reason_code", "queue_slice", "note", "run")
_STATES = {
    **dict.fromkeys(("complete", "completed", "finished"), "COMPLETE"),
    **dict.fromkeys(("fail", "failed", "crashed", "killed", "preempted"), "FAIL"),
    "pruned": "PRUNED",
    "running": "RUNNING",
    **dict.fromkeys(("waiting", "pending", "scheduled"), "WAITING"),
}


def read_trials(table: RunTable, scale: Scale | None) -> tuple[pd.DataFrame, str]:
    """The frame of trials (`TRIAL_COLUMNS` first), and how scores were scaled, as a sentence."""
    cells, named = table.cells, table.named
    columns = {"number": pd.Series(range(len(cells)), dtype="int64"), **table.numbers(_BOUNDS)}
    bounds = _FRACTION if scale == "fraction" else _SCORE
    scores = table.numbers(dict.fromkeys(_SCORES, bounds), infinite=True)
    factor, rule = choose_scale(scores["score"], scale)
    columns |= {name: values * factor for name, values in scores.items()}
    columns["mtd"] = _read_distance(table, columns)
    columns |= {name: cells[named[name]] for name in _TEXTS if name in named}
    columns["state"] = _read_states(table, columns["score"])
    columns |= {name: _read_setting(cells[column]) for name, column in table.settings.items()}
    frame = pd.DataFrame(columns, index=cells.index)
    _check_seeds(frame, table)
    return _complete(frame), rule


def _read_distance(table: RunTable, columns: Columns) -> pd.Series:
    """The column mtd, or MTD by equation 4; NaN for a run without one."""
    if name := table.named.get("mtd"):
        # 0 is accepted for a method without an MTD
        given = table.cells[[name]].mask(table.text("mtd").isin(["0", "0.0"]), "")
        return read_numbers(given, name, _DISTANCE)
    parts = pd.DataFrame({name: columns[name] for name in PARTS})
    known = parts.notna().all(axis=1)
    distance = pd.Series(np.nan, index=parts.index)
    distance[known] = d_trace(*(parts.loc[known, name] for name in PARTS))
    return distance


def _read_states(table: RunTable, scores: pd.Series) -> pd.Series:
    """The state of each run; without a column of it, COMPLETE with a score and FAIL without.

    Raises TableError for a value that is no state, and for columns that contradict each other.
    """
    if not table.states:
        return pd.Series(np.where(scores.notna(), "COMPLETE", "FAIL"), index=scores.index)
    known = (
        f"a state must be one of {', '.join(_STATES)}; correct it, rename the column if it says "
        "something else, or name the one with the state with --column state=COLUMN"
    )
    agreed = "these are different states of one run; name the right one with --column state=COLUMN"
    recorded = []
    for name in table.states:
        states = table.cells[name].str.strip().str.lower().map(_STATES)
        refuse_first(states.isna(), table.cells, [name], known)
        recorded.append(states)
        refuse_first(states != recorded[0], table.cells, table.states, agreed)
    return recorded[0]


def _read_setting(cells: pd.Series) -> pd.Series:
    """Numbers if all values are numbers, else text; missing values are NaN or empty text."""
    missing = is_missing_cell(cells)
    numbers = pd.to_numeric(cells.str.strip().mask(missing), errors="coerce").astype("float64")
    if (numbers.notna() | missing).all():
        return numbers
    return cells.str.strip().mask(missing, "").astype("str")


def _check_seeds(frame: pd.DataFrame, table: RunTable) -> None:
    """Raise TableError for a completed run without a seed; other runs may lack one."""
    wrong = frame["seed"].isna() & (frame["state"] == "COMPLETE")
    if wrong.any():
        rows, name = np.flatnonzero(wrong.to_numpy()), table.named["seed"]
        listed = ", ".join(str(row + 1) for row in rows[:_MOST_ROWS])
        if len(rows) > _MOST_ROWS:
            listed += f" and {len(rows) - _MOST_ROWS:,} more"
        which, these = ("row", "that row") if len(rows) == 1 else ("rows", "those rows")
        value = table.cells[name].iloc[rows[0]]
        raise TableError(
            f"{which} {listed}, column {name}: {value!r}; a completed run must have "
            f"a seed. Fill it in, or delete {these}: the others ({len(frame) - len(rows):,}) can "
            "be read"
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
    "ema_decay": RecordedSetting(
        "ema_decay", "η", description="decay of the average of the weights"
    ),
    "queue_size": RecordedSetting(
        "queue_size", "K", "keys", "keys of earlier batches in the queue"
    ),
    "batch_size": RecordedSetting("batch_size", "N", "sentences", "sentences in a batch"),
    "initial_queue_size": RecordedSetting(
        "initial_queue_size", "K_s", "keys", "random keys that the queue starts with"
    ),
}


def build_study(
    cells: pd.DataFrame,
    path: Path,
    score: str,
    stated: Mapping[str, str],
    scale: Scale | None,
    beyond_run: BeyondRun,
) -> StudyFrames:
    """The study of a table of runs; see `analysis.read_run_table`."""
    named = dict(stated) if score == "score" else {**stated, "score": score}
    table = find_columns(cells, named)
    trials, rule = read_trials(table, scale)
    names = [*(name for name in SETTING_NAMES if name in table.named), *table.settings]
    tasks = [name for name in TASK_COLUMNS if name in trials]
    scores = trials[["number", *tasks]].melt("number", var_name="task", value_name="score")
    environment = {name: table.text(name) for name in _ENVIRONMENT if name in table.named}
    return StudyFrames(
        name=folder_name(path),
        metric=table.named["score"],
        planned=len(trials),
        trials=trials.drop(columns=tasks),
        scores=scores.astype({"task": "str", "score": "float64"}),
        sampler="not recorded",
        table=_describe(table, path, rule),
        environment=pd.DataFrame({"number": np.arange(len(cells)), **environment}),
        settings={name: _SETTINGS.get(name, RecordedSetting(name)) for name in names},
        invocation=_invocation(path, score, stated, scale, beyond_run),
        beyond_run=beyond_run,
        description=f"Runs read from {path.name}, not made by mtdlab. {rule}",
    )


def _invocation(
    path: Path,
    score: str,
    stated: Mapping[str, str],
    scale: Scale | None,
    beyond_run: BeyondRun,
) -> Invocation:
    """The command that reads the table."""
    options = {
        "table": (str(path),),
        "score": () if score == "score" else (score,),
        "column": tuple("=".join(pair) for pair in stated.items()),
        "scale": (scale,) if scale else (),
        "beyond-run": () if beyond_run == BEYOND_RUN else (beyond_run,),
    }
    return Invocation("report", options={name: each for name, each in options.items() if each})


def _describe(table: RunTable, path: Path, rule: str) -> dict[str, str]:
    """The file, and which column was read as what."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    distance = "computed: 1/(1 - ema_decay) + queue_size/batch_size"
    if "mtd" in table.named:
        distance = f"column {table.named['mtd']}"
    facts = {
        "table": f"{path.name}, {len(table.cells):,} rows",
        "SHA-256": digest,
        "score": f"column {table.named['score']}. {rule}",
        "MTD": distance,
        "columns read": ", ".join(table.named.values()),
        "settings": ", ".join(table.settings.values()),
        "columns not read": ", ".join(table.others),
    }
    return {name: value for name, value in facts.items() if value}
