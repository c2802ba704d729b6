"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from mtdlab.settings import RunSettings
from mtdlab.trial.study import Job, OpenStudy, TrialRun


class Objective(ABC):
    """What trains the trials of a study."""

    @abstractmethod
    def check(self, job: Job) -> dict[str, Any]:
        """Raise MtdlabError where something that the trials need is missing; writes no record.

        Returns:
            What all processes of the study must share: digests by what they are of, and under
            `VERSIONS` the versions by package (`check_same_inputs`).
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
