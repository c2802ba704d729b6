"""ESimCSE: loss and queue compared with slow reference implementations; keys; momentum encoder."""

import copy
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from mtdlab.methods.esimcse import ESimCSE
from mtdlab.training.inputs import load_inputs
from tests.branches import CPU
from tests.conftest import Settings
from tests.methods.oracles import info_nce

Made = Callable[..., tuple[ESimCSE, list[list[tuple[Tensor, Tensor]]]]]


@pytest.fixture
def esimcse_of(settings_of: Settings) -> Made:
    """A method and the batches of a few steps."""

    def method(**changed: Any) -> tuple[ESimCSE, list[list[tuple[Tensor, Tensor]]]]:
        settings: Any = settings_of(method="esimcse", **changed)
        inputs = load_inputs(settings)
        torch.manual_seed(settings.seed)
        found = ESimCSE(copy.deepcopy(inputs.encoder.model), settings, CPU)
        stream = inputs.batches(settings.batch_size, settings.seed)
        return found, [list(next(stream)) for _ in range(6)]

    return method


@pytest.mark.parametrize("temperature", [0.01, 0.3])
def test_the_loss_is_its_formula(esimcse_of: Made, temperature: float) -> None:
    method, batches = esimcse_of(temperature=temperature, queue_size=20)
    for step, views in enumerate(batches[:5]):
        streams = method.repetition.state_dict(), method.dropout.state_dict()
        queue = method.queue.negatives().double().numpy()
        result = method(step, views)
        # the same random draws
        method.repetition.load_state_dict(streams[0])
        method.dropout.load_state_dict(streams[1])
        with torch.no_grad():
            first, second = method.encode([views[0], method.repetition(*views[0])])
        expected = info_nce(first.double().numpy(), second.double().numpy(), queue, temperature)
        assert len(queue) == min(20, 8 * step)
        assert float(result.loss.detach()) == pytest.approx(expected, rel=1e-4)
        method.update(step, result)


def test_the_queue_is_a_deque_of_the_keys(esimcse_of: Made) -> None:
    """K 20, N 8: empty at first; unchanged by a forward pass; update() inserts keys in front."""
    method, batches = esimcse_of(queue_size=20)
    against: deque[list[float]] = deque(maxlen=20)
    for step, views in enumerate(batches):
        result = method(step, views)
        assert method.queue.ordered().tolist() == list(against)
        assert result.keys is not None
        method.update(step, result)
        for row in reversed(result.keys.tolist()):
            against.appendleft(row)
        assert result.measures["queue_fill"] == min(20, 8 * step)
    assert method.queue.ordered().tolist() == list(against)


@pytest.mark.parametrize("pooling", ["cls", "mean", "first-last"])
def test_keys_are_without_dropout_and_without_gradient(esimcse_of: Made, pooling: str) -> None:
    method, batches = esimcse_of(dropout=0.5, pooling=pooling)
    with torch.no_grad():
        for parameter in method.target.encoder.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.05)
    [(ids, mask)] = batches[0]
    keys = method(0, batches[0]).keys
    assert keys is not None
    assert not keys.requires_grad
    assert torch.equal(keys, method.keys(ids, mask))
    momentum = copy.deepcopy(method.target.encoder).eval()
    layers = momentum(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    hidden = (layers[1] + layers[-1]) / 2 if pooling == "first-last" else layers[-1]
    weights = mask.unsqueeze(-1) / mask.sum(dim=1).view(-1, 1, 1)
    sentence = hidden[:, 0] if pooling == "cls" else (hidden * weights).sum(dim=1)
    # the online head on the momentum encoder
    expected = nn.functional.normalize(torch.tanh(method.branch.pooler(sentence)), dim=1)
    assert torch.allclose(keys, expected, atol=1e-5)
    first, second = method.encode([(ids, mask)])
    assert not torch.allclose(first, second, atol=1e-3)


def test_the_gap_of_the_momentum_encoder_shrinks_by_the_decay(esimcse_of: Made) -> None:
    """All of the encoder, word embeddings included; the head is the online one."""
    method, batches = esimcse_of(ema_decay=0.9)
    online = dict(method.branch.encoder.named_parameters())
    assert method.target.encoder is not method.branch.encoder
    assert method.target.pooler is method.branch.pooler
    with torch.no_grad():
        for parameter in online.values():
            parameter.add_(0.5)
    result = method(0, batches[0])
    for step in range(7):
        method.update(step, result)
    names = [name for name, _ in method.target.encoder.named_parameters()]
    assert "embeddings.word_embeddings.weight" in names
    assert names == list(online)
    for name, parameter in method.target.encoder.named_parameters():
        gap = online[name].detach() - parameter
        assert torch.allclose(gap, torch.full_like(gap, 0.5 * 0.9**7), atol=1e-5), name


def test_the_optimizer_trains_encoder_and_head_alone(esimcse_of: Made) -> None:
    method, _ = esimcse_of()
    trained = {id(one) for one in method.trained()}
    assert trained == {id(one) for one in method.branch.parameters()}
