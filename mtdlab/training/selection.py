"""The data on which a run's checkpoint is selected."""

from typing import Protocol

from mtdlab.encoders.embed import Vectors
from mtdlab.evaluation.embedder import Embedder
from mtdlab.evaluation.external import DevSelection
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.sts_average import StsAverage
from mtdlab.settings import TrainerSettings
from mtdlab.settings.tasks import DEV
from mtdlab.training.inputs import RunInputs


class Selection(Protocol):
    """Graded pairs, `StsTask`, the average of several sets, or dev data of another task."""

    def measure(self, embedder: Embedder) -> tuple[Vectors, Evaluation]:
        """Score and geometry of an encoder, and the vectors (S, D) of the pairs.

        Raises TrialError where one of them is not finite.
        """


def selection_of(settings: TrainerSettings, inputs: RunInputs) -> Selection:
    """What `select_on` names. Raises MtdlabError for data that are missing or damaged."""
    if settings.select_on.endswith(DEV):
        return DevSelection(settings.select_on, inputs.external, inputs.dev)
    if settings.select_on == "sts_average":
        return StsAverage(settings.evaluation, inputs.encoder, inputs.test, settings.prompt)
    return inputs.test if settings.select_on == "test" else inputs.dev
