"""Reads a study from its database as pandas frames."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Select, false, func, select
from sqlalchemy.orm import Session

from analysis.frames import (
    CURVE_COLUMNS,
    ENVIRONMENT_COLUMNS,
    LOOK_COLUMNS,
    PROBE_COLUMNS,
    SCORE_COLUMNS,
    TRIAL_COLUMNS,
    Plan,
    Setting,
    StudyFrames,
    empty,
)
from mtdlab.store.database import explained, reading_engine
from mtdlab.store.progress import living_state
from mtdlab.store.setting_names import present_methods, present_settings, present_text
from mtdlab.store.store import find_study
from mtdlab.store.tables import (
    Array,
    ArrayRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
)
from mtdlab.store.urls import storage_url, without_passwords


def load_study(
    study: str, storage: str | None = None, *, curves: bool | Collection[int] = True
) -> StudyFrames:
    """A study's trials, curves, spectra and scores as frames, complete or still running.

    storage  a database URL or a SQLite file; by default MTDLAB_STORAGE, then OPTUNA_STORAGE, then
             mtdlab.db in the working folder.
    curves   False leaves that frame, the largest one, empty; numbers of trials read theirs alone.

    Raises StorageError if there is no such database, NothingToReport if it has no such study.
    """
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        row = find_study(session, study, url)
        methods = _methods(row)
        begun = (TrialRow.study_id == row.id) & TrialRow.number.is_not(None)
        trials = session.scalars(select(TrialRow).where(begun).order_by(TrialRow.number)).all()
        of_study = select(TrialRow.number).where(begun).order_by(TrialRow.number)
        planned = select(func.count()).select_from(TrialRow).where(TrialRow.study_id == row.id)
        return StudyFrames(
            name=row.name,
            metric=row.metric,
            select_by=row.select_by or "",
            planned=session.scalar(planned) or 0,
            trials=_trials(trials),
            curves=_curves(session, _chosen(of_study, curves)),
            spectra=_spectra(session, of_study),
            scores=_scores(session, of_study),
            probes=_probes(session, of_study),
            sampler=row.identity["sampler"],
            study_file=present_text(row.file_text, row.identity),
            # an earlier version recorded passwords
            command=without_passwords(row.command),
            facts=_facts(trials),
            environment=_environment(trials),
            settings=_settings(methods, trials),
            methods={name: method["title"] for name, method in methods.items()},
            description=row.description,
            looks=_looks(session, row.id),
            plans=_plans(session, row.name),
            model=row.model or {},
        )


def _trials(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """`TRIAL_COLUMNS`, then the other settings, then `note` if any trial has one."""
    if not rows:
        return empty(TRIAL_COLUMNS)
    records = [
        present_settings(row.settings or {})
        | {name: getattr(row, name) for name in TRIAL_COLUMNS if hasattr(TrialRow, name)}
        | {"state": living_state(row)}
        for row in rows
    ]
    frame = pd.DataFrame.from_records(records)
    first = frame.reindex(columns=list(TRIAL_COLUMNS))
    for name, kind in TRIAL_COLUMNS.items():
        values = first[name]
        text = values.astype("object").where(values.notna(), "").astype("str")
        first[name] = text if kind == "str" else pd.to_numeric(values)
    rest = frame.drop(columns=[name for name in TRIAL_COLUMNS if name in frame])
    notes = [row.note for row in rows]
    if any(notes):
        rest["note"] = pd.Series(notes, dtype="str")
    return pd.concat([first, rest], axis=1)


def _curves(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    columns: dict[int, dict[str, Array]] = {}
    for number, name, values in _arrays(session, of_study, "curve/%"):
        columns.setdefault(number, {})[name.removeprefix("curve/")] = values
    if not columns:
        return empty(CURVE_COLUMNS)
    frames = [
        pd.DataFrame({"number": number} | curve | {"step": _steps(curve)})
        for number, curve in columns.items()
    ]
    return pd.concat(frames, ignore_index=True).reindex(columns=list(CURVE_COLUMNS))


def _steps(curve: Mapping[str, Array]) -> Any:
    """The steps of a curve: those that a program reported, else every one."""
    if "step" in curve:
        return curve["step"].astype(np.int64)
    return np.arange(1, len(curve["loss"]) + 1)


def _chosen(of_study: Select[Any], curves: bool | Collection[int]) -> Select[Any]:
    if isinstance(curves, bool):
        return of_study if curves else of_study.where(false())
    return of_study.where(TrialRow.number.in_(list(curves)))


def _probes(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    columns: dict[int, dict[str, Array]] = {}
    for number, name, values in _arrays(session, of_study, "probe/%"):
        columns.setdefault(number, {})[name.removeprefix("probe/")] = values
    blocks = [
        _compared(number, int(name.removeprefix("cosine/")), probed, cosine)
        for number, probed in columns.items()
        for name, cosine in probed.items()
        if name.startswith("cosine/")
    ]
    if not blocks:
        return empty(PROBE_COLUMNS)
    table = pd.DataFrame(np.concatenate(blocks), columns=list(PROBE_COLUMNS))
    table = table.astype(dict(PROBE_COLUMNS))
    return table.sort_values(["number", "step", "lag"], ignore_index=True)


def _compared(number: int, lag: int, probed: Mapping[str, Array], cosine: Array) -> Any:
    """The rows of one trial and lag, as `PROBE_COLUMNS`: (P, 5) for steps with both probes."""
    step = probed["step"].astype(np.float64)
    constant = np.ones_like(step)
    rows = np.stack([number * constant, step, lag * constant, cosine, probed["baseline"]], axis=1)
    return rows[step >= lag]


def _spectra(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    spectra = {
        (number, name.removeprefix("spectrum/")): values
        for number, name, values in _arrays(session, of_study, "spectrum/%")
    }
    index = pd.MultiIndex.from_tuples(list(spectra), names=["number", "moment"])
    widest = max((len(values) for values in spectra.values()), default=0)
    table = np.full((len(spectra), widest), np.nan)
    for row, values in enumerate(spectra.values()):
        table[row, : len(values)] = values
    return pd.DataFrame(table, index=index if len(spectra) else None)


def _arrays(session: Session, of_study: Select[Any], pattern: str) -> Sequence[Any]:
    arrays = of_study.add_columns(ArrayRow.name, ArrayRow.values).join(ArrayRow)
    return session.execute(arrays.where(ArrayRow.name.like(pattern))).all()


def _scores(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    rows = session.execute(of_study.add_columns(ScoreRow.task, ScoreRow.score).join(ScoreRow))
    frame = pd.DataFrame(rows.all(), columns=list(SCORE_COLUMNS))
    return frame.astype(dict(SCORE_COLUMNS))


def _looks(session: Session, study_id: int) -> pd.DataFrame:
    mine = select(LookRow).where(LookRow.study_id == study_id).order_by(LookRow.look)
    records = [
        {name: getattr(row, name) for name in LOOK_COLUMNS if hasattr(LookRow, name)}
        | {"runs": len(row.trials), "added": len(row.added), "trials": tuple(row.trials)}
        for row in session.scalars(mine)
    ]
    frame = pd.DataFrame.from_records(records, columns=list(LOOK_COLUMNS))
    return frame.astype(dict(LOOK_COLUMNS))


def _plans(session: Session, study: str) -> tuple[Plan, ...]:
    mine = select(PlanRow).where(PlanRow.study == study).order_by(PlanRow.position)
    return tuple(Plan(row.trials, row.plan, row.sha256) for row in session.scalars(mine))


def _methods(row: StudyRow) -> Mapping[str, Any]:
    """The recorded methods of a study; the built-in methods if none were recorded."""
    if row.methods:
        return present_methods(row.methods)
    # imported here: it imports torch, which studies of the present schema do not need
    from mtdlab.methods.registry import BUILTIN, describe_method

    return {name: describe_method(name) for name in BUILTIN}


def _settings(methods: Mapping[str, Any], rows: Sequence[TrialRow]) -> dict[str, Setting]:
    """The settings of the methods, and further settings that trials recorded."""
    known: dict[str, Setting] = {}
    for method in methods.values():
        for name, setting in method["settings"].items():
            known.setdefault(name, Setting(name, **setting))
    recorded = (name for row in rows for name in present_settings(row.settings or {}))
    for name in recorded:
        known.setdefault(name, Setting(name))
    return {name: setting for name, setting in known.items() if name not in ("mtd", "seed")}


def _facts(rows: Sequence[TrialRow]) -> dict[str, str]:
    """The recorded environment of the trials; several values are joined by semicolons."""
    seen: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in (row.environment or {}).items():
            seen.setdefault(name, {})[str(value)] = None
    return {name: "; ".join(values) for name, values in seen.items()}


def _environment(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """`ENVIRONMENT_COLUMNS`, a row per trial that recorded its environment."""
    records = [
        {"number": row.number} | _split_device(row.environment) for row in rows if row.environment
    ]
    if not records:
        return empty(ENVIRONMENT_COLUMNS)
    frame = pd.DataFrame.from_records(records, columns=list(ENVIRONMENT_COLUMNS))
    return frame.astype(dict(ENVIRONMENT_COLUMNS))


def _split_device(environment: Mapping[str, Any]) -> dict[str, str]:
    """The environment with its device line, "cpu, bfloat16, threads a trial: 1", split."""
    device, _, rest = str(environment.get("device", "")).partition(", ")
    precision, _, threads = rest.partition(", threads a trial: ")
    parts = {"device": device, "precision": precision, "threads": threads}
    return {name: str(environment.get(name, "")) for name in ("processor", "versions")} | parts
