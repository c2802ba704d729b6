"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtdlab.settings import RunSettings
from mtdlab.store import Result
from mtdlab.sweep.study import Job, OpenStudy, TrialRun


def nothing() -> Sequence[str]:
    """There is nothing to keep of a trial beside its result."""
    return ()


@dataclass(frozen=True)
class Ended:
    """How a trial ended.

    Attributes:
        notes: what a reader of the result should know.
        keep: called once it is recorded, returns what went wrong, as notes.
    """

    result: Result
    notes: Sequence[str] = ()
    keep: Callable[[], Sequence[str]] = nothing


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
    def run(self, settings: RunSettings, run: TrialRun) -> Ended:
        """Train one trial. A trial that fails is returned.

        Raises:
            Interrupted: where a stop is requested.
            ClaimLost
            StorageError
        """

    @abstractmethod
    def restore(self, study: OpenStudy) -> None:
        """Finish what a killed process left of trials that have ended. May raise StorageError."""
