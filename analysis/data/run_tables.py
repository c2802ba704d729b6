"""Tables of runs made with other programs as `StudyFrames`."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from mtdlab.analysis.data.cells import (
    FINITE,
    Bounds,
    Obstacles,
    TableError,
    choose_scale,
    describe_scale,
    folder_name,
    is_missing_cell,
    read_numbers,
    refuse_first,
    tell_origin,
    with_points,
)
from mtdlab.analysis.data.columns import (
    ENVIRONMENT,
    EVALUATOR,
    KEPT,
    SETTING_NAMES,
    RunTable,
    find_columns,
)
from mtdlab.analysis.data.defaults import BEYOND_RUN, FACTORS, MARGIN, Reading, Scale
from mtdlab.analysis.data.durations import list_first
from mtdlab.analysis.data.frames import (
    NO_SEEDS,
    TAKEN_NAMES,
    TRIAL_COLUMNS,
    RecordedSetting,
    StudyFrames,
)
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.analysis.data.metric import is_loss, is_negated, negated
from mtdlab.analysis.data.runs import MTD_DECIMALS, completed_runs
from mtdlab.analysis.data.tasks import TASK_COLUMNS
from mtdlab.analysis.measures.trace import COMPONENTS, NOTATION, PARTS, d_trace

Columns = Mapping[str, pd.Series]
_SIZE = Bounds("it must be a whole number of at least 0", 0, 2**53, whole=True)
_BOUNDS: Mapping[str, Bounds] = {
    "seed": Bounds("a seed must be a whole number up to 2^53", -(2**53), 2**53, whole=True),
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
_SCORE = Bounds(
    "a score must be from -100 to 100 (x 100), or from -1 to 1; one of another unit is read with "
    "--scale own",
    -100,
    100,
)
_FRACTION = Bounds(
    "with --scale fraction, stated or kept by a session, a score must be from -1 to 1; one of "
    "another unit needs --scale own, and another session",
    *(-1, 1),
)
_DISTANCE = Bounds("an MTD must be at least 1, or empty for a run without one", 1, 1e300)
_METRIC = ("score", "score_before")
_SCORES = (*_METRIC, *TASK_COLUMNS)
_MOST_ROWS = 10
_TEXTS = ("reason", "reason_code", "queue_slice", "note", "run")
_STATES = {
    **dict.fromkeys(("complete", "completed", "finished", "done", "success", *KEPT), "COMPLETE"),
    **dict.fromkeys(("fail", "failed", "crash", "crashed", "error", "timeout", "oom"), "FAIL"),
    **dict.fromkeys(("killed", "preempted", "cancelled", "aborted"), "FAIL"),
    "pruned": "PRUNED",
    "running": "RUNNING",
    **dict.fromkeys(("waiting", "pending", "scheduled"), "WAITING"),
}


def read_trials(
    table: RunTable, reading: Reading, metric: str, obstacles: Obstacles
) -> tuple[pd.DataFrame, Scale]:
    """The frame of trials (`TRIAL_COLUMNS` first), and how scores were read.

    Scores of which lower is better have the opposite sign, and so has the name `metric`. Where no
    seed was recorded, each run has its own, and equal rows are one run. Raises TableError for the
    obstacles, and for what is wrong with the cells.
    """
    cells, named = table.cells, table.named
    seeds = pd.Series(range(len(cells)))
    if "seed" not in named:
        # rows that are equal in all cells are copies of one run
        seeds = cells.groupby([*cells], sort=False).ngroup()
    columns = {"number": _number_runs(cells), "seed": seeds.astype("float64")}
    for name, limits in {**_BOUNDS, **dict.fromkeys(_SCORES, FINITE)}.items():
        with obstacles.gather():
            columns |= table.numbers({name: limits}, infinite=name in _SCORES)
    with obstacles.gather():
        scores = columns.get("score", pd.Series(0.0, index=cells.index))
        columns["state"] = _read_states(table, scores)
        _check_seeds(columns, table)
    with obstacles.gather():
        columns["mtd"] = _read_distance(table, columns)
    if "run_id" in cells:
        again = cells["run_id"].duplicated() & ~is_missing_cell(cells["run_id"])
        with obstacles.gather():
            refuse_first(again, cells, ["run_id"], "a run has one row; keep its last one")
    # what a run that failed has as a score is its last one, or a placeholder such as 0
    scores = scores.mask(columns.get("state", scores) == "FAIL")
    scale: Scale = "percent"
    if "score" in named:
        with obstacles.gather():
            scale = find_scale(table.metric, reading, metric, scores)
    obstacles.refuse()
    columns["score"] = scores
    bounds = {"fraction": _FRACTION, "percent": _SCORE}.get(scale, FINITE)
    table.numbers(dict.fromkeys(_SCORES, bounds), infinite=True)
    columns |= {name: columns[name] * FACTORS[scale] for name in _SCORES if name in columns}
    if is_negated(metric):
        columns |= {name: -columns[name] for name in _METRIC if name in columns}
    columns |= {name: cells[named[name]] for name in (*_TEXTS, EVALUATOR) if name in named}
    # a setting that a method does not have is missing, any other without a value has the value none
    none = "" if "method" in table.settings else "none"
    has_commas = table.text("score").str.contains(",", regex=False).any()
    for name, column in table.settings.items():
        values = with_points(cells[column]) if has_commas else cells[column]
        columns[name] = _read_setting(values, none)
    return _complete(pd.DataFrame(columns, index=cells.index), table), scale


def find_scale(score: str, reading: Reading, metric: str, scores: pd.Series) -> Scale:
    """How scores are read, compared as `metric`; TableError where their own unit has no margin."""
    if reading.margin is not None and not 0 <= reading.margin < np.inf:
        raise TableError(f"margin is {reading.margin}; it must be a number of at least 0")
    scale = choose_scale(metric, scores, reading.scale)
    missing = []
    if reading.direction is None and not is_loss(score):
        missing.append("--direction minimize or --direction maximize")
    if reading.margin is None:
        missing.append("--margin NUMBER, the difference that counts as none in this unit")
    if scale == "own" and missing:
        raise TableError(
            f"{score!r} has a unit of its own: state {', and '.join(missing)}; a "
            "correlation or a share is read with --scale fraction or --scale percent"
        )
    return scale


def _given_numbers(cells: pd.DataFrame) -> pd.Series:
    """The values of a column number, NaN where one is no number; empty without the column."""
    return pd.to_numeric(cells.get("number", pd.Series(dtype="object")), errors="coerce")


def _number_runs(cells: pd.DataFrame) -> pd.Series:
    """The numbers in a column number, as Optuna and mtdlab write them, or those of the rows."""
    given = _given_numbers(cells)
    is_number = given.is_unique and (given.between(0, 2**53) & (given % 1 == 0)).all()
    return given.astype("int64") if len(given) and is_number else pd.Series(range(len(cells)))


def _read_distance(table: RunTable, columns: Columns) -> pd.Series:
    """The column mtd, or MTD by equation 4; NaN for a run without one."""
    if name := table.named.get("mtd"):
        # 0 is accepted for a method without an MTD
        given = table.cells[[name]].mask(table.text("mtd").isin(["0", "0.0"]), "")
        return read_numbers(given, name, _DISTANCE).round(MTD_DECIMALS)
    distance = pd.Series(np.nan, index=table.cells.index)
    if table.lacks_for_mtd:
        return distance
    parts = pd.DataFrame({name: columns.get(name, distance) for name in PARTS})
    known = parts.notna().all(axis=1)
    distance[known] = d_trace(*(parts.loc[known, name] for name in PARTS))
    return distance


def _read_states(table: RunTable, scores: pd.Series) -> pd.Series:
    """The state of each run: one without a score is not COMPLETE but FAIL, whatever is stated."""
    recorded = [pd.Series("COMPLETE", index=scores.index)] if not table.states else []
    known = (
        f"a state must be one of {', '.join(_STATES)}; correct it, rename the column if it says "
        "something else, or name the one with the state with --column state=COLUMN"
    )
    agreed = "these are different states of one run; name the right one with --column state=COLUMN"
    for name in table.states:
        states = table.cells[name].str.strip().str.lower().map(_STATES)
        refuse_first(states.isna(), table.cells, [name], known)
        recorded.append(states)
        refuse_first(states != recorded[0], table.cells, table.states, agreed)
    return recorded[0].mask((recorded[0] == "COMPLETE") & scores.isna(), "FAIL")


def _read_setting(cells: pd.Series, none: str) -> pd.Series:
    """Numbers if all values are numbers, else text; missing values are NaN, or the text `none`."""
    missing = is_missing_cell(cells)
    numbers = pd.to_numeric(cells.str.strip().mask(missing), errors="coerce").astype("float64")
    # digests of commits may begin with 0, or read like 12e4567
    is_text = cells.str.match(r"\s*0\d") | (numbers.abs() == np.inf) & cells.str.contains("e")
    if (numbers.notna() | missing).all() and not is_text.any():
        return numbers
    return cells.str.strip().mask(missing, none).astype("str")


def _check_seeds(columns: Columns, table: RunTable) -> None:
    """Raise TableError for a completed run without a seed; other runs may lack one."""
    wrong = columns["seed"].isna() & (columns["state"] == "COMPLETE")
    if wrong.any():
        rows, name = np.flatnonzero(wrong.to_numpy()), table.named["seed"]
        listed = list_first([row + 1 for row in rows.tolist()], _MOST_ROWS)
        value = table.cells[name].iloc[rows[0]]
        raise TableError(
            f"row {listed}, column {name}: {value!r}; a completed run must have a seed. Fill it "
            f"in, or delete such rows: the others ({len(wrong) - len(rows):,}) can be read"
        )


def _complete(frame: pd.DataFrame, table: RunTable) -> pd.DataFrame:
    """All `TRIAL_COLUMNS` with their types, then the other columns."""
    first = frame.reindex(columns=list(TRIAL_COLUMNS))
    if "reason" not in frame:
        stated = table.text("state") if table.states else pd.Series("", index=frame.index)
        failed = stated.str.lower().map(_STATES) == "FAIL"
        why = ("state " + stated).where(failed, "no score") + " in the table"
        first["reason"] = why.where(first["state"] == "FAIL", "")
    if "queue_slice" not in frame:
        first["queue_slice"] = "all"
    unknown = {name for name in first if first[name].isna().any()}
    kinds = {
        name: "float64" if kind == "int64" and name in unknown else kind
        for name, kind in TRIAL_COLUMNS.items()
    }
    return first.astype(kinds).join(
        frame.drop(columns=[name for name in TRIAL_COLUMNS if name in frame])
    )


def build_study(
    cells: pd.DataFrame, source: Path | pd.DataFrame, reading: Reading, name: str = ""
) -> StudyFrames:
    """The study of a table of runs; see `mtdlab.analysis.read_run_table`."""
    obstacles, metric = Obstacles(), ""
    table = find_columns(cells, reading, obstacles)
    with obstacles.gather():
        metric = find_metric(table.named.get("score", ""), table.metric, reading)
    trials, scale = read_trials(table, reading, metric or table.metric, obstacles)
    rule = describe_scale(scale, is_stated=reading.scale is not None)
    names = [*(name for name in SETTING_NAMES if name in table.named), *table.settings]
    rows = trials.drop_duplicates([*names, "mtd"])
    # runs of equal settings differ in their MTD: the table does not have all its parts
    if rows.duplicated(names).any() if names else len(rows) > 1:
        names.insert(0, "mtd")
    tasks = [name for name in TASK_COLUMNS if name in trials]
    scores = trials[["number", *tasks]].melt("number", var_name="task", value_name="score")
    environment = {name: table.text(name) for name in ENVIRONMENT if name in table.named}
    path = source if isinstance(source, Path) else None
    return StudyFrames(
        name=name or (folder_name(path) if path else "runs"),
        metric=metric,
        planned=len(trials),
        trials=trials.drop(columns=tasks),
        scores=scores.astype({"task": "str", "score": "float64"}),
        sampler="not recorded",
        table=_describe(table, source, metric, rule, trials, names),
        origin=tell_origin(source),
        scale=scale,
        environment=pd.DataFrame({"number": trials["number"], **environment}),
        settings={name: RecordedSetting(name, *NOTATION.get(name, ())) for name in names},
        invocation=describe_reading(path, reading) if path else NO_INVOCATION,
        beyond_run=reading.beyond_run,
        stated_margin=MARGIN if reading.margin is None else reading.margin,
        description=f"Runs read from {path.name if path else 'a DataFrame'}, not made by "
        f"mtdlab. {rule}",
    )


def check_evaluators(runs: pd.DataFrame) -> None:
    """Raise TableError for runs whose scores several versions of the measuring code gave."""
    versions = runs[EVALUATOR].str.strip() if EVALUATOR in runs else pd.Series(dtype="str")
    first = runs["number"][~versions.duplicated()] if len(versions) else versions
    if len(first) > 1:
        named = ", ".join(
            f"{versions[row]!r} (run {first[row]})" for row in first.index[:_MOST_ROWS]
        )
        raise TableError(
            f"the scores were measured by {len(first)} versions of the evaluator, {named}; they "
            "cannot be compared: measure all runs with one, or keep the rows of one"
        )


def find_metric(column: str, score: str, reading: Reading) -> str:
    """The score as it is compared; TableError for a column with a loss without a direction."""
    if reading.direction is None and column and is_loss(score):
        raise TableError(
            f"column {column!r}: lower is better of a score with this name; state "
            "--direction minimize, or --direction maximize if higher is better here"
        )
    return negated(score) if reading.direction == "minimize" else score


def describe_reading(path: Path, reading: Reading) -> Invocation:
    """The command that reports a table that is read so."""
    options = {
        "table": (str(path),),
        "block": (reading.block,) if reading.block else (),
        "score": (reading.score,) if reading.score else (),
        "column": tuple("=".join(pair) for pair in reading.columns.items()),
        "setting": tuple(reading.settings),
        "scale": (reading.scale,) if reading.scale else (),
        "direction": (reading.direction,) if reading.direction else (),
        "margin": () if reading.margin is None else (f"{reading.margin:g}",),
        "beyond-run": () if reading.beyond_run == BEYOND_RUN else (reading.beyond_run,),
    }
    return Invocation("report", options={name: value for name, value in options.items() if value})


def _describe_repeated(trials: pd.DataFrame, names: Sequence[str], *, has_seeds: bool) -> str:
    """A sentence on runs that have the settings and the seed of another; empty without any."""
    runs = completed_runs(trials)
    amount = int(runs.duplicated([*{*names, "mtd", "seed"}]).sum())
    if not amount:
        return ""
    if not has_seeds:
        return (
            f"{amount:,} of {len(runs):,} complete runs are copies of an earlier row, and count "
            "once. Delete them, or add a column seed where they are runs of their own."
        )
    return (
        f"{amount:,} of {len(runs):,} complete runs have the settings and the seed of an earlier "
        "one: runs of one seed count once, by their mean. Delete copies; where runs differ in a "
        "setting that was not read, name all settings with --setting COLUMN."
    )


def _describe(
    table: RunTable,
    source: Path | pd.DataFrame,
    metric: str,
    rule: str,
    trials: pd.DataFrame,
    names: Sequence[str],
) -> dict[str, str]:
    """The table, which column was read as what, and which runs repeat others."""
    name, digest = "DataFrame", ""
    if isinstance(source, Path):
        name, digest = source.name, hashlib.sha256(source.read_bytes()).hexdigest()
    distance = f"column {table.named['mtd']}" if "mtd" in table.named else ""
    if {*COMPONENTS} & set(table.named) and not distance:
        distance = "computed: 1/(1 - ema_decay) + queue_size/batch_size"
        if missing := table.lacks_for_mtd:
            distance = f"none: no column mtd, and no {', '.join(missing)} to compute it from"
    states = ", ".join(f"{n:,} {name}" for name, n in trials["state"].value_counts().items())
    given, score = _given_numbers(table.cells), table.named["score"]
    better = "lower is better" if is_negated(metric) else "higher is better"
    is_numbered = len(given) > 0 and given.eq(trials["number"]).all()
    others = [name for name in table.others if not (is_numbered and name == "number")]
    settings = (
        f"{column} (here {name})" if name.removeprefix("run_") in TAKEN_NAMES else column
        for name, column in table.settings.items()
    )
    facts = {
        "table": f"{name}, {len(trials):,} row{'s' * (len(trials) != 1)}",
        "trial": "column number" if is_numbered else "numbers are those of the rows, from 0",
        "SHA-256": digest,
        "score": f"column {score}, {better}. {rule}",
        "seed": f"column {table.named['seed']}" if "seed" in table.named else NO_SEEDS,
        "state": f"column {table.named['state']}: {states}" if table.states else "",
        "evaluator": f"column {table.named[EVALUATOR]}" if EVALUATOR in table.named else "",
        "MTD": distance,
        "columns read": ", ".join(table.named.values()),
        "settings": ", ".join(settings),
        "columns not read": ", ".join(name or "(without a name)" for name in others),
        "repeated": _describe_repeated(trials, names, has_seeds="seed" in table.named),
    }
    return {name: value for name, value in facts.items() if value}
