"""Tests that need a GPU."""

import itertools

import pytest
import torch

from mtdlab.evaluation.suite import Evaluation
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.conftest import Settings


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("augmentation", ["none", "position-shuffle+feature-cutoff:0.1"])
def test_a_step_does_not_synchronise_with_the_gpu(settings_of: Settings, augmentation: str) -> None:
    shown = {"device": "cuda", "precision": "auto", "augmentation": augmentation}
    settings = settings_of(steps=12, evaluate_every=12, learning_rate=3e-5, **shown)
    done = itertools.count(1)

    def on_step(_step: int, _evaluation: Evaluation | None) -> None:
        # between the first steps, which load_inputs kernels, and the last, which evaluates
        torch.cuda.set_sync_debug_mode("error" if 3 <= next(done) < 11 else "default")

    try:
        outcome = train(settings, load_inputs(settings), on_step)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert outcome.curve["loss"].shape == (12,)
