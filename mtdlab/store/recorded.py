"""The recorded definition of a study and settings of its trials, for running more trials."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from mtdlab.errors import NothingToReport
from mtdlab.store.progress import living_state
from mtdlab.store.reading import reading
from mtdlab.store.store import find_study
from mtdlab.store.tables import Array, ArrayRow, LookRow, ScoreRow, StudyRow, TrialRow


@dataclass(frozen=True)
class RecordedStudy:
    """A study's file, metric, resolved precision and imported modules.

    Attributes:
        largest_seed: of its planned trials.
        settings: of the requested trials, by number.
        objective: the program that trained it; empty for mtdlab's own trainer.
        definition: what the file said with its profile and --set.
        folder: of the file.
        command: of its last sweep.
    """

    text: str
    metric: str
    precision: str | None
    imports: dict[str, str]
    largest_seed: int
    settings: dict[int, dict[str, Any]]
    objective: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    folder: Path | None = None


def read_states(url: str, study: str) -> dict[tuple[str, int], str]:
    """The state of each planned trial by configuration and seed; none for a study that is not
    there. Raises StorageError where there is no such database.
    """
    with reading(url) as session:
        columns = select(TrialRow.setting, TrialRow.seed, TrialRow.state).join(StudyRow)
        rows = session.execute(columns.where(StudyRow.name == study))
        return {(setting, seed): state for setting, seed, state in rows}


def read_file_of(url: str, study: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What must not change in a study's file, with defaults, and what that file said.

    Both empty for a study that is not there. Raises as `read_states`.
    """
    with reading(url) as session:
        columns = select(StudyRow.identity, StudyRow.definition)
        row = session.execute(columns.where(StudyRow.name == study)).first()
        return (row[0], row[1]) if row else ({}, {})


def read_last_decision(url: str, study: str) -> str:
    """The decision of a study's last look; empty before the first. Raises as `read_states`."""
    with reading(url) as session:
        looks = select(LookRow.decision).join(StudyRow).where(StudyRow.name == study)
        return session.scalar(looks.order_by(LookRow.look.desc()).limit(1)) or ""


def read_artifacts(url: str, study: str) -> str | None:
    """Where all machines keep a study's checkpoints and models. Raises as `read_states`."""
    with reading(url) as session:
        return session.scalar(select(StudyRow.artifacts).where(StudyRow.name == study))


@dataclass(frozen=True)
class RecordedTrial:
    """One trial as it is recorded. Numbers that are not known are None.

    Attributes:
        parameters: the values of the searched settings.
        settings: all settings, empty before it began.
        mtd: in steps.
        score, score_before: the study's metric, x 100, after and before training.
        peak_memory: of the process, or allocated on the GPU, in bytes.
        scores: every score by name, x 100.
        loss: that of each step, (steps,).
    """

    number: int
    seed: int
    state: str
    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]
    mtd: float | None
    score: float | None
    score_before: float | None
    scores: Mapping[str, float]
    loss: Array | None
    best_step: int | None
    wall_seconds: float | None
    peak_memory: float | None
    reason: str
    note: str
    traceback: str
    environment: Mapping[str, str]
    reason_code: str = ""


def read_trial(url: str, study: str, number: int) -> RecordedTrial:
    """Read one trial by its number.

    Raises:
        StorageError
        NothingToReport: where there is no such study or trial.
    """
    with reading(url) as session:
        mine = TrialRow.study_id == find_study(session, study, url).id
        row = session.scalars(select(TrialRow).where(mine, TrialRow.number == number)).first()
        if row is None:
            last = session.scalar(select(func.max(TrialRow.number)).where(mine))
            known = "none has begun" if last is None else f"trials are numbered from 0 to {last}"
            raise NothingToReport(f"study {study} has no trial {number}; {known}")
        scores = session.scalars(select(ScoreRow).where(ScoreRow.trial_id == row.id))
        loss = session.get(ArrayRow, (row.id, "curve/loss"))
        return RecordedTrial(
            number=number,
            seed=row.seed,
            state=living_state(row),
            parameters=row.parameters or {},
            settings=row.settings or {},
            mtd=row.mtd,
            score=row.score,
            score_before=row.score_before,
            scores={each.task: each.score for each in scores if each.score is not None},
            loss=None if loss is None else loss.values,
            best_step=row.best_step,
            wall_seconds=row.wall_seconds,
            peak_memory=row.peak_memory,
            reason=row.reason,
            note=row.note,
            traceback=row.traceback,
            environment=row.environment or {},
            reason_code=row.reason_code,
        )


def read_recorded(url: str, study: str, numbers: Collection[int] = ()) -> RecordedStudy:
    """Read a study. Raises StorageError, and NothingToReport if there is no such study."""
    with reading(url) as session:
        row = find_study(session, study, url)
        mine = TrialRow.study_id == row.id
        chosen = session.scalars(select(TrialRow).where(mine, TrialRow.number.in_(numbers)))
        settings = {each.number or 0: each.settings or {} for each in chosen}
        largest = session.scalar(select(func.max(TrialRow.seed)).where(mine))
        return RecordedStudy(
            row.file_text,
            row.metric,
            row.precision,
            row.imports,
            largest or 0,
            settings,
            row.identity.get("objective", ""),
            row.definition,
            row.command,
            None if row.folder is None else Path(row.folder),
        )
