"""ESimCSE: loss and queue compared with slow reference implementations; keys; momentum encoder."""

import copy
import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor, nn

from analysis.measures.trace import d_trace
from mtdlab.config import TrainerSettings, make_settings
from mtdlab.device import Device
from mtdlab.evaluation.sts import Evaluation
from mtdlab.methods.esimcse import ESimCSE, ESimCSESettings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train

Settings = Callable[..., TrainerSettings]
Batches = list[list[tuple[Tensor, Tensor]]]
Array = NDArray[np.float64]
CPU = Device(torch.device("cpu"), torch.float32)


def ignore(_step: int, _evaluation: Evaluation | None) -> None:
    """A step callback that does nothing."""


@pytest.fixture
def esimcse_of(settings_of: Settings) -> Callable[..., tuple[ESimCSE, Batches]]:
    """A method and the batches of a few steps."""

    def method(**changed: Any) -> tuple[ESimCSE, Batches]:
        settings = settings_of(method="esimcse", **changed)
        assert isinstance(settings, ESimCSESettings)
        inputs = load_inputs(settings)
        torch.manual_seed(settings.seed)
        found = ESimCSE(copy.deepcopy(inputs.encoder.model), settings, CPU)
        stream = inputs.batches(settings.batch_size, settings.seed)
        return found, [list(next(stream)) for _ in range(6)]

    return method


def take(method: ESimCSE, step: int, views: list[tuple[Tensor, Tensor]], rate: float) -> float:
    """A step of plain gradient descent, as the training loop orders it."""
    result = method(step, views)
    result.loss.backward()
    with torch.no_grad():
        for parameter in method.trained():
            if parameter.grad is not None:
                parameter -= rate * parameter.grad
                parameter.grad = None
    method.update(step, result)
    return float(result.loss.detach())


def slow_loss(first: Array, second: Array, queue: Array, temperature: float) -> float:
    """-log [e(h_i, h'_i) / (sum over j of e(h_i, h'_j) + sum over the queue)], e = exp(cos / t)."""
    total = 0.0
    for row, query in enumerate(first):
        candidates = [
            math.exp(query @ other / np.linalg.norm(query) / np.linalg.norm(other) / temperature)
            for other in [*second, *queue]
        ]
        total -= math.log(candidates[row] / sum(candidates))
    return total / len(first)


@pytest.mark.parametrize("temperature", [0.01, 0.3])
def test_the_loss_is_its_formula(
    esimcse_of: Callable[..., tuple[ESimCSE, Batches]], temperature: float
) -> None:
    method, batches = esimcse_of(temperature=temperature, queue_size=20)
    for step, views in enumerate(batches[:5]):
        streams = method.repetition.state_dict(), method.dropout.state_dict()
        queue = method.queue.negatives().numpy().astype(np.float64).copy()
        result = method(step, views)
        # the same random draws
        method.repetition.load_state_dict(streams[0])
        method.dropout.load_state_dict(streams[1])
        with torch.no_grad():
            first, second = method.encode([views[0], method.repetition(*views[0])])
        expected = slow_loss(first.double().numpy(), second.double().numpy(), queue, temperature)
        assert len(queue) == min(20, 8 * step)
        assert float(result.loss.detach()) == pytest.approx(expected, rel=1e-4)
        method.update(step, result)


def test_the_queue_is_a_deque_of_the_keys(
    esimcse_of: Callable[..., tuple[ESimCSE, Batches]],
) -> None:
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
def test_keys_are_without_dropout_and_without_gradient(
    esimcse_of: Callable[..., tuple[ESimCSE, Batches]], pooling: str
) -> None:
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


def test_the_gap_of_the_momentum_encoder_shrinks_by_the_decay(
    esimcse_of: Callable[..., tuple[ESimCSE, Batches]],
) -> None:
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


def test_the_optimizer_trains_encoder_and_head_alone(
    esimcse_of: Callable[..., tuple[ESimCSE, Batches]],
) -> None:
    method, _ = esimcse_of()
    trained = {id(one) for one in method.trained()}
    assert trained == {id(one) for one in method.branch.parameters()}


def test_a_saved_state_continues_with_the_same_losses(
    esimcse_of: Callable[..., tuple[ESimCSE, Batches]],
) -> None:
    method, batches = esimcse_of(temperature=0.01, queue_size=20)
    for step in range(3):
        take(method, step, batches[step], 0.01)
    saved = copy.deepcopy(method.state_dict())
    expected = [take(method, step, batches[step], 0.01) for step in range(3, 6)]
    other, _ = esimcse_of(temperature=0.01, queue_size=20, seed=5)
    other.load_state_dict(saved)
    assert [take(other, step, batches[step], 0.01) for step in range(3, 6)] == expected


@pytest.mark.parametrize("draw", ["paper", "published-code"])
def test_ten_steps_of_training(settings_of: Settings, draw: str) -> None:
    settings = settings_of(method="esimcse", repetition_draw=draw)
    outcome = train(settings, load_inputs(settings), ignore)
    assert outcome.curve["queue_fill"].tolist() == [0, 8, 16, *[20] * 7]
    assert np.isfinite(outcome.curve["loss"]).all()
    assert set(outcome.states) == {"encoder", "heads", "dropout", "target", "queue"}


def test_the_defaults_are_the_papers_and_the_mtd_is_202_5() -> None:
    settings = make_settings(method="esimcse")
    assert isinstance(settings, ESimCSESettings)
    assert (settings.ema_decay, settings.queue_size, settings.batch_size) == (0.995, 160, 64)
    assert (settings.repetition_rate, settings.repetition_draw) == (0.32, "paper")
    assert (settings.temperature, settings.evaluate_every) == (0.05, 125)
    assert settings.mtd == pytest.approx(202.5)
    assert settings.mtd == d_trace(0.995, 160, 64)
    assert "202.50 steps" in ESimCSE.describe(settings)


@pytest.mark.parametrize(("batch", "queue"), [(64, 160), (32, 80), (7, 17), (256, 640)])
def test_the_default_queue_size_is_two_and_a_half_batches(batch: int, queue: int) -> None:
    assert make_settings(method="esimcse", batch_size=batch).model_dump()["queue_size"] == queue
    given = make_settings(method="esimcse", batch_size=batch, queue_size=3)
    assert given.model_dump()["queue_size"] == 3


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"batch_size": 1}, "batch_size 1 leaves the first step without negatives"),
        ({"batch_size": "64"}, "valid integer"),
        ({"ema_decay": 1.0}, "less than 1"),
        ({"queue_size": -1}, "greater than or equal to 0"),
        ({"repetition_rate": 1.5}, "less than or equal to 1"),
        ({"repetition_draw": "words"}, "'paper' or 'published-code'"),
        ({"initial_queue_size": 5}, "Extra inputs are not permitted"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_trained_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        make_settings(method="esimcse", **changed)
