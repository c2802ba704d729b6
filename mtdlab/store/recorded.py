"""This module reads which studies a database has, and the record of a study and of its trials."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from math import isclose, nan
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from mtdlab.analysis.data.environment import Environment
from mtdlab.config.search import fits
from mtdlab.errors import NothingToReport, StorageError
from mtdlab.settings.roles import SEARCH, SEARCH_NUISANCE
from mtdlab.store.database import inspecting, reading, schema_version
from mtdlab.store.facts import IDENTITY, read_fact
from mtdlab.store.optuna_copy import STUDIES, has_foreign, has_tables
from mtdlab.store.records import find_study
from mtdlab.store.rules import REFERENCES, RUN
from mtdlab.store.tables import (
    FINISHED,
    Array,
    ArrayRow,
    LookRow,
    PlanRow,
    ScoreRow,
    StudyRow,
    TrialRow,
)
from mtdlab.store.urls import mask, storage_url


def study_names(storage: str | None = None) -> list[str]:
    """Read the sorted names of the studies of a database. Raises StorageError."""
    with reading(storage_url(storage)) as session:
        return list(session.scalars(select(StudyRow.name).order_by(StudyRow.name)))


def planned_names(url: str) -> list[str]:
    """Read the names of studies of which a plan is recorded, but no trial. Raises StorageError."""
    with reading(url) as session:
        begun = select(StudyRow.name)
        plans = select(PlanRow.study).where(PlanRow.study.not_in(begun)).distinct()
        return list(session.scalars(plans.order_by(PlanRow.study)))


def names_in(url: str) -> set[str]:
    """Read the names of all studies, mtdlab's and Optuna's. Raises StorageError."""
    with reading(url) as session:
        return _find_names(session)


def _find_names(session: Session) -> set[str]:
    names = set(session.scalars(select(StudyRow.name)))
    if has_tables(session.connection()):
        names |= set(session.scalars(select(STUDIES.c.study_name)))
    return names


def refuse_foreign(url: str, name: str) -> None:
    """Raise StorageError where Optuna's tables have a study of this name that is not mtdlab's."""
    with inspecting(url) as connection:
        is_foreign = connection is not None and has_foreign(connection, name)
    if is_foreign:
        raise StorageError(
            f"{mask(url)} has a study {name} in Optuna's tables that mtdlab did not write and does "
            "not change; choose another name or another --storage, or delete that study: "
            f"optuna delete-study --study-name {name}"
        )


def conflict_in(session: Session, name: str, url: str, renamed: str = "") -> str:
    """Say why a new study cannot have this name, as a part of a sentence; empty if it can.

    The name is that of a study, of a recorded plan, or differs in case only from that of a study
    other than `renamed`, which gets the name.
    """
    names = _find_names(session)
    if name in names:
        return f"{mask(url)} has a study {name} already"
    if session.scalar(select(PlanRow.study).where(PlanRow.study == name).limit(1)) is not None:
        return (
            f"{mask(url)} has a plan of study {name}, which would be lost "
            f"(mtdlab delete {name} deletes it)"
        )
    return find_twin(name, names - {renamed}, url)


def find_twin(name: str, names: Set[str], url: str) -> str:
    """Say which study has a new name but for its case, as a part of a sentence; empty for none.

    The two would share the folders of models, checkpoints and pages on some file systems.
    """
    twins = [other for other in names if other != name and other.casefold() == name.casefold()]
    if name in names or not twins:
        return ""
    return (
        f"{mask(url)} has a study {twins[0]}, with which {name} would share its folders on file "
        "systems that ignore case"
    )


def read_planned(url: str, study: str) -> dict[tuple[str, int], Any]:
    """Read each trial by configuration and seed, in the order of planning.

    A trial is a row of its configuration, seed, state, number (None before it begins) and
    parameters. Raises StorageError.
    """
    columns = (TrialRow.configuration, TrialRow.seed, TrialRow.state, TrialRow.number)
    with reading(url) as session:
        trials = select(*columns, TrialRow.parameters).join(StudyRow).order_by(TrialRow.id)
        rows = session.execute(trials.where(StudyRow.name == study))
        return {(row.configuration, row.seed): row for row in rows}


def read_last_decision(url: str, study: str) -> str:
    """Read the decision of a study's last look; empty before the first. Raises StorageError."""
    with reading(url) as session:
        looks = select(LookRow.decision).join(StudyRow).where(StudyRow.name == study)
        return session.scalar(looks.order_by(LookRow.look.desc()).limit(1)) or ""


def read_recorded(url: str, study: str) -> StudyRow:
    """Read a study's record. Raises StorageError, and NothingToReport if there is no such study."""
    with reading(url) as session:
        return find_study(session, study, url)


def read_identity(url: str) -> str:
    """Read the identity of a database; empty where there is none yet. Raises StorageError."""
    with inspecting(url) as connection:
        return "" if connection is None else read_fact(connection, IDENTITY)


def is_recorded(url: str, study: str, run: Mapping[str, Any]) -> bool:
    """Return whether a study has the trial of a model folder's run. Raises StorageError."""
    with inspecting(url) as connection:
        if connection is None or schema_version(connection) is None or not RUN.holds(run):
            return False
        named = (StudyRow.name == study, TrialRow.number == run["trial"])
        rows = select(TrialRow.seed, ScoreRow.task, ScoreRow.score).select_from(TrialRow)
        rows = rows.join(StudyRow).join(ScoreRow).where(*named)
        found = [row for row in connection.execute(rows) if row.task in run["scores"]]
        return bool(found) and all(
            row.seed == run.get("seed") and isclose(row.score or nan, run["scores"][row.task])
            for row in found
        )


def read_seconds(url: str, study: str) -> float:
    """Read how long the trials of a study took; 0 while one is left. Raises StorageError."""
    with reading(url) as session:
        mine = TrialRow.study_id == find_study(session, study, url).id
        if session.scalar(
            select(TrialRow.id).where(mine, TrialRow.state.not_in(FINISHED)).limit(1)
        ):
            return 0.0
        return session.scalar(select(func.sum(TrialRow.wall_seconds)).where(mine)) or 0.0


def find_references(url: str, study: StudyRow, encoder: str, evaluation: str) -> dict[str, float]:
    """Read the scores by reading that another study has of this encoder, its metric and pairs.

    Encoder and pairs are the same if their digests are. Empty without one. Raises StorageError.
    """
    names, own = (f"encoder {encoder}", f"evaluation {evaluation}"), study.inputs or {}
    with reading(url) as session:
        same_metric = select(StudyRow.inputs).where(StudyRow.metric == study.metric)
        for inputs in session.scalars(same_metric.where(StudyRow.inputs.is_not(None))):
            is_same = all(name in own and own[name] == inputs.get(name) for name in names)
            if is_same and (scores := inputs.get(REFERENCES, {}).get(encoder)):
                return dict(scores)
    return {}


@dataclass(frozen=True)
class RecordedTrial:
    """A recorded trial is its row, and what it recorded; nothing before it began or ended.

    `parameters` are the searched settings, `settings` all but the seed. Scores are x 100, the loss
    has a value for each step.
    """

    row: TrialRow
    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]
    environment: Environment
    scores: Mapping[str, float]
    loss: Array | None


def read_trial(url: str, study: str, number: int) -> RecordedTrial:
    """Read one trial by its number. Raises StorageError, and NothingToReport if it is missing."""
    with reading(url) as session:
        mine = TrialRow.study_id == find_study(session, study, url).id
        row = session.scalars(select(TrialRow).where(mine, TrialRow.number == number)).first()
        if row is None:
            last = session.scalar(select(func.max(TrialRow.number)).where(mine))
            begun = "none has begun" if last is None else f"trials are numbered from 0 to {last}"
            raise NothingToReport(f"study {study} has no trial {number}; {begun}")
        rows = session.scalars(select(ScoreRow).where(ScoreRow.trial_id == row.id))
        scores = {score.task: score.score for score in rows if score.score is not None}
        loss = session.get(ArrayRow, (row.id, "curve/loss"))
        return RecordedTrial(
            row,
            row.parameters or {},
            row.settings or {},
            row.environment or Environment(),
            scores,
            None if loss is None else loss.values,
        )


def settings_of(trial: RecordedTrial, study: StudyRow) -> dict[str, Any]:
    """Return a trial's settings, at the precision that it ran with."""
    settings = dict(trial.settings)
    if settings.get("precision") == "auto" and study.precision:
        settings["precision"] = study.precision
    return settings


def find_name(study: StudyRow, trial: Any) -> str:
    """Find what the study file calls the configuration of a trial; empty where it does not."""
    points = study.definition.get("names", {}) if trial.role in (SEARCH, SEARCH_NUISANCE) else {}
    return next((name for name, point in points.items() if fits(point, trial.parameters or {})), "")
