"""The default settings give the losses of a plain implementation, over 10 steps.

Both runs start from the same weights, see the same batches and drop the same entries: what the
fast run drops on packed rows, the other drops on padded ones in transformers' own forward pass.
"""

import copy
import dataclasses
from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mtdlab.encoders import fast, pooling
from mtdlab.encoders.dropout import Dropout
from mtdlab.encoders.fast import Packing
from mtdlab.methods.registry import make_settings
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import Outcome, train

SETTINGS = make_settings(
    batch_size=16,
    queue_size=64,
    initial_queue_size=16,
    steps=10,
    evaluate_every=10,
    learning_rate=1e-3,
    device="cpu",
    precision="float32",
)
BFLOAT16 = 2.0**-8
"""Its relative error: the last of its eight bits."""


def run(inputs: RunInputs) -> Outcome:
    return train(SETTINGS, inputs)


def run_fast(inputs: RunInputs) -> tuple[Outcome, list[tuple[Packing, torch.Size]]]:
    """The run, and for every mask its shape and the packing it was drawn under."""
    packings, drawn = [], []
    pack, mask = fast._packing, Dropout._mask

    def packed(model: object, attention_mask: Tensor) -> Packing:
        packings.append(pack(model, attention_mask))  # type: ignore[arg-type]
        return packings[-1]

    def noted(self: Dropout, like: Tensor) -> Tensor:
        drawn.append((packings[-1], like.shape))
        return mask(self, like)

    with patch.object(fast, "_packing", packed), patch.object(Dropout, "_mask", noted):
        return run(inputs), drawn


def run_plainly(inputs: RunInputs, drawn: list[tuple[Packing, torch.Size]]) -> Outcome:
    """The run with the forward pass of transformers, under the same masks."""
    model = copy.deepcopy(inputs.encoder.model)
    model.set_attn_implementation("eager")
    copied = dataclasses.replace(inputs.encoder, model=model)
    masks, own = unpacked(drawn), functional.dropout

    def dropout(values: Tensor, p: float, training: bool, inplace: bool = False) -> Tensor:
        # the heads' values are (N, D) and draw from torch's stream in both runs
        if training and values.dim() > 2:
            return values * next(masks)
        return own(values, p, training, inplace)

    with (
        patch.object(pooling, "is_fast", lambda _model: False),
        patch.object(functional, "dropout", dropout),
    ):
        outcome = run(dataclasses.replace(inputs, encoder=copied))
    assert next(masks, None) is None
    return outcome


def unpacked(drawn: list[tuple[Packing, torch.Size]]) -> Iterator[Tensor]:
    """The fast run's masks from the same stream, (N, L, D) or (N, H, L, L): 1 where it has none."""
    stream = Dropout(SETTINGS.dropout, SETTINGS.seed)
    for packing, shape in drawn:
        mask = stream._mask(torch.empty(shape))
        count, length = packing.places.shape
        if len(shape) == 3:
            whole = torch.ones(len(mask), length, length)
            whole[:, : shape[1]] = mask
            yield whole.view(count, packing.heads, length, length)
        else:
            whole = torch.ones(count * length, shape[1])
            first = torch.arange(count) * length
            whole[packing.rows if len(mask) == len(packing.rows) else first] = mask
            yield whole.view(count, length, -1)


def test_losses_are_those_of_the_plain_formulation() -> None:
    inputs = load_inputs(SETTINGS)
    ours, drawn = run_fast(inputs)
    plain = run_plainly(inputs, drawn)
    losses, expected = ours.curve["loss"], plain.curve["loss"]
    assert np.isfinite(expected).all()
    assert np.ptp(expected) > 100 * BFLOAT16
    # float32 in both: a tolerance far below the resolution of bfloat16
    assert np.abs(losses - expected).max() < BFLOAT16 / 10
    assert abs(ours.after.test.score - plain.after.test.score) < 0.1
