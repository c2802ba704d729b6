"""Our tables, beside Optuna's in the same database.

A row of `mtdlab_trials` is a unit of work (one setting, one seed) from the plan to the result:
it is the claim, and the truth about whether it was done. Optuna's trial of the same number
mirrors it for Optuna's samplers and for everyone's other tools.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import JSON, Dialect, ForeignKey, LargeBinary, TypeDecorator, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA_VERSION = 1
Array = NDArray[np.float32]


class FloatArray(TypeDecorator[Array]):
    """A vector of numbers as little-endian float32: a curve or a spectrum in one value."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Array | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002
        """To bytes."""
        return None if value is None else np.ascontiguousarray(value, dtype="<f4").tobytes()

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Array | None:  # noqa: ARG002
        """From bytes."""
        return None if value is None else np.frombuffer(value, dtype="<f4")


class Base(DeclarativeBase):
    """The tables of this package."""

    type_annotation_map = {dict[str, Any]: JSON(none_as_null=True), Array: FloatArray}  # noqa: RUF012


class Schema(Base):
    """Which version of these tables a database holds: one row."""

    __tablename__ = "mtdlab_schema"

    id: Mapped[int] = mapped_column(primary_key=True)
    version: Mapped[int]


class StudyRow(Base):
    """A study: what its file says, and the command that ran it."""

    __tablename__ = "mtdlab_studies"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    """Optuna's study_id."""
    name: Mapped[str] = mapped_column(unique=True)
    metric: Mapped[str]
    identity: Mapped[dict[str, Any]]
    file_text: Mapped[str]
    command: Mapped[str]


class TrialRow(Base):
    """One setting with one seed."""

    __tablename__ = "mtdlab_trials"
    __table_args__ = (UniqueConstraint("study_id", "setting", "seed"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(
        ForeignKey("mtdlab_studies.id", ondelete="CASCADE"), index=True
    )
    position: Mapped[int]
    setting: Mapped[str]
    seed: Mapped[int]
    leads: Mapped[bool]
    """Whether it is the first of its setting: where a sampler draws, it draws for the others."""
    parameters: Mapped[dict[str, Any] | None]
    state: Mapped[str] = mapped_column(default="WAITING", index=True)

    optuna_id: Mapped[int | None]
    number: Mapped[int | None]
    owner: Mapped[dict[str, Any] | None]
    heartbeat: Mapped[float | None]
    step: Mapped[int] = mapped_column(default=0)
    settings: Mapped[dict[str, Any] | None]

    reason: Mapped[str] = mapped_column(default="")
    mtd: Mapped[float | None]
    score: Mapped[float | None]
    score_before: Mapped[float | None]
    alignment: Mapped[float | None]
    uniformity: Mapped[float | None]
    mean_cosine: Mapped[float | None]
    best_step: Mapped[int | None]
    wall_seconds: Mapped[float | None]
    environment: Mapped[dict[str, Any] | None]


class ScoreRow(Base):
    """A trial's score on one task, x 100."""

    __tablename__ = "mtdlab_scores"

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("mtdlab_trials.id", ondelete="CASCADE"), primary_key=True
    )
    task: Mapped[str] = mapped_column(primary_key=True)
    score: Mapped[float | None]


class ArrayRow(Base):
    """A trial's curve (`curve/loss`, one value a step) or spectrum (`spectrum/after`)."""

    __tablename__ = "mtdlab_arrays"

    trial_id: Mapped[int] = mapped_column(
        ForeignKey("mtdlab_trials.id", ondelete="CASCADE"), primary_key=True
    )
    name: Mapped[str] = mapped_column(primary_key=True)
    values: Mapped[Array]
