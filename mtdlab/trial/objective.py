"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.programs import ProgramSettings
from mtdlab.settings import RunSettings
from mtdlab.trial.study import Job, OpenStudy, TrialRun


class Objective(ABC):
    """What trains the trials of a study."""

    @abstractmethod
    def check(self, job: Job) -> dict[str, Any]:
        """Raise MtdlabError where something that the trials need is missing; writes no record.

        Returns what all processes of the study must share: digests by what they are of, and under
        `VERSIONS` the versions by package (`check_same_inputs`).
        """

    def prepare(self, study: OpenStudy) -> str:
        """Record what all trials share, before the first; returns a sentence to show, or empty."""
        del study
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


_PACKAGES = ("torch", "transformers.modeling_utils")
_MODULES: Mapping[str, tuple[str, ...]] = {
    ProgramSettings.trained_by: ("mtdlab.trial.program",),
    TrainerSettings.trained_by: (*_PACKAGES, "mtdlab.trial.trainer"),
}
"""What a worker imports for an objective: the largest packages one by one, then the module whose
`OBJECTIVE` it is."""


def objective_of(name: str) -> Objective:
    """The objective of this name (`RunSettings.trained_by`). Its import may take seconds."""
    found: Objective = import_module(_MODULES[name][-1]).OBJECTIVE
    return found


def objectives_of(spec: StudySpec) -> list[Objective]:
    """The objectives of a study, imported."""
    return [objective_of(name) for name in spec.objectives]


def modules_of(spec: StudySpec) -> tuple[str, ...]:
    """What a worker of a study imports."""
    modules = [module for name in spec.objectives for module in _MODULES[name]]
    return (*modules, "mtdlab.trial.worker")


def check(job: Job) -> dict[str, Any]:
    """What all processes of a study must share (`Objective.check`), of all its objectives."""
    found: dict[str, Any] = {}
    for objective in objectives_of(job.spec):
        found |= objective.check(job)
    return found
