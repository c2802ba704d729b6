"""Branches of an encoder on the CPU, without a method."""

import torch
from torch import nn
from transformers import PreTrainedModel

from mtdlab.device import Device
from mtdlab.methods.heads import Branch
from mtdlab.settings import TrainerSettings

CPU = Device(torch.device("cpu"), torch.float32)


def branch_of(encoder: PreTrainedModel, settings: TrainerSettings) -> Branch:
    """A branch as the settings' method builds it."""
    return Branch(
        encoder,
        representation=settings.representation,
        dropout=settings.dropout,
        projection_layers=getattr(settings, "projection_layers", 0),
        activation=nn.Tanh() if settings.method == "simcse" else None,
    )
