"""Tests that need a GPU."""

import itertools
from pathlib import Path

import pytest
import torch

from mtdlab.config import make_settings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("augmentation", ["none", "position-shuffle+feature-cutoff:0.1"])
def test_a_step_does_not_synchronise_with_the_gpu(
    tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path, augmentation: str
) -> None:
    settings = make_settings(
        encoder=str(tiny_encoder),
        corpus=str(tiny_corpus),
        evaluation=str(tiny_pairs),
        batch_size=8,
        queue_size=20,
        initial_queue_size=5,
        steps=12,
        evaluate_every=12,
        max_length=16,
        device="cuda",
        augmentation=augmentation,
    )
    done = itertools.count(1)

    def on_step(_step: int, _evaluation: Evaluation | None) -> None:
        # between the first steps, which load_inputs kernels, and the last, which evaluates
        torch.cuda.set_sync_debug_mode("error" if 3 <= next(done) < 11 else "default")

    try:
        outcome = train(settings, load_inputs(settings), on_step)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert outcome.curve["loss"].shape == (12,)
