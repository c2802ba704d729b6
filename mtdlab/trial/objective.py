"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mtdlab.settings import RunSettings
from mtdlab.trial.study import Job, OpenStudy, TrialRun

VERSIONS = "versions"
"""The entry of `Objective.check` that may differ between machines, at the price of equal bits."""


class Objective(ABC):
    """What trains the trials of a study."""

    @abstractmethod
    def check(self, job: Job) -> dict[str, str]:
        """Raise MtdlabError where something that the trials need is missing; writes no record.

        Returns:
            What all processes of the study must share: digests, and versions (`same_inputs`).
        """

    def prepare(self, study: OpenStudy) -> str:
        """Record what all trials share, before the first; returns a sentence to show, or empty."""
        del study
        return ""

    @abstractmethod
    def run(self, settings: RunSettings, run: TrialRun) -> Sequence[str]:
        """Train one trial, record its result (`TrialRun.record`), and keep what belongs to it.

        A trial that fails is recorded.

        Returns:
            What could not be kept after the result was recorded.

        Raises:
            Interrupted: where a stop is requested.
            ClaimLost
            StorageError
        """

    @abstractmethod
    def restore(self, study: OpenStudy) -> None:
        """Finish what a killed process left of trials that have ended. May raise StorageError."""
