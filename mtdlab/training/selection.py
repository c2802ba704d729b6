"""The pairs on which a run's checkpoint is selected."""

from typing import Protocol

from transformers import PreTrainedModel

from mtdlab.device import Device
from mtdlab.encoders.embed import Vectors
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.sts_average import StsAverage
from mtdlab.settings import Representation, TrainerSettings
from mtdlab.training.inputs import RunInputs


class Selection(Protocol):
    """Graded pairs: `StsTask`, or the average of several sets."""

    def embed(
        self, model: PreTrainedModel, representation: Representation, device: Device
    ) -> Vectors:
        """Sentence vectors (S, D). Raises TrialError where one of them is not finite."""

    def evaluate(self, vectors: Vectors) -> Evaluation:
        """Score and geometry of these vectors."""


def selection_of(settings: TrainerSettings, inputs: RunInputs) -> Selection:
    """The pairs that `select_on` names. Raises MtdlabError for a damaged file of `sts_average`."""
    if settings.select_on == "sts_average":
        return StsAverage(settings.evaluation, inputs.encoder, inputs.test, settings.prompt)
    return inputs.test if settings.select_on == "test" else inputs.dev
