"""Recognition of a table's columns: by mtdlab's names, by those of a W&B export, or as given."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.frames import ENVIRONMENT_COLUMNS, TRIAL_COLUMNS
from analysis.run_tables.cells import TableError, is_missing_cell
from analysis.tasks import TASKS

OF_MTD = ("ema_decay", "queue_size", "batch_size")
SETTING_NAMES = (*OF_MTD, "initial_queue_size", "queue_slice")
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

    named     mtdlab's name -> the file's column, for the columns that mtdlab has a name for.
    settings  name of a setting -> the file's column, for every other hyperparameter.
    others    the file's columns that are not read.
    """

    named: Mapping[str, str]
    settings: Mapping[str, str]
    others: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.named


def find_columns(cells: pd.DataFrame, path: Path, stated: Mapping[str, str]) -> Columns:
    """The columns of a table of runs.

    stated  mtdlab's name -> the file's column, for columns with other names.

    Raises TableError for a stated column that does not exist, for two columns with the same
    meaning,
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
    missing = [name for name in OF_MTD if name not in found]
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
