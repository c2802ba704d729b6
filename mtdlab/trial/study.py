"""A study that a process has open, a trial of it that the process runs, and what trains it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.config.study import StudySpec
from mtdlab.errors import MtdlabError
from mtdlab.settings import RunSettings
from mtdlab.store.claims import Claim, Result
from mtdlab.store.owner import Owner, this_process
from mtdlab.store.store import Store
from mtdlab.store.tables import StudyRow
from mtdlab.trial.heartbeat import ClaimLost, Heartbeat
from mtdlab.trial.model_folders import checkpoints_of
from mtdlab.trial.signals import StopRequest

if TYPE_CHECKING:
    # it imports optuna, which a complete study does without
    from mtdlab.trial.samplers import OptunaStudy


@dataclass(frozen=True)
class Job:
    """What every process of a sweep is given.

    Attributes:
        url: of the storage; messages of dask show neither it nor the study.
        models: the absolute folder of the studies' models and checkpoints.
    """

    spec: StudySpec = field(repr=False)
    url: str = field(repr=False)
    models: Path

    @property
    def model(self) -> Path:
        """The folder of the best trial's model."""
        return self.models / self.spec.name


@dataclass
class OpenStudy:
    """A study that is open in this process. What Optuna and the record say is read at first use."""

    job: Job
    store: Store
    owner: Owner = field(default_factory=this_process)
    version: int | None = None
    """That of the record which was compared with the study file."""
    _row: StudyRow | None = None

    @property
    def spec(self) -> StudySpec:
        """The study as its file has it."""
        return self.job.spec

    @cached_property
    def identity(self) -> str:
        """The identity of the database, by which folders belong to it."""
        return self.store.identity()

    @property
    def checkpoints(self) -> Path:
        """The folder of the trials' checkpoints."""
        return checkpoints_of(self.job.models, self.identity, self.spec.name)

    def folder_of(self, claim: Claim) -> Path:
        """The folder of a trial's checkpoints."""
        return self.checkpoints / f"{claim.configuration}-{claim.seed}"

    def ended(self, shared: Set[str] = frozenset()) -> Iterator[tuple[Claim, Path]]:
        """The ended trials that have such a folder, or one of the names `shared` elsewhere."""
        if shared or self.checkpoints.exists():
            for claim in self.store.ended():
                folder = self.folder_of(claim)
                if folder.name in shared or folder.exists():
                    yield claim, folder

    @cached_property
    def optuna(self) -> "OptunaStudy":
        """What draws parameters and prunes."""
        from mtdlab.trial.samplers import OptunaStudy

        return OptunaStudy(self.spec, self.store)

    def reread(self) -> StudyRow | None:
        """Read the record again; None where it is gone."""
        self._row = self.store.study()
        return self._row

    @property
    def row(self) -> StudyRow:
        """The record when the last trial was claimed. Raises MtdlabError where it is gone."""
        if (row := self._row or self.reread()) is None:
            raise deleted(self.spec)
        return row


def deleted(spec: StudySpec) -> MtdlabError:
    """The error of a worker whose study is no longer in the database."""
    return MtdlabError(f"study {spec.name} was deleted or renamed while this sweep ran")


@dataclass(frozen=True)
class TrialRun:
    """A claimed trial that begins, or goes on, in this process."""

    study: OpenStudy
    claim: Claim
    stop: StopRequest
    heartbeat: Heartbeat

    def record(self, result: Result, notes: Iterable[str] = ()) -> None:
        """Record the trial's result, with notes that are known. Raises ClaimLost, StorageError."""
        self.heartbeat.check()
        noted = replace(result, note="; ".join(filter(None, notes)))
        if not self.study.store.finish(self.claim, noted):
            raise ClaimLost

    @property
    def folder(self) -> Path:
        """The folder of its checkpoints."""
        return self.study.folder_of(self.claim)


class Objective(ABC):
    """What trains the trials of a study."""

    @abstractmethod
    def check(self, job: Job) -> dict[str, Any]:
        """Raise MtdlabError where something that the trials need is missing; writes no record.

        Returns what all processes of the study must share: digests by what they are of, and under
        `VERSIONS` the versions by package (`check_same_inputs`).
        """

    def prepare(self, study: OpenStudy) -> str:  # noqa: ARG002
        """Record what all trials share, before the first; returns a sentence to show, or empty."""
        return ""

    @abstractmethod
    def run(self, settings: RunSettings, run: TrialRun) -> Sequence[str]:
        """Train one trial, record its result (`TrialRun.record`), and keep what belongs to it.

        A trial that fails is recorded. Returns what could not be kept after the result was
        recorded. Raises Interrupted where a stop is requested, ClaimLost, and StorageError.
        """

    @abstractmethod
    def restore(self, study: OpenStudy) -> None:
        """Finish what a killed process left of trials that have ended. May raise StorageError."""


_MODULES: Mapping[str, tuple[str, ...]] = {
    "program": ("mtdlab.trial.program",),
    "trainer": ("torch", "transformers.modeling_utils", "mtdlab.trial.trainer"),
}
"""What a worker imports for an objective: the largest packages one by one, then the module whose
`OBJECTIVE` it is."""


def objective_of(spec: StudySpec) -> Objective:
    """The objective of a study (`StudySpec.trained_by`). Its import may take seconds."""
    found: Objective = import_module(_MODULES[spec.trained_by][-1]).OBJECTIVE
    return found


def modules_of(spec: StudySpec) -> tuple[str, ...]:
    """What a worker of a study imports."""
    return (*_MODULES[spec.trained_by], "mtdlab.trial.worker")
