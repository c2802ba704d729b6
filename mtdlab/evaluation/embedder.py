"""What evaluations score: an encoder with the way in which its vectors are read."""

from dataclasses import dataclass

from transformers import PreTrainedModel

from mtdlab.device import Device
from mtdlab.evaluation.processing import Processing
from mtdlab.settings import Representation


@dataclass(frozen=True)
class Embedder:
    """An encoder and how its sentence vectors are read: representation, device, processing.

    processing  of vectors; fitted to each task's own sentences, each as often as it occurs
                there, as published for whitening. None: none.
    """

    model: PreTrainedModel
    representation: Representation
    device: Device
    processing: Processing | None = None
