"""What a sweep runs for each of its trials: mtdlab's trainer, or a program of the user."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mtdlab.config import StudySpec
from mtdlab.config.program_study import ProgramSpec
from mtdlab.settings import RunSettings
from mtdlab.store import Result, Store
from mtdlab.sweep.monitor import TrialRun
from mtdlab.sweep.signals import StopRequest


def nothing() -> Sequence[str]:
    """There is nothing to keep of a trial beside its result."""
    return ()


@dataclass(frozen=True)
class Ended:
    """How a trial ended.

    notes          what is worth to be known beside the result.
    keep           called once the result is recorded; returns what went wrong, as notes.
    leaves_folder  whether the folder of its checkpoints is still needed then.
    """

    result: Result
    notes: Sequence[str] = ()
    keep: Callable[[], Sequence[str]] = nothing
    leaves_folder: bool = False


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
    def restore(
        self, spec: StudySpec, url: str, models: Path, store: Store, stop: StopRequest
    ) -> None:
        """Finish what a killed process left of trials that have ended. May raise StorageError."""


def objective_of(spec: StudySpec) -> Objective:
    """The objective of a study."""
    if isinstance(spec, ProgramSpec):
        from mtdlab.sweep.program import ProgramObjective

        return ProgramObjective()
    # imports torch and transformers
    from mtdlab.sweep.trainer import Trainer

    return Trainer()


def modules_of(spec: StudySpec) -> tuple[str, ...]:
    """What a worker of a study imports: the largest packages one by one, then its objective."""
    if isinstance(spec, ProgramSpec):
        return ("mtdlab.sweep.worker", "mtdlab.sweep.program")
    packages = ("torch", "transformers.modeling_utils")
    return (*packages, "mtdlab.sweep.worker", "mtdlab.sweep.trainer")
