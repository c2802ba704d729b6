"""The training loop compared with slow transcriptions of published programs: MoCoSE and SimCSE.

Lists, plain calls, transformers' own forward pass, every batch padded to the full length; no
dropout, so that the two draw nothing differently; float64.
"""

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, normalize, pad

from mtdlab.config import TrainerSettings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.methods.heads import predictor
from mtdlab.methods.simcse import SimCSE
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import branch_of

Settings = Callable[..., TrainerSettings]
STEPS = 9


def ignore(_step: int, _evaluation: Evaluation | None) -> None:
    """A step callback that does nothing."""


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    """New modules and tensors in float64, so that tests do not depend on rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def double_inputs(settings: TrainerSettings) -> RunInputs:
    """The inputs of the settings, with the encoder's weights in float64."""
    found = load_inputs(settings)
    model = copy.deepcopy(found.encoder.model).double()
    return dataclasses.replace(found, encoder=dataclasses.replace(found.encoder, model=model))


def losses_of(settings: TrainerSettings) -> list[float]:
    losses: list[float] = train(settings, double_inputs(settings), ignore).curve["loss"].tolist()
    return losses


def padded_batches(inputs: RunInputs, settings: TrainerSettings) -> Iterator[tuple[Tensor, ...]]:
    for ((ids, mask),) in inputs.batches(settings.batch_size, settings.seed):
        room = settings.max_length - ids.shape[1]
        yield pad(ids, (0, room)), pad(mask, (0, room))


def cls(model: Any, words: Tensor, mask: Tensor) -> Tensor:
    vectors: Tensor = model(inputs_embeds=words, attention_mask=mask).last_hidden_state[:, 0]
    return vectors


def published_average(target: nn.Module, online: nn.Module, decay: float) -> None:
    with torch.no_grad():
        for mine, theirs in zip(
            target.state_dict().values(), online.state_dict().values(), strict=True
        ):
            mine.copy_(decay * mine + (1 - decay) * theirs)


def published_program(settings: TrainerSettings) -> tuple[list[float], list[int]]:
    """The losses, and the columns of the queue that each step used."""
    inputs = double_inputs(settings)
    torch.manual_seed(settings.seed)
    online = branch_of(copy.deepcopy(inputs.encoder.model), settings)
    head = predictor(16, 16, 2, 0.0)
    queue = list(normalize(torch.randn(settings.queue_size, 16), dim=1))
    counter, start = settings.initial_queue_size, settings.initial_queue_size
    target = copy.deepcopy(online)
    target.encoder.embeddings = online.encoder.embeddings
    for frozen in (target.encoder.encoder, target.pooler):
        frozen.requires_grad_(False)
    trained = [*online.parameters(), *head.parameters(), *target.projection.parameters()]
    optimizer = torch.optim.AdamW(trained, weight_decay=settings.weight_decay)
    table = online.encoder.embeddings.word_embeddings
    batches = padded_batches(inputs, settings)
    features_grad, losses, columns = torch.tensor(0.0), [], []
    for call in range(1, settings.steps + 1):
        ids, mask = next(batches)
        decay = 1 - (1 - settings.ema_decay) * (math.cos(math.pi * call / 6) + 1) / 2
        for mine, theirs in (
            (target.encoder.encoder, online.encoder.encoder),
            (target.pooler, online.pooler),
            (target.projection, online.projection),
        ):
            published_average(mine, theirs, decay)
        first, second = table(ids), table(ids)
        first.retain_grad()
        step = settings.fgsm_epsilon * features_grad.sign()
        query = head(online.projection(online.pooler(cls(online.encoder, first + step, mask))))
        key = target.projection(target.pooler(cls(target.encoder, second + step, mask)))
        used = queue[: counter + start] if counter + start < settings.queue_size else queue
        candidates = torch.cat([key, torch.stack(used)])
        similarity = cosine_similarity(query.unsqueeze(1), candidates.unsqueeze(0), dim=-1)
        loss = cross_entropy(similarity / 0.05, torch.arange(len(query)))
        queue, counter = [*key.detach(), *queue], counter + len(key)
        if counter > settings.queue_size:
            queue = queue[: settings.queue_size]
        optimizer.zero_grad()
        loss.backward()
        features_grad = first.grad
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 - (call - 1) / settings.steps)
        optimizer.step()
        losses.append(float(loss.detach()))
        columns.append(len(used))
    return losses, columns


@pytest.fixture
def published(settings_of: Settings) -> Settings:
    def settings(**changed: Any) -> TrainerSettings:
        values: dict[str, Any] = {
            "preset": "published-code",
            "dropout": 0.0,
            "steps": STEPS,
            "evaluate_every": STEPS,
            "queue_size": 24,
            "initial_queue_size": 8,
            "fgsm_epsilon": 1e-3,
            "weight_decay": 0.01,
            "ema_schedule_steps": 6,
        }
        return settings_of(**values | changed)

    return settings


def test_the_preset_is_the_published_program(published: Settings) -> None:
    settings = published()
    expected, columns = published_program(settings)
    outcome = train(settings, double_inputs(settings), ignore)
    assert outcome.curve["queue_fill"].tolist() == columns == [16, 32, 40, *[24] * 6]
    assert outcome.curve["loss"].tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "changed",
    [
        {"in_batch_negatives": False},
        {"detach_keys": True},
        {"ema_order": "after-step"},
        {"ema_schedule_steps": 20},
        {"ema_decay": 0.9},
        {"ema_decay_end": 0.95},
        {"queue_fill": "exact"},
        {"fgsm_gradient": "current"},
        {"fgsm_epsilon": 0.0},
    ],
    ids=str,
)
def test_each_setting_of_the_preset_matters(published: Settings, changed: dict[str, Any]) -> None:
    """Otherwise the transcription could not detect a wrong value of the setting."""
    expected, _ = published_program(published())
    assert losses_of(published(**changed)) != pytest.approx(expected, rel=1e-3)


def simcse_program(settings: TrainerSettings) -> list[float]:
    """One encoder, twice; S[i, j] = cos(z1_i, z2_j) / τ; cross-entropy with label i."""
    inputs = double_inputs(settings)
    torch.manual_seed(settings.seed)
    branch = branch_of(copy.deepcopy(inputs.encoder.model), settings)
    encoder, dense = branch.encoder, branch.pooler
    optimizer = torch.optim.AdamW(
        [*encoder.parameters(), *dense.parameters()], weight_decay=settings.weight_decay
    )
    batches, losses = padded_batches(inputs, settings), []
    for step in range(settings.steps):
        ids, mask = next(batches)
        views = []
        for _ in range(2):
            vectors = encoder(input_ids=ids, attention_mask=mask).last_hidden_state[:, 0]
            views.append(torch.tanh(dense(vectors)))
        similarity = cosine_similarity(views[0].unsqueeze(1), views[1].unsqueeze(0), dim=-1)
        loss = cross_entropy(similarity / settings.temperature, torch.arange(len(ids)))
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 - step / settings.steps)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.fixture
def simcse(settings_of: Settings) -> Settings:
    def settings(**changed: Any) -> TrainerSettings:
        # a random encoder's sentences differ by less than 0.001: at 0.05 every loss is log 8
        values: dict[str, Any] = {
            "method": "simcse",
            "dropout": 0.0,
            "steps": 3,
            "evaluate_every": 3,
            "temperature": 5e-3,
            "learning_rate": 1e-2,
        }
        return settings_of(**values | changed)

    return settings


def test_simcse_is_one_encoder_twice(simcse: Settings) -> None:
    assert losses_of(simcse()) == pytest.approx(simcse_program(simcse()), rel=1e-6)


def test_removing_the_tanh_or_one_gradient_changes_simcse(
    simcse: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = simcse_program(simcse())
    with monkeypatch.context() as patch:
        patch.setattr(nn.Tanh, "forward", lambda _self, values: values)
        assert losses_of(simcse()) != pytest.approx(expected, rel=1e-3)
    with monkeypatch.context() as patch:
        loss = SimCSE.loss
        patch.setattr(SimCSE, "loss", lambda self, one, two: loss(self, one, two.detach()))
        assert losses_of(simcse()) != pytest.approx(expected, rel=1e-3)


def test_simcse_draws_two_dropout_masks(simcse: Settings) -> None:
    """Without them the positive pair would be the same vector twice, of cosine 1."""
    dropped, plain = (losses_of(simcse(dropout=rate, steps=1))[0] for rate in (0.2, 0.0))
    assert dropped > plain + 0.01
