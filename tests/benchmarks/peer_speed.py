"""Training by sentence-transformers: MultipleNegativesRankingLoss of each sentence with itself."""

import itertools
import time
from importlib.util import find_spec
from tempfile import TemporaryDirectory
from typing import Any

import torch
import training_speed

from mtdlab.device import Device
from mtdlab.training.inputs import RunInputs


def why_not() -> str:
    """What is missing for the comparison, or nothing."""
    installed = find_spec("sentence_transformers") is not None
    return (
        "" if installed else "sentence_transformers is not installed (extra sentence-transformers)"
    )


def seconds_per_step(inputs: RunInputs, steps: int, device: Device) -> float:
    """Mean time of `steps` steps on the trainer's own batches, after a few that do not count.

    Its model, pooling (mean) and loss with defaults, torch's AdamW, the precision that ours has:
    a bare loop, which leaves out what its Trainer adds.
    """
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = _model(inputs).to(device.device)
    loss = MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    settings = training_speed.settings_for(1)
    batches = inputs.batches(settings.batch_size, settings.seed)
    total, start = training_speed.UNCOUNTED + steps, 0.0
    model.train()
    for step, ((ids, mask),) in enumerate(itertools.islice(batches, total)):
        if step == training_speed.UNCOUNTED:
            training_speed.wait(device.device)
            start = time.perf_counter()
        view = {"input_ids": ids.to(device.device), "attention_mask": mask.to(device.device)}
        with device.autocast():
            value = loss([dict(view), dict(view)], None)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
    training_speed.wait(device.device)
    return (time.perf_counter() - start) / steps


def _model(inputs: RunInputs) -> Any:
    """The inputs' encoder as sentence-transformers takes any: the mean of its tokens."""
    from sentence_transformers import SentenceTransformer

    with TemporaryDirectory(prefix="mtdlab-bench-") as folder:
        inputs.encoder.model.save_pretrained(folder)
        inputs.encoder.tokenizer.save_pretrained(folder)
        return SentenceTransformer(folder, device="cpu")
