"""A table of runs as `StudyFrames`; `open_table` reads runs or level means."""

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.frames import ENVIRONMENT_COLUMNS, Setting, StudyFrames
from analysis.level_means import LevelMeans
from analysis.run_tables.cells import Scale, folder_name, read_cells
from analysis.run_tables.columns import SETTING_NAMES, Columns, find_columns
from analysis.run_tables.means import is_level_means, read_level_means
from analysis.run_tables.trials import TASK_COLUMNS, read_trials

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

    Arguments and errors as for `read_run_table`.
    """
    cells = read_cells(path)
    if is_level_means(cells):
        return read_level_means(cells, path, scale)
    return _build_study(cells, path, score, columns or {}, scale)


def read_run_table(
    path: Path | str,
    *,
    score: str = "score",
    columns: Mapping[str, str] | None = None,
    scale: Scale | None = None,
) -> StudyFrames:
    """The runs of a CSV or Parquet file as a study, a row per run.

    score    the column with the metric, higher is better.
    columns  mtdlab's name of a column -> the file's, such as ema_decay -> moco_m, if different.
    scale    "fraction" for scores from -1 to 1, which are multiplied by 100; "percent" for scores
             x 100. By default they are fractions if all of them lie between -1 and 1.

    Columns: score, seed, and mtd or (ema_decay, queue_size, batch_size); optional are state,
    reason, alignment, uniformity, mean_cosine, wall_seconds, peak_memory, and a column for each
    task. Others are settings if their values repeat over seeds. Raises TableError, which is a
    ValueError, with the file, row, column and value.
    """
    return _build_study(read_cells(Path(path)), Path(path), score, columns or {}, scale)


def _build_study(
    cells: pd.DataFrame,
    path: Path,
    score: str,
    stated: Mapping[str, str],
    scale: Scale | None,
) -> StudyFrames:
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
