"""XBM: its loss, its memory and its settings."""

import copy
from collections import deque
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from mtdlab.methods.xbm import XBM
from mtdlab.training.inputs import load_inputs
from tests.branches import CPU
from tests.conftest import Settings
from tests.methods.oracles import info_nce


@pytest.mark.parametrize("warmup", [0, 2])
def test_earlier_vectors_of_the_encoder_are_further_negatives(
    settings_of: Settings, warmup: int
) -> None:
    """The loss by its formula, the memory by a deque, as the encoder changes from step to step."""
    settings: Any = settings_of(method="xbm", queue_size=20, queue_warmup_steps=warmup)
    inputs = load_inputs(settings)
    torch.manual_seed(settings.seed)
    method = XBM(copy.deepcopy(inputs.encoder.model), settings, CPU)
    optimizer = torch.optim.SGD(method.trained(), lr=0.1)
    batches = inputs.batches(settings.batch_size, settings.seed)
    memory: deque[list[float]] = deque(maxlen=20)
    for step in range(6):
        views = list(next(batches))
        masks = method.dropout.state_dict()
        result = method(step, views)
        method.dropout.load_state_dict(masks)
        with torch.no_grad():
            first, second = method.encode(views)
        rows = torch.tensor(list(memory), dtype=torch.float64).reshape(-1, first.shape[1])
        expected = info_nce(
            first.double().numpy(), second.double().numpy(), rows.numpy(), settings.temperature
        )
        assert len(memory) == min(20, 8 * max(0, step - warmup)) == result.measures["queue_fill"]
        assert float(result.loss.detach()) == pytest.approx(expected, rel=1e-4)
        result.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        method.update(step, result)
        if step >= warmup:
            for row in reversed(torch.nn.functional.normalize(second, dim=1).tolist()):
                memory.appendleft(row)


def test_the_mtd_is_that_of_no_average(settings_of: Settings) -> None:
    settings: Any = settings_of(method="xbm", queue_size=20, batch_size=8)
    assert settings.mtd == pytest.approx(1 + 20 / 8)
    assert "3.50 steps" in XBM.describe(settings)


def test_a_memory_that_is_never_used_is_refused(settings_of: Settings) -> None:
    assert settings_of(method="xbm", steps=10, queue_warmup_steps=8)
    with pytest.raises(ValidationError, match="leaves no step with a queue in 10 steps; it must"):
        settings_of(method="xbm", steps=10, queue_warmup_steps=9)
    with pytest.raises(ValidationError, match="batch_size 1 leaves no negatives"):
        settings_of(method="xbm", batch_size=1)
