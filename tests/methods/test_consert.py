"""ConSERT compared with its formula and with a slow transcription; its perturbations."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from mtdlab.device import choose_device
from mtdlab.encoders import pooling
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.pooling import encode
from mtdlab.errors import MtdlabError
from mtdlab.methods.consert import ConSERT, Perturbation, drop_elements, nt_xent
from mtdlab.settings import Representation
from tests.conftest import Settings
from tests.methods.oracles import draw, info_nce

IDS = torch.tensor([[2, 7, 9, 12, 15, 3, 0], [2, 8, 3, 0, 0, 0, 0], [2, 30, 6, 21, 20, 11, 3]])
MASK = (IDS > 0).long()
KINDS = ["token-cutoff:0.4", "feature-cutoff:0.2", "dropout:0.3", "position-shuffle"]


@pytest.mark.parametrize(("count", "temperature"), [(2, 1.0), (3, 0.1), (9, 0.05)])
def test_nt_xent_is_its_formula(count: int, temperature: float) -> None:
    """Of 2N vectors, each has one positive and 2N - 2 negatives."""
    first, second = draw(count, 5), draw(count, 5, seed=1)
    every, slow = [*first.numpy(), *second.numpy()], 0.0
    for a, vector in enumerate(every):
        b = (a + count) % len(every)
        negatives = [other for c, other in enumerate(every) if c not in (a, b)]
        slow += info_nce([vector], [every[b]], negatives, temperature) / len(every)
    assert float(nt_xent(first, second, temperature)) == pytest.approx(slow, rel=1e-10)


def test_nt_xent_of_two_sentences_by_hand() -> None:
    """Aligned views of two orthogonal sentences: logits 1, 0, 0 at τ 1, so log(e + 2) − 1."""
    axes = torch.eye(2, dtype=torch.float64)
    assert float(nt_xent(axes, axes, 1.0)) == pytest.approx(math.log(math.e + 2) - 1)


def consert(settings_of: Settings, **changed: Any) -> ConSERT:
    settings: Any = settings_of(method="consert", **changed)
    model = load_encoder(settings.encoder, settings.dropout).model
    return ConSERT(model, settings, choose_device(settings))


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


def test_a_cut_off_feature_is_zero_after_the_layer_norm(settings_of: Settings) -> None:
    seen: list[Tensor] = []
    method = consert(settings_of, first_perturbation="feature-cutoff:0.5")
    change = Perturbation(method.settings, torch.device("cpu"))

    def watched(embedded: Tensor, mask: Tensor) -> Tensor:
        seen.append(change(0, embedded, mask))
        return seen[-1]

    embedded = method.encoder.get_input_embeddings()(IDS)
    encode(method.encoder, MASK, Representation("last2"), inputs_embeds=embedded, change=watched)
    real = seen[0][2]
    zero = (real == 0).all(dim=0)
    assert int(zero.sum()) == 8


def test_dropout_of_elements_keeps_the_mean() -> None:
    values = torch.ones(50, 20, 20)
    dropped = drop_elements(values, MASK, torch.Generator().manual_seed(0), 0.25)
    assert dropped.unique().tolist() == pytest.approx([0, 4 / 3])
    assert float(dropped.mean()) == pytest.approx(1, abs=0.02)
