"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mtdlab.config import StudySpec
from mtdlab.settings import RunSettings
from mtdlab.store import Result, Store
from mtdlab.sweep.monitor import TrialRun


def nothing() -> Sequence[str]:
    """There is nothing to keep of a trial beside its result."""
    return ()


@dataclass(frozen=True)
class Ended:
    """How a trial ended.

    notes  what a reader of the result should know; keep: called once it is recorded, returns what
           went wrong, as notes.
    """

    result: Result
    notes: Sequence[str] = ()
    keep: Callable[[], Sequence[str]] = nothing


class Objective(ABC):
    """What trains the trials of a study."""

    @abstractmethod
    def check(self, spec: StudySpec, models: Path) -> dict[str, str]:
        """Raise MtdlabError where something that the trials need is missing; writes no record.

        models  the folder of the studies' models and checkpoints.

        Returns what all processes of the study must share: digests, and versions
        (`same_inputs`).
        """

    def prepare(self, spec: StudySpec, store: Store) -> str:
        """Record what all trials share, before the first; returns a sentence to show, or empty."""
        del spec, store
        return ""

    @abstractmethod
    def run(self, spec: StudySpec, settings: RunSettings, run: TrialRun) -> Ended:
        """Train one trial. A trial that fails is returned.

        Raises Interrupted where a stop is requested, ClaimLost, and StorageError.
        """

    @abstractmethod
    def restore(self, spec: StudySpec, models: Path, store: Store) -> None:
        """Finish what a killed process left of trials that have ended. May raise StorageError."""
