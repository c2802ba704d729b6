"""What the columns of a table of runs hold: score, seed, state, settings.

They are recognised by mtdlab's names, by those of the exports of MLflow, Optuna, Weights & Biases
and trackio, or as stated.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import pandas as pd

from mtdlab.analysis.data.cells import (
    Bounds,
    Obstacles,
    TableError,
    is_missing_cell,
    read_numbers,
    with_points,
)
from mtdlab.analysis.data.defaults import Reading
from mtdlab.analysis.data.durations import list_first
from mtdlab.analysis.data.frames import ENVIRONMENT_COLUMNS, TAKEN_NAMES, TRIAL_COLUMNS
from mtdlab.analysis.data.metric import is_loss
from mtdlab.analysis.data.tasks import TASK_COLUMNS
from mtdlab.analysis.measures.trace import NOTATION, PARTS

STATE_NAMES = ("state", "status")
"""Names of the column of states: mtdlab's, that of Optuna and W&B, and MLflow's."""
KEPT = ("keep", "kept", "discard", "discarded")
"""States of a ledger: of the runs of a loop that keeps or discards one change after another."""
EVALUATOR = "evaluator"
"""The column with the version or digest of the code that measured a score."""
NAMING = ("configuration", "name", "method", "commit")
"""Columns whose value alone names a configuration."""
NO_SEED = "none"
"""What --column seed= says where no seed was recorded."""
SETTING_NAMES = (*NOTATION, "queue_slice")
ENVIRONMENT = (*(name for name in ENVIRONMENT_COLUMNS if name != "number"), "versions")
_READ = (
    *(name for name in TRIAL_COLUMNS if name != "number"),
    *(*TASK_COLUMNS, "note", "run", EVALUATOR),
)
_SEEDS = ("seed", "random_seed", "random_state", "rng_seed", "manual_seed")
_EVALUATORS = re.compile(
    r"evaluator|(eval|evaluator|evaluation|metric|scorer|measure)_(code_)?"
    r"(version|commit|digest|hash|sha|sha256)"
)
_list = partial(list_first, most=40)
_RUN_NAMES = {"run_name": "run", "mlflow.runname": "run"}
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
class Names:
    """What the beginning of a column's name says that it holds.

    Attributes:
        settings, metrics, others: beginnings of hyperparameters, of scores and of all else.
        read: names in lower case -> mtdlab's.
        ignored: names in lower case that are never settings.
    """

    settings: tuple[str, ...] = ("params.", "config.", "config/", "config:")
    metrics: tuple[str, ...] = ("metrics.", "summary.", "summary/", "summary:")
    others: tuple[str, ...] = ("tags.",)
    read: Mapping[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()

    @classmethod
    def of(cls, header: Sequence[str]) -> "Names":
        """The names of a header: of Optuna and W&B more columns have a meaning."""
        lower = {name.lower() for name in header}
        read = {name.lower(): name for name in (*_READ, *ENVIRONMENT) if name != "state"}
        read |= _RUN_NAMES
        if "state" in lower and lower & {"name", "id", "created", "runtime"}:
            return cls(read=read | _WANDB_READ, ignored=_WANDB_ONLY)
        if any(name.startswith("params_") for name in lower) and "state" in lower:
            if "value" in lower and "score" not in lower:
                read["value"] = "score"
            others = ("user_attrs_", "system_attrs_", "datetime_")
            return cls(("params_",), ("values_",), others, read, frozenset({"duration"}))
        return cls(read=read)

    def bare(self, name: str) -> str:
        """A column's name without the tracker's prefix, and without W&B's suffix."""
        for prefix in (*self.settings, *self.metrics, *self.others):
            rest = name.removeprefix(prefix).removesuffix(".value")
            # Optuna's values_0 has no other name
            if name.startswith(prefix) and rest and not rest.isdigit():
                return rest
        return name.removesuffix(".value")

    def meaning(self, name: str) -> str | None:
        """mtdlab's name of a column; None for one that it has no name for.

        A hyperparameter is no result of a run, and a result no hyperparameter.
        """
        bare = self.bare(name).lower()
        ours = EVALUATOR if _EVALUATORS.fullmatch(bare) else self.read.get(bare)
        if ours == EVALUATOR:
            return ours
        is_setting = ours in ("seed", "mtd", *SETTING_NAMES, *ENVIRONMENT)
        refused = self.metrics if is_setting else self.settings
        return None if name.startswith(refused) else ours


@dataclass(frozen=True)
class RunTable:
    """The cells of a table of runs, and the meaning of its columns.

    Attributes:
        metric: the score's column as it is written for people.
        named: mtdlab's name -> the table's column, for the columns that mtdlab has a name for.
        states: the table's columns that say what became of a run.
        settings: name of a setting -> the table's column, for every other hyperparameter. One that
            is called as a column of results is run_NAME.
        others: the table's columns that are not read.
    """

    cells: pd.DataFrame
    metric: str
    named: Mapping[str, str]
    states: tuple[str, ...]
    settings: Mapping[str, str]
    others: tuple[str, ...]

    def text(self, name: str) -> pd.Series:
        """The cells of the column that mtdlab calls `name`, stripped."""
        return self.cells[self.named[name]].str.strip()

    def numbers(
        self, bounds: Mapping[str, Bounds], *, infinite: bool = False
    ) -> Mapping[str, pd.Series]:
        """The columns with these bounds that the table has."""
        return {
            name: read_numbers(self.cells, self.named[name], limits, infinite=infinite)
            for name, limits in bounds.items()
            if name in self.named
        }

    @property
    def lacks_for_mtd(self) -> list[str]:
        """The columns without which no MTD is known; empty where it is."""
        return [] if "mtd" in self.named else [name for name in PARTS if name not in self.named]


def find_columns(cells: pd.DataFrame, reading: Reading, obstacles: Obstacles) -> RunTable:
    """The table with the meaning of its columns; without a seed if none was recorded.

    Gathers a stated column that does not exist, two columns with the same meaning, and a missing
    score or seed, which is not named then. Whether several columns of states agree is left to
    whoever reads them.
    """
    header = [str(name) for name in cells]
    names = Names.of(header)
    states = tuple(
        name
        for name in header
        if names.bare(name).lower() in STATE_NAMES
        and not name.startswith((*names.settings, *names.metrics))
    )
    named = _name_columns(cells, names, reading, obstacles)
    if "state" in named:
        states = (named["state"],)
    elif states:
        named["state"] = states[0]
    ledger = (*KEPT, "crash")
    is_ledger = any(cells[name].str.strip().str.lower().isin(ledger).any() for name in states)
    if "seed" not in {*named, *reading.columns}:
        with obstacles.gather():
            if seed := _find_seed(header, names, required=not is_ledger):
                named["seed"] = seed
    rest = [name for name in header if name not in (*named.values(), *states)]
    chosen = list[str]()
    for name in reading.settings:
        with obstacles.gather():
            chosen.append(_find(name, header, names))
    seeds = cells[named["seed"]] if "seed" in named else pd.Series("", index=cells.index)
    found = chosen or _find_settings(rest, cells, names, seeds)
    if is_ledger and "seed" not in named and not chosen:
        # what differs there is the program: numbers beside the score are measured too
        texts = [n for n in found if n.lower() == "commit" or not _is_drawn(n, cells[n])]
        found = texts or found
    if not chosen:
        found += _find_naming({*rest} - {*found}, cells, names, reading.configurations)
    settings = {
        f"run_{bare}" if (bare := names.bare(name)) in TAKEN_NAMES else bare: name
        for name in found
        if name in rest and names.bare(name) not in (*named, *TRIAL_COLUMNS, *STATE_NAMES)
    }
    left = tuple(name for name in rest if name not in settings.values())
    metric = names.bare(named["score"]) if "score" in named else ""
    return RunTable(cells, metric, named, states, settings, left)


def _find_stated(
    header: Sequence[str], names: Names, stated: Mapping[str, str], obstacles: Obstacles
) -> dict[str, str]:
    """The stated columns, mtdlab's name -> the table's."""
    found = dict[str, str]()
    for ours, name in stated.items():
        if (ours, name) == ("seed", NO_SEED) and name not in header:
            continue
        with obstacles.gather():
            if ours not in _READ and ours not in ENVIRONMENT:
                raise TableError(
                    f"--column {ours}={name}: unknown name {ours!r}; "
                    f"{_nearest(ours, (*_READ, *ENVIRONMENT))}"
                )
            found[ours] = _find(name, header, names)
    return found


def _find(stated: str, header: Sequence[str], names: Names) -> str:
    """The column of a name that was stated, with or without a tracker's prefix."""
    if stated in header:
        return stated
    same = [name for name in header if names.bare(name) == stated]
    if len(same) > 1:
        raise TableError(f"columns {_quote(same)} are all called {stated!r}; state the whole name")
    if not same:
        known = [*header, *map(names.bare, header)]
        raise TableError(f"no column {stated!r}; {_nearest(stated, list(dict.fromkeys(known)))}")
    return same[0]


def _nearest(word: str, options: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"choose from {_list(options)}"


def _quote(columns: Iterable[str]) -> str:
    return " and ".join(map(repr, columns))


def _name_columns(
    cells: pd.DataFrame, names: Names, reading: Reading, obstacles: Obstacles
) -> dict[str, str]:
    """The columns that mtdlab has a name for, with a score."""
    header = [str(name) for name in cells]
    stated = {**reading.columns, **({"score": reading.score} if reading.score else {})}
    named = _find_stated(header, names, stated, obstacles)
    for name in header:
        ours = names.meaning(name)
        if ours is None or name in named.values() or ours in stated:
            continue
        if ours in named and named[ours] != ours and name != ours:
            option = "--score COLUMN" if ours == "score" else f"--column {ours}=COLUMN"
            columns = _quote((named[ours], name))
            obstacles.found.append(f"columns {columns} both mean {ours}; choose one with {option}")
        elif named.get(ours) != ours:
            named[ours] = name
    if "score" not in {*named, *stated}:
        with obstacles.gather():
            named["score"] = _find_score(cells, names)
    return named


def _find_score(cells: pd.DataFrame, names: Names) -> str:
    """The only metric of a tracker's table."""
    header = [str(name) for name in cells]
    metrics = [
        name
        for name in header
        if name.startswith(names.metrics) and not names.bare(name).startswith("_")
    ]
    losses = [name for name in header if is_loss(names.bare(name))]
    hint = f", such as --score {losses[0]} --direction minimize" if losses else ""
    texts = [name for name in header if pd.to_numeric(cells[name], errors="coerce").isna().all()]
    if len(texts) == 1 and len(header) > 2 and cells[texts[0]].is_unique:
        hint += f"; where the other columns are models, mtdlab report --block {texts[0]} ranks them"
    return _only(
        metrics,
        header,
        several=f"{len(metrics)} metrics, {_list(metrics)}; choose the score with --score COLUMN",
        none=f"no column score among {_list(header)}; name the metric's column with --score COLUMN"
        f"{hint}",
    )


def _find_seed(header: Sequence[str], names: Names, *, required: bool) -> str:
    """The only column called as a seed in a part of its name; empty where none is required."""
    seeds = [
        name
        for name in header
        if not name.startswith(names.metrics)
        and re.split(r"[./:]", names.bare(name))[-1].lower() in _SEEDS
    ]
    if not seeds and not required:
        return ""
    return _only(
        seeds,
        header,
        several=f"columns {_quote(seeds)} may be the seed; choose one with --column seed=COLUMN",
        none=f"no column seed among {_list(header)}; every run needs its seed, since the seed is "
        "the unit of replication; name the column with --column seed=COLUMN, or add one, with one "
        "value if all runs had the same seed; where none was recorded, --column seed=none "
        "describes the runs without a test",
    )


def _only(found: Sequence[str], header: Sequence[str], *, several: str, none: str) -> str:
    """The one column that was found; TableError with these messages for several or none."""
    if len(found) == 1:
        return found[0]
    if not found and "config" in header:
        raise TableError(
            "column 'config' has all settings of a run in one cell; write one column per "
            "setting, as pandas.json_normalize does"
        )
    raise TableError(several if found else none)


def _find_settings(
    rest: Sequence[str], cells: pd.DataFrame, names: Names, seeds: pd.Series
) -> list[str]:
    """The hyperparameters: columns whose values repeat over seeds, as measurements do not.

    If any column has a prefix such as `config.`, they are columns with one alone, also numbers that
    do not repeat, as of a random search.
    """
    rest = [name for name in rest if not names.bare(name).startswith("_")]
    repeating = {name for name in rest if _repeats(cells[name], seeds)}
    if any(str(name).startswith(names.settings) for name in cells):
        return [
            name
            for name in rest
            if name.startswith(names.settings)
            and (name in repeating or _is_drawn(name, cells[name]))
        ]
    return [
        name
        for name in rest
        if name in repeating
        and not name.startswith((*names.metrics, *names.others))
        and name.lower() not in names.ignored
    ]


def _find_naming(
    rest: Iterable[str], cells: pd.DataFrame, names: Names, configurations: Sequence[str]
) -> list[str]:
    """The columns by which configurations are named, also where their values do not repeat."""
    keys = {part.partition("=")[0].strip() for text in configurations for part in text.split(",")}
    return [
        name
        for name in sorted(rest)
        if (bare := names.bare(name)) in keys
        or (bare in NAMING and cells[name].str.strip().isin(configurations).any())
    ]


def _repeats(values: pd.Series, seeds: pd.Series) -> bool:
    """Whether most values of a column occur with several seeds; True with one seed."""
    known = ~is_missing_cell(values)
    if seeds[known].nunique() < 2:
        return bool(known.any())
    seeds_of = seeds[known].groupby(values[known]).nunique()
    return bool((seeds_of > 1).mean() > 0.5)


def _is_drawn(name: str, values: pd.Series) -> bool:
    """Whether a column holds numbers alone, as those of a random search, and no second seed."""
    if name.lower().endswith(("seed", "random_state")):
        return False
    known = ~is_missing_cell(values)
    numbers = pd.to_numeric(with_points(values[known]), errors="coerce")
    return bool(known.any() and numbers.notna().all())
