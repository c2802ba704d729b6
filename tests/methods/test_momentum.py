"""The moving average, and the parameters that both branches share."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel

from mtdlab.encoders.dropout import NO_DROPOUT
from mtdlab.methods.heads import Branch, embedding_block
from mtdlab.methods.momentum import averaged_pairs, ema_update, make_target
from mtdlab.methods.registry import make_settings
from tests.branches import branch_of


@pytest.fixture
def online() -> Branch:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=16,
    )
    return branch_of(BertModel(config, add_pooling_layer=False), make_settings())


@pytest.fixture
def target(online: Branch) -> nn.Module:
    return make_target(online, shared=embedding_block(online.encoder))


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.85, 0.99, 1.0])
def test_the_gap_to_a_constant_shrinks_by_the_decay(decay: float) -> None:
    mine, theirs = [torch.zeros(3, 2), torch.ones(4)], [torch.full((3, 2), 2.0), torch.zeros(4)]
    gaps = [(one - other).clone() for one, other in zip(mine, theirs, strict=True)]
    for _ in range(7):
        ema_update(mine, theirs, decay)
    for one, other, gap in zip(mine, theirs, gaps, strict=True):
        assert torch.allclose(one - other, decay**7 * gap, atol=1e-6)
    assert torch.equal(theirs[0], torch.full((3, 2), 2.0))


@pytest.mark.parametrize("decay", [-0.01, 1.01, float("nan")])
@pytest.mark.parametrize("count", [0, 1])
def test_a_decay_outside_0_to_1_is_refused(decay: float, count: int) -> None:
    mine, theirs = [torch.zeros(1)] * count, [torch.ones(1)] * count
    ema_update(mine, theirs, 0.5)
    with pytest.raises(ValueError, match="must lie in 0 to 1"):
        ema_update(mine, theirs, decay)


def test_both_branches_share_the_embedding_block(online: Branch, target: Branch) -> None:
    assert target.encoder.embeddings is online.encoder.embeddings
    assert target.encoder.get_input_embeddings() is online.encoder.get_input_embeddings()
    shared = {id(parameter) for parameter in embedding_block(online.encoder).parameters()}
    assert all(
        (id(mine) in shared) == name.startswith("encoder.embeddings.")
        for name, mine in target.named_parameters()
    )


def test_the_shared_part_is_not_averaged(online: Branch, target: Branch) -> None:
    mine, theirs = averaged_pairs(target, online)
    everything = dict(online.named_parameters())
    own = [name for name in everything if not name.startswith("encoder.embeddings.")]
    assert len(mine) == len(theirs) == len(own)
    assert 0 < len(own) < len(everything)
    table = online.encoder.get_input_embeddings().get_parameter("weight")
    before = table.detach().clone()
    ema_update(mine, [torch.full_like(one, 5.0) for one in theirs], 0.5)
    assert torch.equal(table, before)


def test_the_average_updates_all_weights_that_are_not_shared(
    online: Branch, target: Branch
) -> None:
    averaged = averaged_pairs(target, online)
    before = target.pooler.weight.detach().clone()
    with torch.no_grad():
        online.pooler.weight += 1
    ema_update(*averaged, 0.75)
    assert torch.allclose(target.pooler.weight, before + 0.25)
    assert not torch.equal(target.pooler.weight, online.pooler.weight)


def test_the_target_begins_as_a_copy(online: Branch, target: nn.Module) -> None:
    online.eval(), target.eval()
    words, mask = torch.randn(2, 5, 16), torch.ones(2, 5, dtype=torch.long)
    assert torch.equal(online(words, mask, NO_DROPOUT), target(words, mask, NO_DROPOUT))


def test_the_target_takes_no_gradient(online: Branch, target: Branch) -> None:
    embeddings = {id(parameter) for parameter in embedding_block(online.encoder).parameters()}
    for parameter in target.parameters():
        assert parameter.requires_grad == (id(parameter) in embeddings)
    assert all(parameter.requires_grad for parameter in online.parameters())
    mask = torch.ones(2, 5, dtype=torch.long)
    target(torch.randn(2, 5, 16), mask, NO_DROPOUT).sum().backward()
    own = [one for one in target.parameters() if id(one) not in embeddings]
    assert own
    assert all(one.grad is None for one in own)
