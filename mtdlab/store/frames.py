"""This module reads a study from its database as pandas frames."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sqlalchemy import ColumnElement, Select, literal, select
from sqlalchemy.orm import Session

from mtdlab.analysis.data.defaults import BEYOND_RUN
from mtdlab.analysis.data.environment import Environment
from mtdlab.analysis.data.frames import (
    CURVE_COLUMNS,
    ENVIRONMENT_COLUMNS,
    HISTORY_COLUMNS,
    LOOK_COLUMNS,
    PROBE_COLUMNS,
    REFERENCE_COLUMNS,
    SCORE_COLUMNS,
    TRIAL_COLUMNS,
    Baseline,
    NuisanceTrials,
    Plan,
    RecordedSetting,
    Settings,
    StudyFrames,
    empty,
)
from mtdlab.analysis.data.items import ItemScores, digest_of_tasks
from mtdlab.config.nuisance import NUISANCE, PER, nuisance_values
from mtdlab.errors import StorageError
from mtdlab.settings.roles import BASELINE, OF_NUISANCE, SEARCH
from mtdlab.store.claims import count_trials
from mtdlab.store.database import reading
from mtdlab.store.ranking import find_ranking
from mtdlab.store.recorded import find_name
from mtdlab.store.records import as_record, check_row, find_study, items_problem
from mtdlab.store.rules import REFERENCES
from mtdlab.store.tables import (
    Array,
    ArrayRow,
    ItemsRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
    items_array,
    living_state,
)
from mtdlab.store.urls import mask, storage_url

_OWN = tuple(name for name in TRIAL_COLUMNS if hasattr(TrialRow, name))
"""The columns of a trial that are columns of its row; the others are settings."""
_READ = (*_OWN, "note", "owner", "silent", "settings", "environment")
_AT_ONCE = 5_000
"""Rows whose settings are in memory as dictionaries, each ten times as large as in a frame."""
_ITEMS_AT_ONCE = 500
"""Trials whose values of items are in memory beside those of all."""


class RecordedTrials:
    """These are the trials of which `begun` holds, by number.

    Attributes:
        settings: the names of those that any trial recorded.
        environments: what each trial ran with; None for a trial that did not record it.
    """

    def __init__(self, session: Session, begun: ColumnElement[bool]) -> None:
        self.environments: list[Environment | None] = []
        self._notes: list[str] = []
        columns = [getattr(TrialRow, name) for name in _READ]
        query = select(*columns).where(begun).order_by(TrialRow.number)
        parts = [pd.DataFrame(columns=list(_OWN))]
        for rows in session.execute(query.execution_options(yield_per=_AT_ONCE)).partitions():
            self.environments += [row.environment for row in rows]
            self._notes += [row.note for row in rows]
            parts.append(pd.DataFrame([(row.settings or {}) | _own_columns(row) for row in rows]))
        # a setting that is empty in all of a part has the type of the others
        self._frame = pd.concat(parts[1:] or parts, ignore_index=True).infer_objects()
        self.settings = [str(name) for name in self._frame if name not in _OWN]

    def trials(self) -> pd.DataFrame:
        """Return `TRIAL_COLUMNS`, the other settings, and `note` if any trial has one."""
        if not self._notes:
            return empty(TRIAL_COLUMNS)
        first = self._frame.reindex(columns=list(TRIAL_COLUMNS))
        for name, kind in TRIAL_COLUMNS.items():
            values = first[name]
            text = values.astype("object").where(values.notna(), "").astype("str")
            first[name] = text if kind == "str" else pd.to_numeric(values)
        rest = self._frame.drop(columns=[name for name in TRIAL_COLUMNS if name in self._frame])
        if any(self._notes):
            rest["note"] = pd.Series(self._notes, dtype="str")
        return pd.concat([first, rest], axis=1)

    def environment(self) -> pd.DataFrame:
        """`ENVIRONMENT_COLUMNS` and versions, a row per trial that recorded its environment."""
        records = [
            {
                "number": number,
                "device": environment.device,
                "precision": environment.precision,
                "threads": "" if environment.threads is None else str(environment.threads),
                "processor": environment.machine,
                **({"code": environment.own_code} if environment.own_code else {}),
                **environment.all_versions,
            }
            for number, environment in zip(self._frame["number"], self.environments, strict=True)
            if environment is not None
        ]
        if not records:
            return empty(ENVIRONMENT_COLUMNS)
        frame = pd.DataFrame.from_records(records)
        return frame.fillna("").astype({name: "str" for name in frame if name != "number"})


def _own_columns(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in _OWN} | {"state": living_state(row)}


ChooseCurves = Callable[[pd.DataFrame, Settings], bool | Collection[int]]
"""From trials and settings: whether to read all curves, or the numbers of those trials."""


def load_frames(
    study: str, storage: str | Path | None = None, *, curves: bool | ChooseCurves = True
) -> StudyFrames:
    """Read a study as frames, as `mtdlab.load_study` does, complete or still running.

    A function for `curves` returns whether to read all, or the numbers of the trials to read.
    """
    url = storage_url(storage)
    with reading(url) as session:
        row = find_study(session, study, url)
        of_looks = select(LookRow).where(LookRow.study_id == row.id).order_by(LookRow.look)
        of_plans = select(PlanRow).where(PlanRow.study == row.name).order_by(PlanRow.position)
        looks, plans = session.scalars(of_looks).all(), session.scalars(of_plans).all()
        # the analysis trusts them
        for checked in (*looks, *plans):
            check_row(type(checked), as_record(checked))
        searched = (TrialRow.study_id == row.id) & (TrialRow.role == SEARCH)
        begun = searched & TrialRow.began.is_not(None)
        recorded, baseline = RecordedTrials(session, begun), _baseline(session, row.id)
        trials, settings = recorded.trials(), _settings(row.methods, recorded.settings)
        ranked = (TrialRow.study_id == row.id) & TrialRow.role.in_((SEARCH, BASELINE))
        ranked &= TrialRow.began.is_not(None)
        chosen = curves(trials, settings) if callable(curves) else curves
        wanted = literal(chosen) if isinstance(chosen, bool) else TrialRow.number.in_(list(chosen))
        of_study = select(TrialRow.number).where(begun).order_by(TrialRow.number)
        parts = [trials] if baseline is None else [trials, baseline.trials]
        ran = pd.concat([part[["number", "state"]] for part in parts])
        complete = ran.loc[ran["state"] == "COMPLETE", "number"].tolist()
        read_items = partial(load_items, url, row.id, complete)
        items = select(ItemsRow.digest).where(ItemsRow.study_id == row.id).limit(1)
        return StudyFrames(
            name=row.name,
            metric=row.metric,
            select_by=row.select_by,
            planned=count_trials(session, searched),
            trials=trials,
            curves=_curves(session, of_study.where(wanted)),
            spectra=_spectra(session, of_study),
            scores=_scores(session, select(TrialRow.number).where(ranked)),
            probes=_probes(session, of_study),
            history=_history(session, of_study),
            sampler=row.identity["sampler"],
            study_file=row.file_text,
            invocation=row.invocation,
            # by their text, since mappings have no hash
            environments=tuple({repr(env): env for env in recorded.environments if env}.values()),
            environment=recorded.environment(),
            settings=settings,
            methods={name: method["title"] for name, method in row.methods.items()},
            description=row.description,
            looks=_looks(looks),
            plans=tuple(Plan(plan.trials, plan.plan, plan.sha256) for plan in plans),
            model=row.model or {},
            beyond_run=plans[-1].plan["beyond_run"] if plans else BEYOND_RUN,
            references=_references(row),
            load_items=None if session.scalar(items) is None else read_items,
            baseline=baseline,
            tuning=_nuisance_trials(session, row),
            names=_names(session, row),
        )


def _names(session: Session, study: StudyRow) -> dict[str, tuple[int, ...]]:
    """Read the names that the study file has for configurations, with the numbers of trials."""
    if not (points := study.definition.get("names")):
        return {}
    begun = (TrialRow.study_id == study.id) & TrialRow.began.is_not(None)
    columns = select(TrialRow.number, TrialRow.role, TrialRow.parameters).where(begun)
    trials = session.execute(columns.order_by(TrialRow.number))
    called = [(trial.number, find_name(study, trial)) for trial in trials]
    return {name: tuple(number for number, own in called if own == name) for name in points}


def _baseline(session: Session, study_id: int) -> Baseline | None:
    """Read the baseline of a study; None where none is planned."""
    mine = (TrialRow.study_id == study_id) & (TrialRow.role == BASELINE)
    values = session.scalars(select(TrialRow.parameters).where(mine)).all()
    if not values:
        return None
    recorded = RecordedTrials(session, mine & TrialRow.began.is_not(None))
    return Baseline(values[0] or {}, len(values), recorded.trials())


def _nuisance_trials(session: Session, study: StudyRow) -> NuisanceTrials | None:
    """Read the trials that choose the values of nuisance settings; None where none is planned."""
    if (nuisance := study.identity.get(NUISANCE)) is None:
        return None
    mine = (TrialRow.study_id == study.id) & TrialRow.role.in_(OF_NUISANCE)
    begun = mine & TrialRow.began.is_not(None)
    decisive = select(TrialRow.configuration, find_ranking(session, study.id)).where(begun)
    rows = session.execute(decisive.order_by(TrialRow.number)).all()
    trials = RecordedTrials(session, begun).trials()
    names = [str(name).split(".") for name, _ in rows]
    trials["group"] = pd.Series([group for group, *_ in names], dtype="str")
    trials["configuration"] = pd.Series([name for _, name, _ in names], dtype="str")
    trials["selected"] = pd.Series([score for _, score in rows], dtype="float64")
    return NuisanceTrials(
        names=tuple(nuisance_values(nuisance)),
        per=tuple(nuisance[PER]),
        planned=count_trials(session, mine),
        chosen=study.chosen or {},
        trials=trials,
    )


def _curves(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    columns = _arrays(session, of_study, "curve/")
    if not columns:
        return empty(CURVE_COLUMNS)
    frames = []
    for number, curve in columns.items():
        # a program reports steps, mtdlab's trainer records every one
        reported = "step" in curve
        steps = curve["step"].astype(np.int64) if reported else np.arange(1, len(curve["loss"]) + 1)
        frames.append(pd.DataFrame({"number": number} | curve | {"step": steps}))
    return pd.concat(frames, ignore_index=True).reindex(columns=list(CURVE_COLUMNS))


def _probes(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    columns = _arrays(session, of_study, "probe/")
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


def _history(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    columns = _arrays(session, of_study, "history/")
    frames = [pd.DataFrame({"number": number} | compared) for number, compared in columns.items()]
    table = pd.concat([empty(HISTORY_COLUMNS), *frames], ignore_index=True)
    return table.reindex(columns=list(HISTORY_COLUMNS)).astype(dict(HISTORY_COLUMNS))


def _compared(number: int, lag: int, probed: Mapping[str, Array], cosine: Array) -> Any:
    """Return the rows of one trial and lag, as `PROBE_COLUMNS`: (P, 5), steps with both probes."""
    step = probed["step"].astype(np.float64)
    every = np.broadcast_arrays(number, step, lag, cosine, probed["cosine_different"])
    rows = np.stack(every, axis=1)
    return rows[step >= lag]


def _spectra(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    spectra = {
        (number, moment): values
        for number, moments in _arrays(session, of_study, "spectrum/").items()
        for moment, values in moments.items()
    }
    index = pd.MultiIndex.from_tuples(list(spectra), names=["number", "moment"])
    widest = max((len(values) for values in spectra.values()), default=0)
    table = np.full((len(spectra), widest), np.nan)
    for row, values in enumerate(spectra.values()):
        table[row, : len(values)] = values
    return pd.DataFrame(table, index=index if len(spectra) else None)


def _arrays(session: Session, of_study: Select[Any], prefix: str) -> dict[int, dict[str, Array]]:
    """Read the arrays whose names begin with `prefix`, by trial number and rest of the name."""
    arrays = of_study.add_columns(ArrayRow.name, ArrayRow.values).join(ArrayRow)
    found: dict[int, dict[str, Array]] = {}
    for number, name, values in session.execute(arrays.where(ArrayRow.name.startswith(prefix))):
        found.setdefault(number, {})[name.removeprefix(prefix)] = values
    return found


def _scores(session: Session, of_study: Select[Any]) -> pd.DataFrame:
    rows = session.execute(of_study.add_columns(ScoreRow.task, ScoreRow.score).join(ScoreRow))
    frame = pd.DataFrame(rows.all(), columns=list(SCORE_COLUMNS))
    return frame.astype(dict(SCORE_COLUMNS))


def _references(study: StudyRow) -> pd.DataFrame:
    found = (study.inputs or {}).get(REFERENCES, {})
    rows = [(name, *scored) for name, scores in found.items() for scored in scores.items()]
    frame = pd.DataFrame(rows, columns=list(REFERENCE_COLUMNS))
    return frame.astype(dict(REFERENCE_COLUMNS))


def _looks(rows: Iterable[LookRow]) -> pd.DataFrame:
    records = [
        {name: getattr(row, name) for name in LOOK_COLUMNS if hasattr(LookRow, name)}
        | {"runs": len(row.trials), "added": len(row.added), "trials": tuple(row.trials)}
        for row in rows
    ]
    frame = pd.DataFrame.from_records(records, columns=list(LOOK_COLUMNS))
    return frame.astype(dict(LOOK_COLUMNS))


def _settings(methods: Mapping[str, Any], recorded: Iterable[str]) -> dict[str, RecordedSetting]:
    """Return the settings of the methods, and further settings that trials recorded."""
    known: dict[str, RecordedSetting] = {}
    for method in methods.values():
        for name, setting in method["settings"].items():
            known.setdefault(name, RecordedSetting(name, **setting))
    for name in recorded:
        known.setdefault(name, RecordedSetting(name))
    return {name: setting for name, setting in known.items() if name != "seed"}


def load_items(url: str, study_id: int, trials: Collection[int]) -> ItemScores | None:
    """Read the items of those of the trials, by number, that were scored on the same ones.

    Where trials were scored on different items, they are those of most trials. Returns None without
    any. Raises StorageError.
    """
    with reading(url) as session:
        mine = select(ItemsRow).where(ItemsRow.study_id == study_id).order_by(ItemsRow.task)
        known = {items_array(row.task, row.digest): row for row in session.scalars(mine)}
        arrays = select(TrialRow.number, ArrayRow.name).join(ArrayRow)
        arrays = arrays.where(TrialRow.study_id == study_id, ArrayRow.name.in_(known))
        of_trial: dict[Any, set[str]] = {}
        for number, name in session.execute(arrays):
            of_trial.setdefault(number, set()).add(name)
        scored = sorted(of_trial.keys() & {*trials})
        recorded = {number: frozenset(of_trial[number]) for number in scored}
        if not recorded:
            return None
        [(most, _)] = Counter(recorded.values()).most_common(1)
        shared = {name: row for name, row in known.items() if name in most}
        for row in shared.values():
            if row.gold is not None and (problem := items_problem(row.count, row.gold)):
                where = f"{mask(url)} is damaged: the gold scores of task {row.task}"
                raise StorageError(f"{where}: {problem}; restore it from a backup")
        numbers = [number for number, names in recorded.items() if names == most]
        values = _values(session, arrays.add_columns(ArrayRow.values), shared, numbers, url)
    rows = shared.values()
    gold = [row.gold for row in rows if row.gold is not None]
    return ItemScores(
        numbers=np.array(numbers, dtype=np.int64),
        values=values,
        gold=np.concatenate(gold) if gold else None,
        tasks={row.task: row.count for row in rows},
        digest=digest_of_tasks([row.digest for row in rows]),
    )


def _values(
    session: Session,
    arrays: Select[Any],
    shared: Mapping[str, ItemsRow],
    numbers: Sequence[int],
    url: str,
) -> Array:
    """Read the values (N, P) of trials, the arrays of one trial side by side."""
    ends = np.cumsum([row.count for row in shared.values()]).tolist()
    columns = {
        name: slice(end - row.count, end)
        for (name, row), end in zip(shared.items(), ends, strict=True)
    }
    places = {number: at for at, number in enumerate(numbers)}
    found = np.empty((len(numbers), ends[-1]), dtype=np.float32)
    for number, name, values in session.execute(arrays.execution_options(yield_per=_ITEMS_AT_ONCE)):
        if number in places and name in columns:
            if problem := items_problem(shared[name].count, values):
                raise StorageError(
                    f"{mask(url)} is damaged: trial {number}: {problem}; restore it from a backup"
                )
            found[places[number], columns[name]] = values
    return found
