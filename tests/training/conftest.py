"""Runs of a tiny encoder."""

from mtdlab.settings import TrainerSettings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import Outcome, train


def run(settings: TrainerSettings) -> Outcome:
    return train(settings, load_inputs(settings))
