"""The fast forward pass compared with transformers, and dropout with its definition."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertModel,
    PreTrainedModel,
    RobertaConfig,
    RobertaModel,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from mtdlab.encoders.dropout import Dropout
from mtdlab.encoders.fast import Packing, all_tokens, first_tokens, first_tokens_of_ids, is_fast

NONE = Dropout(0.0, 0)


def model_of(family: str = "bert", **changed: object) -> PreTrainedModel:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {
        "vocab_size": 90,
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 3,
        "intermediate_size": 40,
        "max_position_embeddings": 42,
    }
    config, model = {
        "bert": (BertConfig, BertModel),
        "roberta": (RobertaConfig, RobertaModel),
        "xlm-roberta": (XLMRobertaConfig, XLMRobertaModel),
    }[family]
    return model(config(**sizes | changed), add_pooling_layer=False).eval()


def mask_of(lengths: list[int]) -> Tensor:
    return (torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)).long()


def outputs_and_gradients(model: Any, mask: Tensor, read: object) -> list[Tensor]:
    """The result of `read`, and its gradients with respect to the words and every parameter."""
    model.zero_grad()
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 90, mask.shape, generator=generator)
    words = model.embeddings.word_embeddings(ids)
    words.retain_grad()
    out = read(words)  # type: ignore[operator]
    (out * torch.arange(out.numel()).view(out.shape).sin()).sum().backward()
    own = [one.grad for name, one in model.named_parameters() if not name.endswith("key.bias")]
    return [out.detach(), words.grad, *own]  # type: ignore[list-item]


LENGTHS = [[7, 3, 12, 1, 9], [5], [40, 2], [6] * 30, [1, 1]]


@pytest.mark.parametrize("whole", [False, True], ids=["first token", "all tokens"])
@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_tokens_are_those_of_transformers(lengths: list[int], family: str, whole: bool) -> None:
    model, mask = model_of(family), mask_of(lengths)

    def read_plainly(words: Tensor) -> Tensor:
        hidden = model(inputs_embeds=words, attention_mask=mask).last_hidden_state
        return hidden * mask.unsqueeze(-1) if whole else hidden[:, 0]

    def read_fast(words: Tensor) -> Tensor:
        if whole:
            return all_tokens(model, words, mask, NONE)[0] * mask.unsqueeze(-1)
        return first_tokens(model, words, mask, NONE)

    plain, fast = (outputs_and_gradients(model, mask, read) for read in (read_plainly, read_fast))
    assert torch.allclose(fast[0], plain[0], atol=1e-5)
    for one, other in zip(fast[1:], plain[1:], strict=True):
        assert float((one - other).abs().max()) <= 1e-5 * float(other.abs().max()) + 1e-9


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@torch.no_grad()
def test_first_tokens_of_ids_are_those_of_words(
    lengths: list[int], family: str, layers: int
) -> None:
    model, mask = model_of(family, num_hidden_layers=layers), mask_of(lengths)
    # biases are 0 in a new model; few different tokens, so that many rows are equal
    for parameter in model.parameters():
        parameter += 0.05 * torch.randn_like(parameter)
    ids = torch.randint(5, 9, mask.shape)
    words = model.get_input_embeddings()(ids)
    expected = first_tokens(model, words, mask, NONE)
    assert torch.allclose(first_tokens_of_ids(model, ids, mask), expected, atol=1e-5)


def test_bfloat16_gives_nearly_the_same_direction() -> None:
    model, mask = model_of(), mask_of([7, 3, 12, 9])
    words = torch.randn(4, 12, 24, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        exact = first_tokens(model, words, mask, NONE)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = first_tokens(model, words, mask, NONE).float()
    assert float(torch.cosine_similarity(exact, rounded).min()) > 0.9999


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
def test_packing_keeps_every_real_token_once(lengths: list[int]) -> None:
    mask = mask_of(lengths)
    packing = Packing.of(mask, 3)
    grid = torch.arange(mask.numel(), dtype=torch.float32).view(*mask.shape, 1)
    packed = packing.pack(grid)
    assert len(packing.rows.unique()) == len(packing.rows)
    assert packed[: sum(lengths), 0].tolist() == grid[mask.bool()].flatten().tolist()
    assert packed[packing.first, 0].tolist() == grid[:, 0, 0].tolist()
    assert len(packed) % 64 == 0 or len(packed) == mask.numel()
    assert torch.equal(packing.pad(packed)[mask.bool()], grid[mask.bool()])


def test_other_architectures_use_transformers() -> None:
    assert all(is_fast(model_of(family)) for family in ("bert", "roberta", "xlm-roberta"))
    assert not is_fast(model_of(hidden_act="relu"))


def test_dropout_has_its_rate_and_keeps_the_mean() -> None:
    for rate in (0.1, 0.5, 1 / 3):
        dropped = Dropout(rate, 0)(torch.ones(1_000_000))
        share = float((dropped == 0).double().mean())
        # five standard errors of a share over 10^6 draws
        assert share == pytest.approx(rate, abs=5 * (rate * (1 - rate) / 1e6) ** 0.5)
        assert dropped.max() == pytest.approx(1 / (1 - rate))


def test_the_threshold_is_exact_between_two_levels() -> None:
    """A rate of 0.3 levels: single masks have 0 or 1 levels, the mean over many is the rate."""
    dropout = Dropout(0.3 / 65536, 0)
    shares = [float((dropout(torch.ones(65536)) == 0).double().sum()) for _ in range(400)]
    assert sum(shares) / 400 == pytest.approx(0.3, abs=5 * (1.2 * 0.3 / 400) ** 0.5)


def test_masks_are_independent_of_each_other_and_repeat_by_seed() -> None:
    first, again = Dropout(0.5, 7), Dropout(0.5, 7)
    one, two = first(torch.ones(4, 50_000)), first(torch.ones(4, 50_000))
    assert torch.equal(one, again(torch.ones(4, 50_000)))
    table = torch.stack([*one, *two]).sub(1)
    products = (table @ table.T / 50_000).fill_diagonal_(0)
    assert products.abs().max() < 5 / 50_000**0.5
    assert not torch.equal(one, Dropout(0.5, 8)(torch.ones(4, 50_000)))


def test_dropout_of_a_gradient_is_that_of_the_value() -> None:
    values = torch.randn(3, 5).requires_grad_()
    residual = torch.zeros(3, 5)
    out = Dropout(0.5, 0).add(values, residual)
    out.sum().backward()
    assert torch.equal(values.grad, (out.detach() != 0) * 2.0)


def test_a_restored_dropout_generator_continues_identically() -> None:
    stream = Dropout(0.5, 3)
    stream(torch.ones(1000))
    later = Dropout(0.5, 99)
    later.load_state_dict(stream.state_dict())
    expected = [stream(torch.ones(1000)) for _ in range(2)]
    assert all(torch.equal(later(torch.ones(1000)), one) for one in expected)


def test_values_that_are_not_finite_do_not_reach_other_sentences() -> None:
    model, mask = model_of(), mask_of([7, 3] + [12] * 20)
    words = torch.randn(22, 12, 24, generator=torch.Generator().manual_seed(0))
    words[1, 2] = torch.nan
    with torch.no_grad():
        for vectors in (
            first_tokens(model, words, mask, NONE),
            (all_tokens(model, words, mask, NONE)[0] * mask.unsqueeze(-1)).sum(dim=1),
        ):
            broken = (~vectors.isfinite()).any(dim=1)
            assert broken.nonzero().flatten().tolist() == [1]
