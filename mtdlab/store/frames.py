"""A study as frames, read from its database without touching it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from analysis.frames import (
    CURVE_COLUMNS,
    SCORE_COLUMNS,
    TRIAL_COLUMNS,
    Setting,
    StudyFrames,
    empty,
)
from mtdlab.config.settings import TrainerSettings
from mtdlab.config.source import nearest
from mtdlab.errors import NothingToReport
from mtdlab.store.database import explained, reading_engine, shown, storage_url
from mtdlab.store.tables import Array, ArrayRow, ScoreRow, StudyRow, TrialRow

_SYMBOLS = {"ema_decay": "η", "queue_size": "K", "batch_size": "N"}
_METHODS = {"mocose": "MoCoSE", "simcse": "SimCSE"}


def list_studies(storage: str | None = None) -> pd.DataFrame:
    """A row per study: study, metric, planned, and how many trials are in each state.

    Raises StorageError where there is no such database.
    """
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        count = select(StudyRow.name, StudyRow.metric, TrialRow.state, func.count())
        rows = session.execute(
            count.join(TrialRow, isouter=True).group_by(StudyRow.name, TrialRow.state)
        ).all()
    long = pd.DataFrame(rows, columns=["study", "metric", "state", "count"])
    table = long.pivot_table(
        index=["study", "metric"], columns="state", values="count", fill_value=0
    )
    states = ["COMPLETE", "RUNNING", "WAITING", "FAIL", "PRUNED"]
    table = table.reindex(columns=states, fill_value=0).astype(int)
    table.insert(0, "planned", table.sum(axis=1))
    return table.rename(columns=str.lower).rename_axis(columns=None).reset_index()


def load_study(study: str, storage: str | None = None, *, curves: bool = True) -> StudyFrames:
    """A study's trials, curves, spectra and scores as frames, complete or still running.

    `storage` is a database URL or a SQLite file; by default MTDLAB_STORAGE, then
    OPTUNA_STORAGE, then mtdlab.db here. Without `curves`, most of a large study's values, that
    frame stays empty. Raises StorageError where there is no such database
    and NothingToReport where it holds no such study.
    """
    url = storage_url(storage)
    with explained(url), Session(reading_engine(url)) as session:
        row = _find(session, study, url)
        begun = (TrialRow.study_id == row.id) & TrialRow.number.is_not(None)
        trials = session.scalars(select(TrialRow).where(begun).order_by(TrialRow.number)).all()
        of_study = select(TrialRow.number).where(begun).order_by(TrialRow.number)
        planned = select(func.count()).select_from(TrialRow).where(TrialRow.study_id == row.id)
        return StudyFrames(
            name=row.name,
            metric=row.metric,
            planned=session.scalar(planned) or 0,
            trials=_trials(trials),
            curves=_curves(session, of_study) if curves else empty(CURVE_COLUMNS),
            spectra=_spectra(session, of_study),
            scores=_scores(session, of_study),
            sampler=row.identity["sampler"],
            study_file=row.file_text,
            command=row.command,
            facts=_facts(trials),
            settings=_settings(trials),
            methods=_METHODS,
        )


def _find(session: Session, name: str, url: str) -> StudyRow:
    row = session.scalars(select(StudyRow).where(StudyRow.name == name)).first()
    if row is not None:
        return row
    names = list(session.scalars(select(StudyRow.name)))
    raise NothingToReport(f"no study {name} in {shown(url)}; {nearest(name, names)}")


def _trials(rows: Sequence[TrialRow]) -> pd.DataFrame:
    records = [
        (row.settings or {})
        | {name: getattr(row, name) for name in TRIAL_COLUMNS if hasattr(TrialRow, name)}
        for row in rows
    ]
    if not records:
        return empty(TRIAL_COLUMNS)
    frame = pd.DataFrame.from_records(records)
    first = frame.reindex(columns=list(TRIAL_COLUMNS))
    for name, kind in TRIAL_COLUMNS.items():
        column = first[name]
        said = column.astype("object").where(column.notna(), "").astype("str")
        first[name] = said if kind == "str" else pd.to_numeric(column)
    rest = frame.drop(columns=[name for name in TRIAL_COLUMNS if name in frame])
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


def _settings(rows: Sequence[TrialRow]) -> dict[str, Setting]:
    """Every setting that was recorded or can be, with the default of one that was not."""
    fields = TrainerSettings.model_fields
    recorded = (name for row in rows for name in row.settings or {})
    names = [name for name in dict.fromkeys([*fields, *recorded]) if name not in ("mtd", "seed")]
    return {
        name: Setting(
            name,
            symbol=_SYMBOLS.get(name, ""),
            default=fields[name].default if name in fields else None,
        )
        for name in names
    }


def _facts(rows: Sequence[TrialRow]) -> dict[str, str]:
    """What trials were run with; where they differ, every value there was."""
    seen: dict[str, dict[str, None]] = {}
    for row in rows:
        for name, value in (row.environment or {}).items():
            seen.setdefault(name, {})[str(value)] = None
    return {name: "; ".join(values) for name, values in seen.items()}
