"""ConSERT compared with its formula and with a slow transcription; its perturbations."""

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from mtdlab.config import TrainerSettings, make_settings
from mtdlab.device import choose_device
from mtdlab.encoders import pooling
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.pooling import encode
from mtdlab.errors import MtdlabError
from mtdlab.methods.consert import (
    ConSERT,
    ConSERTSettings,
    Perturbation,
    drop_elements,
    nt_xent,
)
from mtdlab.settings import Representation
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train

Settings = Callable[..., TrainerSettings]
Array = NDArray[np.float64]
KINDS = ["token-cutoff:0.4", "feature-cutoff:0.2", "dropout:0.3", "position-shuffle"]


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / np.sqrt(one @ one) / np.sqrt(other @ other))


def slow_nt_xent(first: Array, second: Array, temperature: float) -> float:
    """Of 2N vectors, each has one positive and 2N - 2 negatives."""
    every, count = [*first, *second], len(first)
    total = 0.0
    for a, vector in enumerate(every):
        b = a + count if a < count else a - count
        others = [math.exp(cosine(vector, c) / temperature) for c in every if c is not vector]
        total -= cosine(vector, every[b]) / temperature - math.log(math.fsum(others))
    return total / len(every)


@pytest.mark.parametrize(("count", "temperature"), [(2, 1.0), (3, 0.1), (9, 0.05)])
def test_nt_xent_is_its_formula(count: int, temperature: float) -> None:
    first, second = draw(count, 5), draw(count, 5, seed=1)
    slow = slow_nt_xent(first.numpy(), second.numpy(), temperature)
    assert float(nt_xent(first, second, temperature)) == pytest.approx(slow, rel=1e-10)


def test_nt_xent_is_symmetric() -> None:
    """In the views, in the order of sentences, and in the length of vectors."""
    first, second = draw(6, 5), draw(6, 5, seed=1)
    loss = float(nt_xent(first, second, 0.1))
    assert float(nt_xent(second, first, 0.1)) == pytest.approx(loss, rel=1e-12)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert float(nt_xent(first[order], second[order], 0.1)) == pytest.approx(loss, rel=1e-12)
    assert float(nt_xent(3 * first, second, 0.1)) == pytest.approx(loss, rel=1e-12)
    assert float(nt_xent(first, second[order], 0.1)) != pytest.approx(loss, rel=1e-3)


def test_nt_xent_of_two_sentences_by_hand() -> None:
    """Aligned views of two orthogonal sentences: logits 1, 0, 0 at τ 1, so log(e + 2) − 1."""
    axes = torch.eye(2, dtype=torch.float64)
    assert float(nt_xent(axes, axes, 1.0)) == pytest.approx(math.log(math.e + 2) - 1)


@pytest.fixture
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def consert(settings_of: Settings, **changed: Any) -> ConSERT:
    settings = settings_of(method="consert", **changed)
    assert isinstance(settings, ConSERTSettings)
    model = load_encoder(settings.encoder, settings.dropout).model
    return ConSERT(model, settings, choose_device(settings))


IDS = torch.tensor([[2, 7, 9, 12, 15, 3, 0], [2, 8, 3, 0, 0, 0, 0], [2, 30, 6, 21, 20, 11, 3]])
MASK = (IDS > 0).long()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reading", ["last2", "mean", "cls", "first-last"])
def test_the_fast_pass_and_transformers_perturb_alike(
    settings_of: Settings, monkeypatch: pytest.MonkeyPatch, kind: str, reading: str
) -> None:
    changed = {"first_perturbation": kind, "second_perturbation": "none", "pooling": reading}
    fast = consert(settings_of, **changed).encode([(IDS, MASK)])
    with monkeypatch.context() as patch:
        patch.setattr(pooling, "is_fast", lambda _model: False)
        plain = consert(settings_of, **changed).encode([(IDS, MASK)])
    for one, other in zip(fast, plain, strict=True):
        assert torch.allclose(one, other, atol=1e-5)
    assert not torch.allclose(fast[0], fast[1], atol=1e-3), "the view is not perturbed"


def test_the_hook_is_removed(settings_of: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pooling, "is_fast", lambda _model: False)
    method = consert(settings_of)
    before = method.keys(IDS, MASK)
    method.encode([(IDS, MASK)])
    assert torch.equal(method.keys(IDS, MASK), before)


def test_an_encoder_without_an_embedding_block_is_refused(settings_of: Settings) -> None:
    model: Any = load_encoder(settings_of().encoder, 0.0).model
    words = model.get_input_embeddings()(IDS)
    inner = torch.nn.Module()
    inner.config = model.config  # type: ignore[assignment]
    with pytest.raises(MtdlabError, match="has no embedding block"):
        encode(
            inner,  # type: ignore[arg-type]
            MASK,
            Representation("mean"),
            inputs_embeds=words,
            change=lambda embedded, _mask: embedded,
        )


def transcription(settings: ConSERTSettings) -> list[float]:
    """The losses of a slow program: hooks on the embedding block, explicit position ids, AdamW.

    The draws of a perturbation are repeated here from a generator with the same seed.
    """
    inputs = load_inputs(settings)
    model: Any = copy.deepcopy(inputs.encoder.model).double()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=settings.weight_decay)
    generator = torch.Generator().manual_seed(settings.seed + 3_000_017)
    losses = []
    batches = inputs.batches(settings.batch_size, settings.seed)
    for step in range(settings.steps):
        ((ids, mask),) = next(batches)

        def cut(_block: Any, _inputs: Any, out: Tensor) -> Tensor:
            out = out.clone()
            draws = torch.rand(len(out), 1, out.shape[2], generator=generator)
            for row in range(len(out)):
                chosen = draws[row, 0].argsort()[: int(0.2 * out.shape[2] + 1e-9)]
                out[row][:, chosen] = 0
            return out

        def pooled(output: Any, mask: Tensor = mask) -> Array | Tensor:
            states = output.hidden_states
            rows = []
            for row, count in enumerate(mask.sum(dim=1).tolist()):
                both = (states[-1][row, :count] + states[-2][row, :count]) / 2
                rows.append(both.mean(dim=0))
            return torch.stack(rows)

        # the shuffle is drawn before the passes, of each view in turn; the first has none
        hook = model.embeddings.register_forward_hook(cut)
        first = pooled(model(input_ids=ids, attention_mask=mask, output_hidden_states=True))
        hook.remove()
        draws = torch.rand(mask.shape, generator=generator)
        positions = torch.arange(mask.shape[1]).repeat(len(ids), 1)
        for row, count in enumerate(mask.sum(dim=1).tolist()):
            order = (draws[row, 1:count].argsort() + 1).tolist()
            for place, token in enumerate(order, 1):
                positions[row, token] = place
        second = pooled(
            model(
                input_ids=ids,
                attention_mask=mask,
                position_ids=positions,
                output_hidden_states=True,
            )
        )
        every = torch.cat([first, second])  # type: ignore[list-item]
        similarity = torch.nn.functional.cosine_similarity(
            every.unsqueeze(1), every.unsqueeze(0), dim=-1
        )
        total, count = torch.zeros(()), len(ids)
        for a in range(2 * count):
            others = [c for c in range(2 * count) if c != a]
            logits = similarity[a, others] / settings.temperature
            positive = similarity[a, (a + count) % (2 * count)] / settings.temperature
            total = total - positive + logits.exp().sum().log()
        loss = total / (2 * count)
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 - step / settings.steps)
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.usefixtures("double")
def test_training_is_its_transcription(settings_of: Settings) -> None:
    settings = settings_of(method="consert", steps=4, temperature=5e-3, evaluate_every=4)
    assert isinstance(settings, ConSERTSettings)
    found = load_inputs(settings)
    model = copy.deepcopy(found.encoder.model).double()
    inputs = dataclasses.replace(found, encoder=dataclasses.replace(found.encoder, model=model))
    losses = train(settings, inputs, lambda *_: None).curve["loss"].tolist()
    assert losses == pytest.approx(transcription(settings), rel=1e-6)


def test_a_cut_off_feature_is_zero_after_the_layer_norm(settings_of: Settings) -> None:
    seen: list[Tensor] = []
    method = consert(settings_of, first_perturbation="feature-cutoff:0.5")
    change = Perturbation(["feature-cutoff:0.5"], 0, torch.device("cpu"))

    def watched(embedded: Tensor, mask: Tensor) -> Tensor:
        seen.append(change(0, embedded, mask))
        return seen[-1]

    encode(method.encoder, MASK, Representation("last2"), input_ids=IDS, change=watched)
    real = seen[0][2]
    zero = (real == 0).all(dim=0)
    assert int(zero.sum()) == 8


def test_dropout_of_elements_keeps_the_mean() -> None:
    values = torch.ones(50, 20, 20)
    dropped = drop_elements(values, MASK, 0.25, torch.Generator().manual_seed(0))
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)


def test_the_defaults_are_the_published_ones() -> None:
    settings = make_settings(method="consert")
    assert isinstance(settings, ConSERTSettings)
    assert settings.representation == Representation("last2")
    assert (settings.first_perturbation, settings.second_perturbation) == (
        "feature-cutoff:0.2",
        "position-shuffle",
    )
    values = (settings.temperature, settings.batch_size, settings.max_length)
    assert values == (0.1, 96, 64)
    assert (settings.learning_rate, settings.dropout, settings.evaluate_every) == (5e-7, 0.0, 200)
    assert settings.mtd is None
    assert "feature-cutoff:0.2" in ConSERT.describe(settings)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"batch_size": 1}, "batch_size 1 leaves no negatives"),
        ({"first_perturbation": "typos:0.1"}, "choose from none, position-shuffle"),
        ({"second_perturbation": "dropout:1.5"}, "as in feature-cutoff:0.2"),
        ({"second_perturbation": "position-shuffle:0.2"}, "choose from none, position-shuffle"),
        (
            {"first_perturbation": "none", "second_perturbation": "none"},
            "make equal views",
        ),
    ],
    ids=str,
)
def test_settings_that_cannot_be_trained_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        make_settings(method="consert", **changed)
