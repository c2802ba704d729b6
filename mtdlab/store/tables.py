"""This module declares the tables of mtdlab, in the same database as Optuna's.

A column has a type, and a rule of what it may hold: that of its type, or a narrower one
(`_held_to`).

A row of `mtdlab_trials` is one planned, running or finished trial (a configuration with a seed),
and the only record of its state. Optuna's tables have a copy of what has ended (`optuna_copy.py`).
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    JSON,
    Boolean,
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

from mtdlab.analysis.data.environment import Environment, read_fields
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.settings.roles import ROLES, SEARCH
from mtdlab.store import rules
from mtdlab.store.owner import is_dead
from mtdlab.store.rules import Rule


class Now(FunctionElement[float]):
    """This expression of SQL is the seconds since the epoch while a statement runs."""

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


SCHEMA_VERSION = 3
FINISHED = ("COMPLETE", "FAIL", "PRUNED")
"""States of a trial that has ended."""
STATE = rules.one_of("WAITING", "RUNNING", *FINISHED)
REASON_CODES = ("nan_loss", "collapsed", "oom", "error", "interrupted")
"""Why a trial failed: a loss or vectors that are not finite, an encoder that gives every sentence
the same vector, no memory left, any other error, a process that died three times."""
IMPORTED = 0
"""The number of no sweep: that of a trial which was imported, until a worker claims it."""
CURVES = {"curve/loss", "curve/step"}
"""Every complete trial has one of these arrays: that of mtdlab's trainer, or of a program."""
ITEMS = "items/"
"""What the name of a trial's array of values of items begins with."""
Array = NDArray[np.float32]


def _converted(
    stored: Any, read: Callable[[Any], Any], write: Callable[[Any], Any] | None = None
) -> type[TypeDecorator[Any]]:
    """Return a column type that converts each value but None when it is written and read."""

    class Converted(TypeDecorator[Any]):
        impl = stored
        cache_ok = True

        def process_bind_param(self, value: Any | None, dialect: Dialect) -> Any | None:  # noqa: ARG002
            return value if value is None or write is None else write(value)

        def process_result_value(self, value: Any | None, dialect: Dialect) -> Any | None:  # noqa: ARG002
            return None if value is None else read(value)

    return Converted


def _of_kind(kind: Rule, value: Any) -> Any:
    if kind.holds(value):
        return value
    raise ValueError(f"{value!r:.60} is no {kind.what}")


def _as_text(value: str) -> str:
    """Return text without lone surrogates and NUL, which errors may hold and databases refuse."""
    return value.replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode()


def _vector(kind: str) -> type[TypeDecorator[Any]]:
    """Return the type of vectors as little-endian bytes: <f4 is float32, <f8 float64."""
    return _converted(
        LargeBinary,
        partial(np.frombuffer, dtype=kind),
        lambda vector: np.ascontiguousarray(vector, dtype=kind).tobytes(),
    )


@lru_cache
def _read_fields(kind: Any, text: Any) -> Any:
    try:
        return read_fields(kind, json.loads(text))
    except (TypeError, ValueError, RecursionError):
        raise ValueError(f"{text!r:.60} is no {kind.__name__.lower()}") from None


def _fields(kind: Any) -> type[TypeDecorator[Any]]:
    """Return the type of a frozen dataclass as JSON; equal texts are read once."""
    return _converted(String, partial(_read_fields, kind), lambda value: json.dumps(asdict(value)))


Text = _converted(String, partial(_of_kind, rules.IS_TEXT), _as_text)
Number = _converted(Double, partial(_of_kind, rules.IS_FINITE))
Whole = _converted(Integer, partial(_of_kind, rules.IS_WHOLE))
JsonList = _converted(JSON, partial(_of_kind, rules.IS_LIST))
_OBJECT = JSON(none_as_null=True)
JsonObject = _converted(_OBJECT, partial(_of_kind, rules.IS_OBJECT))
JsonTexts = _converted(_OBJECT, partial(_of_kind, rules.ARE_TEXTS))
FloatArray = _vector("<f4")


class Base(DeclarativeBase):
    """This is the base class of the tables."""

    type_annotation_map = {  # noqa: RUF012
        str: Text,
        int: Whole,
        float: Number,
        dict[str, Any]: JsonObject,
        dict[str, str]: JsonTexts,
        Environment: _fields(Environment),
        Invocation: _fields(Invocation),
        list[int]: JsonList,
        list[list[Any]]: JsonList,
        Array: FloatArray,
    }


_RULES: dict[type[Any], Rule] = {
    Text: rules.TEXT,
    Whole: rules.WHOLE,
    Number: rules.NUMBER,
    Boolean: rules.FLAG,
    JsonTexts: rules.named(rules.TEXT),
    FloatArray: rules.ARRAY,
}
"""The rules of columns that state none; one of JSON lists or objects has to state its own."""


def _held_to(rule: Rule, *types: Any, **options: Any) -> MappedColumn[Any]:
    """Return a column whose values obey a rule that is narrower than that of its type."""
    return mapped_column(*types, info={"rule": rule}, **options)


def rule_of(column: Any) -> Rule:
    """Return the rule of a column. Raises KeyError for one that has to state it, and does not."""
    rule = column.info["rule"] if "rule" in column.info else _RULES[type(column.type)]
    if not column.nullable:
        return rule
    return Rule(f"{rule.what} or empty", lambda value: value is None or rule.holds(value))


def _refers_to(column: str, **options: Any) -> MappedColumn[int]:
    return mapped_column(ForeignKey(column, ondelete="CASCADE"), **options)


class Schema(Base):
    """This table has one row, the version of the schema."""

    __tablename__ = "mtdlab_schema"

    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int]


class StudyRow(Base):
    """A row is a study, with its file and the command that ran it."""

    __tablename__ = "mtdlab_studies"
    # the number of a study that was replaced is not that of another one
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = _held_to(rules.NAME, unique=True)
    metric: Mapped[str]
    identity: Mapped[dict[str, Any]] = _held_to(rules.IDENTITY)
    file_text: Mapped[str]
    invocation: Mapped[Invocation] = _held_to(rules.INVOCATION)
    description: Mapped[str] = mapped_column(default="")
    imports: Mapped[dict[str, str]] = mapped_column(default=dict)
    """SHA-256 of each module or file that the study's methods were imported from."""
    methods: Mapped[dict[str, Any]] = _held_to(rules.named(rules.METHOD), default=dict)
    """Title and settings of each method, so that reports do not need the method installed."""
    precision: Mapped[str | None] = _held_to(rules.one_of("float32", "bfloat16"))
    """The precision that `auto` was resolved to, the same for all trials of the study."""
    model: Mapped[dict[str, Any] | None] = _held_to(rules.MODEL)
    """The best trial's model as it was last saved: `trial` (number), `host`, `folder`."""
    definition: Mapped[dict[str, Any]] = _held_to(rules.DEFINITION, default=dict)
    """What the study file says with its profile and --set, for workers that have no file."""
    folder: Mapped[str | None]
    """The folder of the study file, in which its relative paths are looked up."""
    distributions: Mapped[dict[str, str]] = _held_to(rules.named(rules.DISTRIBUTION), default=dict)
    """Optuna's distribution of each searched parameter, as JSON."""
    inputs: Mapped[dict[str, Any] | None] = _held_to(rules.INPUTS)
    """Of the first process: digests of texts and encoders by setting and name, and under `versions`
    those of packages by name; under `references` scores of the untrained encoders."""
    chosen: Mapped[dict[str, Any] | None] = _held_to(rules.named(rules.named(rules.SCALAR)))
    """The values of nuisance settings by group, once they are chosen."""
    artifacts: Mapped[str | None]
    """The URL where all machines keep checkpoints and models; None: each machine its own."""
    next_number: Mapped[int] = mapped_column(default=0)
    """The number of the trial that is claimed next for the first time."""
    version: Mapped[int] = mapped_column(default=0)
    """How often the record was written: a worker that has read this version need not read again."""

    @property
    def select_by(self) -> str:
        """Return the name of the score that ranks the trials."""
        return str(self.identity.get("select_by", self.metric))

    @property
    def file_folder(self) -> Path | None:
        """Return the folder of the study file."""
        return None if self.folder is None else Path(self.folder)

    @property
    def objective(self) -> str:
        """Return the program that trains it, MODULE:FUNCTION; empty for mtdlab's trainer."""
        return str(self.identity.get("objective", ""))


class Owned:
    """An owned row is of a process: a trial that it runs, or its sweep."""

    owner: Any
    silent: Any

    @property
    def is_abandoned(self) -> bool:
        """Return whether the process has died (`is_dead`)."""
        return is_dead(self.owner or {}, self.silent)


class TrialRow(Owned, Base):
    """A row is one configuration with one seed."""

    __tablename__ = "mtdlab_trials"
    __table_args__ = (
        UniqueConstraint("study_id", "configuration", "seed"),
        UniqueConstraint("study_id", "number"),
        # the next waiting trial is found at the same cost among any number of recorded ones
        Index("ix_mtdlab_trials_next", "study_id", "state", "position"),
        # and those that a sweep has ended
        Index("ix_mtdlab_trials_sweep", "sweep", "state"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", index=True)
    position: Mapped[int]
    role: Mapped[str] = _held_to(rules.one_of(*ROLES), default=SEARCH)
    """Only trials of the search have a copy in Optuna's tables."""
    configuration: Mapped[str]
    seed: Mapped[int]
    leads: Mapped[bool]
    """Whether this is the first seed of its configuration, for which parameters are sampled."""
    parameters: Mapped[dict[str, Any] | None] = _held_to(rules.named(rules.SCALAR))
    state: Mapped[str] = _held_to(STATE, default="WAITING", index=True)

    number: Mapped[int | None]
    """In the order of the first claims, from 0; that of its copy in Optuna's tables."""
    began: Mapped[float | None] = _held_to(rules.TIME)
    """When its settings were recorded, in seconds since the epoch, by the clock of the database."""
    ended: Mapped[float | None] = _held_to(rules.TIME)
    owner: Mapped[dict[str, Any] | None] = _held_to(rules.named(rules.SCALAR))
    heartbeat: Mapped[float | None] = mapped_column()
    """In seconds since the epoch, by the clock of the database."""
    silent: Mapped[float | None] = column_property(Now() - heartbeat)
    """Seconds since the last heartbeat, when the row was read."""
    sweep: Mapped[int | None]
    """The row of the sweep whose worker runs it, or has ended it."""
    step: Mapped[int] = mapped_column(default=0)
    phase: Mapped[str] = mapped_column(default="")
    """What its process does at this step, such as "training", in words for a reader."""
    settings: Mapped[dict[str, Any] | None] = _held_to(rules.SETTINGS)

    reason: Mapped[str] = mapped_column(default="")
    """Why the trial failed or was pruned."""
    reason_code: Mapped[str] = _held_to(rules.one_of("", *REASON_CODES), default="")
    """It is empty but for a failed trial."""
    deaths: Mapped[int] = mapped_column(default=0)
    """How many processes died while they ran the trial, since its last checkpoint."""
    note: Mapped[str] = mapped_column(default="")
    """An error that did not prevent a result, such as a failure to save the model."""
    traceback: Mapped[str] = mapped_column(default="")
    """Python's traceback of the error that a trial failed with."""
    reports: Mapped[dict[str, Any] | None] = _held_to(rules.REPORTS)
    """The scores that a pruner has seen, by step."""
    attributes: Mapped[dict[str, Any] | None] = _held_to(rules.named(rules.SCALAR))
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
    environment: Mapped[Environment | None] = _held_to(rules.ENVIRONMENT)

    @property
    def reported(self) -> dict[int, float]:
        """Return the scores by step that a pruner has seen."""
        return {int(step): score for step, score in (self.reports or {}).items()}

    @property
    def is_of_program(self) -> bool:
        """Return whether a program of the user, MODULE:FUNCTION, trained it."""
        return ":" in str((self.settings or {}).get("method", ""))

    @property
    def steps(self) -> int | None:
        """Return its training steps; None where a program of the user has no such setting."""
        return (self.settings or {}).get("steps")


def living_state(row: Any) -> str:
    """Return the state of a trial; WAITING for a running one whose process has died."""
    dead = row.state == "RUNNING" and is_dead(row.owner or {}, row.silent)
    return "WAITING" if dead else str(row.state)


class SweepRow(Owned, Base):
    """A row is a sweep that runs a study, also while none of its trials is running."""

    __tablename__ = "mtdlab_sweeps"
    # trials name the sweep that ended them, also after its row was removed
    __table_args__ = {"sqlite_autoincrement": True}  # noqa: RUF012

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", index=True)
    owner: Mapped[dict[str, Any]]
    heartbeat: Mapped[float] = mapped_column()
    """In seconds since the epoch, by the clock of the database."""
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
        """Return whether its workers were requested to end."""
        return self.stop or self.is_over


class ScoreRow(Base):
    """A row is a trial's score on one task, x 100."""

    __tablename__ = "mtdlab_scores"

    trial_id: Mapped[int] = _refers_to("mtdlab_trials.id", primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    score: Mapped[float | None]


class ArrayRow(Base):
    """A row is an array of a trial.

    It is a training curve (`curve/loss`, one value per step), a spectrum (`spectrum/after`), of the
    probes of its keys (`probe/step`, `probe/cosine_different`, `probe/cosine/LAG`, one value per
    probe), of comparisons of keys in use (`history/similarity`, one value per comparison), or what
    its score was computed from (`items/TASK/DIGEST`, one value per item of `ItemsRow`).
    """

    __tablename__ = "mtdlab_arrays"

    trial_id: Mapped[int] = _refers_to("mtdlab_trials.id", primary_key=True)
    name: Mapped[str] = _held_to(rules.ARRAY_NAME, primary_key=True)
    values: Mapped[Array]


class ItemsRow(Base):
    """A row has the items that scores on a task are computed from, once for all trials."""

    __tablename__ = "mtdlab_items"

    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", primary_key=True)
    task: Mapped[str] = mapped_column(primary_key=True)
    digest: Mapped[str] = _held_to(rules.SHA256, primary_key=True)
    """It is of the items."""
    kind: Mapped[str] = _held_to(rules.one_of("spearman", "mean"))
    """`spearman`: values are similarities; `mean`: the score is their mean, in points."""
    count: Mapped[int]
    gold: Mapped[NDArray[np.float64] | None] = _held_to(rules.ARRAY, _vector("<f8"))
    """What the similarities are compared with."""


def items_array(task: str, digest: str) -> str:
    """Return the name of a trial's array of the values of items."""
    return f"{ITEMS}{task}/{digest}"


class LookRow(Base):
    """A row is a look at the verdict of a study that adds seeds until it is decided."""

    __tablename__ = "mtdlab_looks"

    study_id: Mapped[int] = _refers_to("mtdlab_studies.id", primary_key=True)
    look: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Number of the look, from 1."""
    seeds: Mapped[int]
    """The number of seeds of the leading levels."""
    trials: Mapped[list[int]] = _held_to(rules.listed(rules.WHOLE))
    """Numbers of the completed trials of the search that it was computed from, in their order."""
    alpha: Mapped[float] = _held_to(rules.LEVEL)
    """The nominal significance level that the p value is compared with."""
    spent: Mapped[float] = _held_to(rules.FRACTION)
    """Error probability spent up to this look."""
    p_value: Mapped[float | None] = _held_to(rules.FRACTION)
    """It is None if the verdict was not tested."""
    verdict: Mapped[str]
    decision: Mapped[str]
    """continue, or why the study ends: decided, flat, equivalent, max_seeds, no scores."""
    added: Mapped[list[list[Any]]] = _held_to(rules.listed(rules.PLANNED))
    """Configuration and seed of each trial that it added."""


class PlanRow(Base):
    """A row is a specification of a study's verdict."""

    __tablename__ = "mtdlab_plans"

    study: Mapped[str] = _held_to(rules.NAME, primary_key=True)
    """By name, since `plan` records it before the study exists."""
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    trials: Mapped[int]
    """How many trials had started when it was recorded."""
    plan: Mapped[dict[str, Any]] = _held_to(rules.PLAN)
    sha256: Mapped[str] = _held_to(rules.SHA256)
