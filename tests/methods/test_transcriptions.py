"""The training loop compared with a slow transcription of SimCSE.

That of MoCoSE: `test_published_program`.

Lists, plain calls, transformers' own forward pass, every batch padded to the full length; no
dropout, so that the two draw nothing differently; float64.
"""

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, pad

from mtdlab.config import TrainerSettings
from mtdlab.evaluation.sts import Evaluation
from mtdlab.methods.simcse import SimCSE
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import branch_of

Settings = Callable[..., TrainerSettings]


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
