"""The tables of mtdlab, in the same database as Optuna's.

A row of `mtdlab_trials` is one planned, running or finished trial (a configuration with a seed),
and the only record of its state. Optuna's tables have a copy of what has ended (`optuna_copy.py`).
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    JSON,
    Dialect,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, column_property, mapped_column
from sqlalchemy.sql.functions import FunctionElement

from analysis.data.environment import Environment
from analysis.data.invocation import Invocation
from analysis.data.typed_json import read_fields
from mtdlab.settings.roles import SEARCH
from mtdlab.store.owner import is_dead


class Now(FunctionElement[float]):
    """Seconds since the epoch while a statement runs, as an expression of SQL."""

    type = Double()
    inherit_cache = True


@compiles(Now, "sqlite")
def _of_sqlite(_element: Now, _compiler: Any, **_options: Any) -> str:
    # unixepoch() with fractions needs SQLite 3.42; the epoch is the Julian day 2440587.5
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(Now, "postgresql")
def _of_postgresql(_element: Now, _compiler: Any, **_options: Any) -> str:
    # not now(), which is the time at which the transaction began
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


SCHEMA_VERSION = 2
FINISHED = ("COMPLETE", "FAIL", "PRUNED")
"""States of a trial that has ended."""
REASON_CODES = ("nan_loss", "collapsed", "oom", "error", "interrupted")
"""Why a trial failed: a loss or vectors that are not finite, an encoder that gives every sentence
the same vector, no memory left, any other error, a process that died three times."""
VERSIONS = "versions"
"""Of a study's inputs what may differ between machines, at the price of equal bits."""
Array = NDArray[np.float32]


class FloatArray(TypeDecorator[NDArray[Any]]):
    """A vector, such as a curve or a spectrum, as little-endian bytes: <f4 float32, <f8 float64."""

    impl = LargeBinary
    cache_ok = True

    def __init__(self, kind: str = "<f4") -> None:
        super().__init__()
        self.kind: Any = kind

    def process_bind_param(self, value: NDArray[Any] | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        """To bytes."""
        return None if value is None else np.ascontiguousarray(value, dtype=self.kind).tobytes()

    def process_result_value(self, value: Any | None, dialect: Dialect) -> NDArray[Any] | None:  # noqa: ARG002
        """From bytes."""
        return None if value is None else np.frombuffer(value, dtype=self.kind)


class Text(TypeDecorator[str]):
    """Text without what a database refuses: PostgreSQL no NUL, neither any lone surrogate.

    Reasons and notes quote errors, which may hold both. NUL becomes U+FFFD.
    """

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """To text that can be stored."""
        if value is None:
            return None
        return value.replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode()

    def process_result_value(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """The text. Raises ValueError for anything else, which SQLite keeps in any column."""
        if value is None or isinstance(value, str):
            return value
        raise ValueError(f"{value!r:.60} is no text")


def _checked(stored: Any, what: str, holds: Callable[[Any], bool]) -> type[TypeDecorator[Any]]:
    """A column type that raises ValueError where a value that is read is not `what`."""

    class Checked(TypeDecorator[Any]):
        impl = stored
        cache_ok = True

        def process_result_value(self, value: Any | None, dialect: Dialect) -> Any | None:  # noqa: ARG002
            if value is None or holds(value):
                return value
            raise ValueError(f"{value!r:.60} is no {what}")

    return Checked


def _is_finite(value: Any) -> bool:
    return isinstance(value, float | int) and math.isfinite(value)


def _is_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())


Number = _checked(Double, "finite number", _is_finite)
Whole = _checked(Integer, "whole number", lambda value: isinstance(value, int))
JsonList = _checked(JSON, "JSON list", lambda value: isinstance(value, list))
_OBJECT = JSON(none_as_null=True)
JsonObject = _checked(_OBJECT, "JSON object", lambda value: isinstance(value, dict))
JsonTexts = _checked(_OBJECT, "JSON object of texts", _is_of_texts)


class Fields(TypeDecorator[Any]):
    """A frozen dataclass, as JSON (`read_fields`); equal texts are read once.

    Raises ValueError where what is read is not of its fields.
    """

    impl = String
    cache_ok = True

    def __init__(self, kind: type[Any]) -> None:
        super().__init__()
        self.kind: Any = kind

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """To JSON."""
        return None if value is None else json.dumps(asdict(value))

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Any | None:  # noqa: ARG002
        """From JSON."""
        return None if value is None else _read(self.kind, value)


@lru_cache
def _read(kind: Any, text: Any) -> Any:
    try:
        return read_fields(kind, json.loads(text))
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"{text!r:.60} is no {kind.__name__.lower()}") from None


class Base(DeclarativeBase):
    """Base class of the tables."""

    type_annotation_map = {  # noqa: RUF012
        str: Text,
        int: Whole,
        float: Number,
        dict[str, Any]: JsonObject,
        dict[str, str]: JsonTexts,
        Environment: Fields(Environment),
        Invocation: Fields(Invocation),
        list[int]: JsonList,
        list[list[Any]]: JsonList,
        Array: FloatArray,
    }


def _refers_to(column: str, **options: Any) -> MappedColumn[int]:
    return mapped_column(ForeignKey(column, ondelete="CASCADE"), **options)


class Schema(Base):
    """The schema version of these tables: one row."""

    __tablename__ = "mtdlab_schema"

    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int]


class StudyRow(Base):
    """A study: its file, and the command that ran it."""

    __tablename__ = "mtdlab_studies"
    # the number of a study that was replaced is not that of another one
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    metric: Mapped[str]
    identity: Mapped[dict[str, Any]]
    file_text: Mapped[str]
    invocation: Mapped[Invocation]
    description: Mapped[str] = mapped_column(default="")
    imports: Mapped[dict[str, str]] = mapped_column(default=dict)
    """SHA-256 of each module or file that the study's methods were imported from."""
    methods: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """Title and settings of each method, so that reports do not need the method installed."""
    precision: Mapped[str | None]
    """The precision that `auto` was resolved to, the same for all trials of the study."""
    model: Mapped[dict[str, Any] | None]
    """The best trial's model as it was last saved: `trial` (number), `host`, `folder`."""
    definition: Mapped[dict[str, Any]] = mapped_column(default=dict)
    """What the study file says with its profile and --set, for workers that have no file."""
    folder: Mapped[str | None]
    """The folder of the study file, in which its relative paths are looked up."""
    distributions: Mapped[dict[str, str]] = mapped_column(default=dict)
    """Optuna's distribution of each searched parameter, as JSON."""
    inputs: Mapped[dict[str, Any] | None]
    """Of the first process: digests of texts and encoders by setting and name, and under `versions`
    those of packages by name."""
    artifacts: Mapped[str | None]
    """The URL where all machines keep checkpoints and models; None: each machine its own."""
    next_number: Mapped[int] = mapped_column(default=0)
    """The number of the trial that is claimed next for the first time."""
    version: Mapped[int] = mapped_column(default=0)
    """How often the record was written: a worker that has read this version need not read again."""

    @property
    def select_by(self) -> str:
        """The name of the score that ranks the trials."""
        return str(self.identity.get("select_by", self.metric))

    @property
    def file_folder(self) -> Path | None:
        """The folder of the study file."""
        return None if self.folder is None else Path(self.folder)

    @property
    def objective(self) -> str:
        """The program of the user that trains it, MODULE:FUNCTION; empty for mtdlab's trainer."""
        return str(self.identity.get("objective", ""))


class Owned:
    """What a process owns: a trial that it runs, or its sweep."""

    owner: Any
    silent: Any

    @property
    def is_abandoned(self) -> bool:
        """Whether the process has died (`is_dead`)."""
        return is_dead(self.owner or {}, self.silent)


class TrialRow(Owned, Base):
    """One configuration with one seed."""

    __tablename__ = "mtdlab_trials"
    __table_args__ = (
        UniqueConstraint("study_id", "setting", "seed"),
        UniqueConstraint("study_id", "number"),
        # the next waiting trial is found at the same cost among any number of recorded ones
        Index("ix_mtdlab_trials_next", "study_id", "state", "position"),
        # and those that a sweep has ended
        Index("ix_mtdlab_trials_sweep", "sweep", "state"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", index=True)
    position: Mapped[int]
    role: Mapped[str] = mapped_column(default=SEARCH)
    """One of `ROLES`; only those of the search have a copy in Optuna's tables."""
    setting: Mapped[str]
    seed: Mapped[int]
    leads: Mapped[bool]
    """Whether this is the first seed of its configuration, for which parameters are sampled."""
    parameters: Mapped[dict[str, Any] | None]
    state: Mapped[str] = mapped_column(default="WAITING", index=True)

    number: Mapped[int | None]
    """In the order of the first claims, from 0; that of its copy in Optuna's tables."""
    began: Mapped[float | None]
    """When its settings were recorded, in seconds since the epoch, by the clock of the database."""
    ended: Mapped[float | None]
    owner: Mapped[dict[str, Any] | None]
    heartbeat: Mapped[float | None] = mapped_column()
    """In seconds since the epoch, by the clock of the database."""
    silent: Mapped[float | None] = column_property(Now() - heartbeat)
    """Seconds since the last heartbeat, when the row was read."""
    sweep: Mapped[int | None]
    """The row of the sweep whose worker runs it, or has ended it."""
    step: Mapped[int] = mapped_column(default=0)
    phase: Mapped[str] = mapped_column(default="")
    """What its process does at this step, such as "training", in words for a reader."""
    settings: Mapped[dict[str, Any] | None]

    reason: Mapped[str] = mapped_column(default="")
    """Why the trial failed or was pruned."""
    reason_code: Mapped[str] = mapped_column(default="")
    """One of `REASON_CODES` for a failed trial, else empty."""
    deaths: Mapped[int] = mapped_column(default=0)
    """How many processes died while they ran the trial, since its last checkpoint."""
    note: Mapped[str] = mapped_column(default="")
    """An error that did not prevent a result, such as a failure to save the model."""
    traceback: Mapped[str] = mapped_column(default="")
    """Python's traceback of the error that a trial failed with."""
    reports: Mapped[dict[str, Any] | None]
    """The scores that a pruner has seen, by step."""
    attributes: Mapped[dict[str, Any] | None]
    """What Optuna's pruner and sampler keep with a trial that a pruner watches."""
    mtd: Mapped[float | None]
    score: Mapped[float | None]
    score_before: Mapped[float | None]
    alignment: Mapped[float | None]
    uniformity: Mapped[float | None]
    mean_cosine: Mapped[float | None]
    best_step: Mapped[int | None]
    wall_seconds: Mapped[float | None]
    peak_memory: Mapped[float | None]
    """Bytes: resident of the process, or allocated on the GPU."""
    environment: Mapped[Environment | None]

    @property
    def reported(self) -> dict[int, float]:
        """The scores by step that a pruner has seen."""
        return {int(step): score for step, score in (self.reports or {}).items()}

    @property
    def is_of_program(self) -> bool:
        """Whether a program of the user, MODULE:FUNCTION, trained it."""
        return ":" in str((self.settings or {}).get("method", ""))

    @property
    def steps(self) -> int | None:
        """Its training steps; None where a program of the user has no such setting."""
        return (self.settings or {}).get("steps")


def living_state(row: Any) -> str:
    """The state of a trial; WAITING for a running one whose process has died.

    Until the next sweep it is recorded as running. `row` is a `TrialRow`, or what was selected of
    one: state, owner and silent.
    """
    dead = row.state == "RUNNING" and is_dead(row.owner or {}, row.silent)
    return "WAITING" if dead else str(row.state)


class SweepRow(Owned, Base):
    """A sweep that runs a study, also while none of its trials is running."""

    __tablename__ = "mtdlab_sweeps"
    # trials name the sweep that ended them, also after its row was removed
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", index=True)
    owner: Mapped[dict[str, Any]]
    heartbeat: Mapped[float] = mapped_column()
    """As that of a trial."""
    silent: Mapped[float] = column_property(Now() - heartbeat)
    stop: Mapped[bool] = mapped_column(default=False)
    """Whether it was requested to stop after the current step."""
    is_over: Mapped[bool] = mapped_column(default=False)
    """Whether its workers claim no more trials, and end."""
    max_failed: Mapped[int | None]
    """The failed trials of the study with which it claims no more; None: any number may fail."""
    error: Mapped[dict[str, Any] | None]
    """What ended one of its workers: `exit_code`, `message`, and `traceback` of a bug."""

    @property
    def has_to_end(self) -> bool:
        """Whether its workers were requested to end."""
        return self.stop or self.is_over


class ScoreRow(Base):
    """A trial's score on one task, x 100."""

    __tablename__ = "mtdlab_scores"

    trial_id: Mapped[int] = _refers_to("mtdlab_trials.id", primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    score: Mapped[float | None]


class ArrayRow(Base):
    """An array of a trial.

    Training curves (`curve/loss`, one value per step), spectra (`spectrum/after`), probes of its
    keys (`probe/step`, `probe/cosine_different`, `probe/cosine/LAG`, one value per probe), and what
    its score was computed from (`items/TASK/DIGEST`, one value per item of `ItemsRow`).
    """

    __tablename__ = "mtdlab_arrays"

    trial_id: Mapped[int] = _refers_to("mtdlab_trials.id", primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    values: Mapped[Array]


class ItemsRow(Base):
    """The items that scores on a task were computed from, once for all trials of a study.

    A trial's values are its array `items/TASK/DIGEST`.
    """

    __tablename__ = "mtdlab_items"

    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the items."""
    kind: Mapped[str]
    """`spearman`: values are similarities; `mean`: the score is their mean, in points."""
    count: Mapped[int]
    gold: Mapped[NDArray[np.float64] | None] = mapped_column(FloatArray("<f8"))
    """What the similarities are compared with."""


class LookRow(Base):
    """A look at the verdict of a study that adds seeds until it is decided."""

    __tablename__ = "mtdlab_looks"

    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", primary_key=True)
    look: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Number of the look, from 1."""
    seeds: Mapped[int]
    """The number of seeds of the leading levels."""
    trials: Mapped[list[int]]
    """Numbers of the completed trials that it was computed from."""
    alpha: Mapped[float]
    """The nominal significance level that the p value is compared with."""
    spent: Mapped[float]
    """Error probability spent up to this look."""
    p_value: Mapped[float | None]
    verdict: Mapped[str]
    decision: Mapped[str]
    """continue, or why the study ends: decided, flat, max_seeds, no scores."""
    added: Mapped[list[list[Any]]]
    """Configuration and seed of each trial that it added."""


class PlanRow(Base):
    """A specification of a study's verdict."""

    __tablename__ = "mtdlab_plans"

    study: Mapped[str] = mapped_column(primary_key=True)
    """By name, since `plan` records it before the study exists."""
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    trials: Mapped[int]
    """How many trials had started when it was recorded."""
    plan: Mapped[dict[str, Any]]
    sha256: Mapped[str]
