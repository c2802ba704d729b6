"""A study as pandas frames, read from its database without writing to it."""

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
from mtdlab.errors import NothingToReport, nearest
from mtdlab.store.database import explained, reading_engine, shown, storage_url
from mtdlab.store.setting_names import present_settings
from mtdlab.store.tables import (
    Array,
    ArrayRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
)


def list_studies(storage: str | None = None) -> pd.DataFrame:
    """A row per study: study, metric, select_by, planned, the number of trials in each state.

    select_by is the metric where none was recorded. Raises StorageError where there is no such
    database.
    """
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        count = select(StudyRow.name, StudyRow.metric, TrialRow.state, func.count())
        rows = session.execute(
            count.join(TrialRow, isouter=True).group_by(StudyRow.name, TrialRow.state)
        ).all()
        studies = session.scalars(select(StudyRow))
        ranked = {row.name: row.select_by or row.metric for row in studies}
    long = pd.DataFrame(rows, columns=["study", "metric", "state", "count"])
    long["select_by"] = long["study"].map(ranked)
    table = long.pivot_table(
        index=["study", "metric", "select_by"], columns="state", values="count", fill_value=0
    )
    states = ["COMPLETE", "RUNNING", "WAITING", "FAIL", "PRUNED"]
    table = table.reindex(columns=states, fill_value=0).astype(int)
    table.insert(0, "planned", table.sum(axis=1))
    return table.rename(columns=str.lower).rename_axis(columns=None).reset_index()


def load_study(
    study: str, storage: str | None = None, *, curves: bool | Collection[int] = True
) -> StudyFrames:
    """A study's trials, curves, spectra and scores as frames, complete or still running.

    `storage` is a database URL or a SQLite file; by default MTDLAB_STORAGE, then
    OPTUNA_STORAGE, then mtdlab.db in the working folder. `curves=False` leaves that frame
    empty, which holds most of a large study's values; numbers of trials read theirs alone.
    Raises StorageError where there is no such database and NothingToReport where it holds no
    such study.
    """
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        row = _find(session, study, url)
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
            study_file=row.file_text,
            command=row.command,
            facts=_facts(trials),
            environment=_environment(trials),
            settings=_settings(methods, trials),
            methods={name: method["title"] for name, method in methods.items()},
            description=row.description,
            looks=_looks(session, row.id),
            plans=_plans(session, row.name),
        )


def _find(session: Session, name: str, url: str) -> StudyRow:
    row = session.scalars(select(StudyRow).where(StudyRow.name == name)).first()
    if row is not None:
        return row
    names = list(session.scalars(select(StudyRow.name)))
    raise NothingToReport(f"no study {name} in {shown(url)}; {nearest(name, names)}")


def _trials(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """`TRIAL_COLUMNS`, then the other settings, then `note` where a trial has one."""
    if not rows:
        return empty(TRIAL_COLUMNS)
    records = [
        present_settings(row.settings or {})
        | {name: getattr(row, name) for name in TRIAL_COLUMNS if hasattr(TrialRow, name)}
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
        pd.DataFrame({"number": number, "step": np.arange(1, len(curve["loss"]) + 1)} | curve)
        for number, curve in columns.items()
    ]
    return pd.concat(frames, ignore_index=True).reindex(columns=list(CURVE_COLUMNS))


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
    """The rows of one trial and lag, (P, 5) as `PROBE_COLUMNS`, where there were both probes."""
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
    """What was recorded of the study's methods; our own methods for a study that recorded none."""
    if row.methods:
        return row.methods
    # imported here: it imports torch, and a study of the present schema does not need it
    from mtdlab.methods.registry import BUILTIN, describe_method

    return {name: describe_method(name) for name in BUILTIN}


def _settings(methods: Mapping[str, Any], rows: Sequence[TrialRow]) -> dict[str, Setting]:
    """Every setting of the methods, and those that trials recorded besides."""
    known: dict[str, Setting] = {}
    for method in methods.values():
        for name, setting in method["settings"].items():
            known.setdefault(name, Setting(name, **setting))
    recorded = (name for row in rows for name in present_settings(row.settings or {}))
    for name in recorded:
        known.setdefault(name, Setting(name))
    return {name: setting for name, setting in known.items() if name not in ("mtd", "seed")}


def _facts(rows: Sequence[TrialRow]) -> dict[str, str]:
    """What trials were run with; where they differ, every value."""
    seen: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in (row.environment or {}).items():
            seen.setdefault(name, {})[str(value)] = None
    return {name: "; ".join(values) for name, values in seen.items()}


def _environment(rows: Sequence[TrialRow]) -> pd.DataFrame:
    """What each trial that recorded it computed with: `ENVIRONMENT_COLUMNS`."""
    records = [
        {"number": row.number} | _split_device(row.environment) for row in rows if row.environment
    ]
    if not records:
        return empty(ENVIRONMENT_COLUMNS)
    frame = pd.DataFrame.from_records(records, columns=list(ENVIRONMENT_COLUMNS))
    return frame.astype(dict(ENVIRONMENT_COLUMNS))


def _split_device(environment: Mapping[str, Any]) -> dict[str, str]:
    """The recorded facts with the device line, "cpu, bfloat16, threads a trial: 1", in parts."""
    device, _, rest = str(environment.get("device", "")).partition(", ")
    precision, _, threads = rest.partition(", threads a trial: ")
    parts = {"device": device, "precision": precision, "threads": threads}
    return {name: str(environment.get(name, "")) for name in ("processor", "versions")} | parts
