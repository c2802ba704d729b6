"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from mtdlab.config import StudySpec
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
