"""FGSM and augmentation of word embeddings, compared with values by hand."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from mtdlab.methods.perturbations import (
    OFFSET,
    EmbeddingNoise,
    Fgsm,
    cut_features,
    cut_tokens,
    shuffle_positions,
)
from mtdlab.methods.registry import make_settings


def moved_by(words: Tensor, gradient: Tensor | None, epsilon: float) -> Tensor:
    fgsm = Fgsm(epsilon)
    fgsm.gradient = gradient
    moved: Tensor = fgsm(words)
    return moved


def test_a_step_goes_along_the_sign_of_the_gradient() -> None:
    gradient = torch.tensor([[[0.3, -1e-20, 0.0]]])
    assert moved_by(torch.zeros(1, 1, 3), gradient, 0.5).tolist() == [[[0.5, -0.5, 0.0]]]


def test_without_gradient_or_epsilon_the_embeddings_are_unchanged() -> None:
    words = torch.randn(2, 3, 4)
    assert moved_by(words, None, 0.5) is words
    assert moved_by(words, torch.ones(2, 3, 4), 0) is words


def test_the_gradient_of_a_batch_moves_the_next() -> None:
    fgsm, words = Fgsm(0.5), torch.ones(1, 2, 2, requires_grad=True)
    embedded = fgsm(words * 1.0)
    fgsm.retain(embedded)
    (embedded * torch.tensor([1.0, -2.0])).sum().backward()
    assert fgsm.gradient is None
    fgsm.keep_gradient()
    assert fgsm(torch.zeros(1, 2, 2)).tolist() == [[[0.5, -0.5], [0.5, -0.5]]]
    fgsm.keep_gradient()
    assert fgsm.gradient is not None, "without a retained batch the gradient is kept"


@pytest.mark.parametrize(("length", "of_step"), [(3, 3), (3, 2), (2, 3), (1, 5)])
def test_only_tokens_that_both_batches_have_are_moved(length: int, of_step: int) -> None:
    words, step = torch.randn(2, length, 4), torch.randn(2, of_step, 4).sign()
    moved = moved_by(words, step, 1.0)
    assert moved.shape == words.shape
    for row in range(2):
        for token in range(length):
            expected = words[row, token]
            if token < of_step:
                expected = expected + step[row, token]
            assert torch.equal(moved[row, token], expected)


def test_the_gradient_goes_through_to_the_clean_embeddings() -> None:
    words = torch.randn(2, 3, 4, requires_grad=True)
    moved_by(words, torch.ones(2, 2, 4), 1.0).sum().backward()
    assert words.grad is not None
    assert torch.equal(words.grad, torch.ones(2, 3, 4))


@pytest.mark.parametrize(
    ("tokens", "epsilon", "share"), [(2, 0.1, 0.5), (4, 5e-9, 1), (4, 1e-9, 0), (0, 0.1, 0)]
)
def test_the_share_that_a_step_changed(tokens: int, epsilon: float, share: float) -> None:
    """None where ε is below the resolution: the spacing of float32 near 0.04 is 3.7e-9."""
    words = torch.full((1, 4, 8), 0.04)
    moved = moved_by(words, torch.ones(1, tokens, 8), epsilon)
    assert float((words != moved).float().mean()) == share


LENGTHS = (10, 7, 2, 1)
MASK = torch.tensor([[1] * length + [0] * (10 - length) for length in LENGTHS])


def numbered() -> Tensor:
    """Word embeddings (4, 10, 20) with distinct values, none of them 0."""
    return torch.arange(1.0, 4 * 10 * 20 + 1).view(4, 10, 20)


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("seed", range(5))
def test_a_shuffle_moves_whole_tokens_and_neither_cls_nor_padding(seed: int) -> None:
    words = numbered()
    shuffled = shuffle_positions(words, MASK, stream(seed))
    for row, length in enumerate(LENGTHS):
        assert torch.equal(shuffled[row, 0], words[row, 0])
        assert torch.equal(shuffled[row, length:], words[row, length:])
        moved = sorted(shuffled[row, 1:length].tolist())
        assert moved == words[row, 1:length].tolist()
    assert not torch.equal(shuffled[0], words[0])
    orders = [shuffled[row, 1:7, 0] - words[row, 0, 0] for row in (0, 1)]
    assert not torch.equal(*orders)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("share", "counts"),
    [(0.3, (3, 2, 0, 0)), (0.15, (1, 1, 0, 0)), (0.5, (5, 3, 1, 0)), (0.99, (9, 6, 1, 0))],
)
def test_a_token_cut_off_zeroes_a_share_of_each_sentence(
    seed: int, share: float, counts: tuple[int, ...]
) -> None:
    words = numbered()
    cut = cut_tokens(words, MASK, stream(seed), share)
    gone = (cut == 0).all(dim=2)
    assert gone.sum(dim=1).tolist() == list(counts)
    assert not gone[:, 0].any()
    assert not (gone & (MASK == 0)).any()
    assert torch.equal(cut[~gone], words[~gone])


@pytest.mark.parametrize(("share", "count"), [(0.1, 2), (0.04, 0), (0.5, 10), (0.99, 19)])
def test_a_feature_cut_off_zeroes_the_same_dimensions_along_a_sentence(
    share: float, count: int
) -> None:
    words = numbered()
    cut = cut_features(words, MASK, stream(), share)
    dimensions = []
    for row, length in enumerate(LENGTHS):
        gone = cut[row, :length] == 0
        assert gone[0].sum() == count
        assert (gone == gone[0]).all()
        assert torch.equal(cut[row, :length][~gone], words[row, :length][~gone])
        assert torch.equal(cut[row, length:], words[row, length:])
        dimensions.append(tuple(gone[0].tolist()))
    assert len(set(dimensions)) == (1 if count == 0 else 4)


def test_every_token_and_dimension_is_drawn_eventually() -> None:
    words, draws = numbered(), stream()
    tokens = sum((cut_tokens(words, MASK, draws, 0.3)[0, :, 0] == 0).float() for _ in range(600))
    assert isinstance(tokens, Tensor)
    assert tokens[0] == 0
    assert torch.allclose(tokens[1:] / 600, torch.full((9,), 1 / 3), atol=0.08)
    features = sum((cut_features(words, MASK, draws, 0.3)[0, 0] == 0).float() for _ in range(600))
    assert isinstance(features, Tensor)
    assert torch.allclose(features / 600, torch.full((20,), 0.3), atol=0.08)


def noise_of(augmentation: str, **settings: Any) -> EmbeddingNoise:
    """For a BERT of 16 positions and 20 dimensions."""
    config = BertConfig(
        vocab_size=9, hidden_size=20, num_hidden_layers=0, max_position_embeddings=16
    )
    made = make_settings(augmentation=augmentation, **settings)
    return EmbeddingNoise(made, BertModel(config), torch.device("cpu"))


def test_views_differ_and_the_same_seed_gives_the_same_draws() -> None:
    words = numbered()
    every = "position-shuffle+token-cutoff:0.3+feature-cutoff:0.1"
    noise = noise_of(every, seed=3)
    first, second = noise(words, MASK), noise(words, MASK)
    assert not torch.equal(first, second)
    assert torch.equal(noise_of(every, seed=3)(words, MASK), first)
    draws = stream(3 + OFFSET)
    by_hand = shuffle_positions(words, MASK, draws)
    by_hand = cut_features(cut_tokens(by_hand, MASK, draws, 0.3), MASK, draws, 0.1)
    assert torch.equal(first, by_hand)


@pytest.mark.parametrize("augmentation", ["none", "typos:0.1"])
def test_without_such_augmentations_words_are_unchanged(augmentation: str) -> None:
    words = numbered()
    assert noise_of(augmentation)(words, MASK) is words


def test_the_published_cut_offs_take_one_at_least_of_all_positions() -> None:
    """Of 32 positions, of which these rows have 10: [CLS] and padding are cut too."""
    words = torch.ones(4000, 10, 20)
    mask = torch.ones(4000, 10, dtype=torch.long)
    cut = noise_of("token-cutoff:0.25", augmentation_draw="published-code")(words, mask) == 0
    assert torch.equal(cut, cut[:, :, :1].expand_as(cut))
    assert torch.allclose(cut[:, :, 0].float().mean(dim=0), torch.full((10,), 0.25), atol=0.04)
    for augmentation, dimension in (("token-cutoff:0.001", 1), ("feature-cutoff:0.001", 2)):
        noise = noise_of(augmentation, augmentation_draw="published-code", max_length=10)
        assert ((noise(words, mask) == 0).any(dim=3 - dimension).sum(dim=1) == 1).all()


def test_the_published_shuffle_is_one_permutation_of_positions_for_a_batch() -> None:
    noise = noise_of("position-shuffle", augmentation_draw="published-code", max_length=12)
    [encoder] = noise._encoder
    words = numbered()
    with torch.no_grad():
        table = encoder.embeddings.position_embeddings.weight
        placed = noise(words, MASK) - words + table[: words.shape[1]]
    assert torch.allclose(placed, placed[:1].expand_as(placed), atol=1e-4)
    found = torch.cdist(placed[0], table).argmin(dim=1).tolist()
    assert len({*found}) == words.shape[1]
    assert max(found) < 12
    assert torch.allclose(placed[0], table[found], atol=1e-4)


def test_gradients_reach_the_entries_that_were_not_cut() -> None:
    words = numbered().requires_grad_()
    cut = cut_tokens(words, MASK, stream(), 0.5)
    cut.sum().backward()
    assert words.grad is not None
    assert torch.equal(words.grad, (cut != 0).float())
