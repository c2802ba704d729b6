"""Reads a study from its database as pandas frames."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import Select, false, func, select
from sqlalchemy.orm import Session

from analysis.frames import (
    CURVE_COLUMNS,
    LOOK_COLUMNS,
    PROBE_COLUMNS,
    SCORE_COLUMNS,
    Plan,
    Setting,
    Settings,
    StudyFrames,
    empty,
)
from analysis.items import ItemScores, no_items
from mtdlab.store.imported import as_record, check_row
from mtdlab.store.items import has_items, load_items
from mtdlab.store.reading import reading
from mtdlab.store.setting_names import present_methods, present_text
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
from mtdlab.store.trial_frames import read_trials
from mtdlab.store.urls import storage_url, without_passwords

ChooseCurves = Callable[[pd.DataFrame, Settings], bool | Collection[int]]
"""From trials and settings: whether to read all curves, or the numbers of those trials."""


def load_study(
    study: str, storage: str | None = None, *, curves: bool | ChooseCurves = True
) -> StudyFrames:
    """A study's trials, curves, spectra and scores as frames, complete or still running.

    storage  a database URL or a SQLite file; by default MTDLAB_STORAGE, then OPTUNA_STORAGE, then
             mtdlab.db in the working folder.
    curves   False leaves that frame, the largest one, empty; a function of trials and
             settings returns whether to read all, or the numbers of the trials to read.

    Raises StorageError if there is no such database, NothingToReport if it has no such study.
    """
    url = storage_url(storage)
    with reading(url) as session:
        row = find_study(session, study, url)
        _check_judged_by(session, row)
        methods = _methods(row)
        begun = (TrialRow.study_id == row.id) & TrialRow.number.is_not(None)
        recorded = read_trials(session, begun)
        trials, settings = recorded.trials(), _settings(methods, recorded.settings)
        chosen = curves(trials, settings) if callable(curves) else curves
        of_study = select(TrialRow.number).where(begun).order_by(TrialRow.number)
        planned = select(func.count()).select_from(TrialRow).where(TrialRow.study_id == row.id)
        return StudyFrames(
            name=row.name,
            metric=row.metric,
            select_by=row.select_by or "",
            planned=session.scalar(planned) or 0,
            trials=trials,
            curves=_curves(session, _chosen(of_study, chosen)),
            spectra=_spectra(session, of_study),
            scores=_scores(session, of_study),
            probes=_probes(session, of_study),
            sampler=row.identity["sampler"],
            study_file=present_text(row.file_text, row.identity),
            # an earlier version recorded passwords
            command=without_passwords(row.command),
            facts=recorded.facts(),
            environment=recorded.environment(),
            settings=settings,
            methods={name: method["title"] for name, method in methods.items()},
            description=row.description,
            looks=_looks(session, row.id),
            plans=_plans(session, row.name),
            model=row.model or {},
            load_items=_items(session, url, row.id, trials),
        )


def _check_judged_by(session: Session, study: StudyRow) -> None:
    """Raise StorageError for a look or plan that the analysis, which trusts them, cannot use."""
    looks = select(LookRow).where(LookRow.study_id == study.id)
    plans = select(PlanRow).where(PlanRow.study == study.name)
    for row in (*session.scalars(looks), *session.scalars(plans)):
        check_row(row.__tablename__, as_record(row))


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


def _items(
    session: Session, url: str, study_id: int, trials: pd.DataFrame
) -> Callable[[], ItemScores | None]:
    """Reads the items of the complete trials when it is called."""
    if not has_items(session, study_id):
        return no_items
    complete = trials.loc[trials["state"] == "COMPLETE", "number"].tolist()
    return partial(load_items, url, study_id, complete)


def _methods(row: StudyRow) -> Mapping[str, Any]:
    """The recorded methods of a study; the built-in methods if none were recorded."""
    if row.methods:
        return present_methods(row.methods)
    # imported here: it imports torch, which studies of the present schema do not need
    from mtdlab.methods.registry import BUILTIN, describe_method

    return {name: describe_method(name) for name in BUILTIN}


def _settings(methods: Mapping[str, Any], recorded: Iterable[str]) -> dict[str, Setting]:
    """The settings of the methods, and further settings that trials recorded."""
    known: dict[str, Setting] = {}
    for method in methods.values():
        for name, setting in method["settings"].items():
            known.setdefault(name, Setting(name, **setting))
    for name in recorded:
        known.setdefault(name, Setting(name))
    return {name: setting for name, setting in known.items() if name not in ("mtd", "seed")}
