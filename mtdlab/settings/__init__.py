"""The settings of a training run, each with its description, symbol, unit and bounds."""

from mtdlab.settings.fields import (
    Setting,
    costless,
    counted_in_steps,
    setting,
    settings_of,
    with_default,
)
from mtdlab.settings.messages import first_error
from mtdlab.settings.representation import POOLING, Pooling, Representation
from mtdlab.settings.trainer import RunSettings, TrainerSettings

__all__ = [
    "POOLING",
    "Pooling",
    "Representation",
    "RunSettings",
    "Setting",
    "TrainerSettings",
    "costless",
    "counted_in_steps",
    "first_error",
    "setting",
    "settings_of",
    "with_default",
]
