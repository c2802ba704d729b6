"""Augmentation of the word embeddings. On in training only, never in evaluation.

Letters: N batch, L tokens, D dimension.
"""

import math

import torch
from torch import Tensor

from mtdlab.config.augmentation import EMBEDDING_LEVEL, Augmentation, parse_augmentation

OFFSET = 1_000_003
"""Between a run's seed and this stream's: torch's own with that seed made the heads."""


def sign_step(gradient: Tensor | None, epsilon: float) -> Tensor | None:
    """ε·sign(∇_x L), (N, L, D): how FGSM moves the word embeddings (MoCoSE, equation 1)."""
    if gradient is None or epsilon == 0:
        return None
    return torch.sign(gradient) * epsilon


def perturb(embeddings: Tensor, step: Tensor | None) -> Tensor:
    """Word embeddings (N, L, D) moved by an FGSM step, made as a rule on another batch.

    Batches are padded to their own longest sentence, so only the tokens that both have move.
    """
    if step is None:
        return embeddings
    length = min(step.shape[1], embeddings.shape[1])
    moved = embeddings[:, :length] + step[:, :length]
    return torch.cat([moved, embeddings[:, length:]], dim=1)


def changed_share(before: Tensor, after: Tensor) -> Tensor:
    """Share of entries that a perturbation changed, () in 0 to 1.

    A step below the numbers' own resolution changes none: an ε that did nothing shows here.
    """
    return (before != after).float().mean()


class EmbeddingNoise:
    """The augmentations of word embeddings that a setting names, in its order.

    Every call draws its own from a stream of the run's seed, so that two views differ.
    """

    def __init__(self, augmentation: str, seed: int, device: torch.device) -> None:
        parsed = parse_augmentation(augmentation)
        self._wanted = [each for each in parsed if each.name in EMBEDDING_LEVEL]
        self._generator = torch.Generator(device).manual_seed(seed + OFFSET)

    def __call__(self, words: Tensor, mask: Tensor) -> Tensor:
        """Word embeddings (N, L, D) under a mask (N, L), as one view sees them."""
        for augmentation in self._wanted:
            words = _augmented(augmentation, words, mask, self._generator)
        return words


def _augmented(
    augmentation: Augmentation, words: Tensor, mask: Tensor, generator: torch.Generator
) -> Tensor:
    if augmentation.name == "position-shuffle":
        return shuffle_positions(words, mask, generator)
    share = augmentation.share or 0.0
    if augmentation.name == "token-cutoff":
        return cut_tokens(words, mask, share, generator)
    return cut_features(words, mask, share, generator)


def shuffle_positions(words: Tensor, mask: Tensor, generator: torch.Generator) -> Tensor:
    """Each sentence's real tokens but [CLS] in another order; positions are added afterwards."""
    order = _movable(mask, generator)
    places = torch.arange(mask.shape[1], device=mask.device)
    # [CLS] before every draw, padding behind them in its own order
    order = torch.where(torch.isfinite(order), order, 1.0 + places)
    order[:, 0] = -1
    return words.gather(1, order.argsort(dim=1).unsqueeze(-1).expand_as(words))


def cut_tokens(words: Tensor, mask: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """⌊share · n⌋ of each sentence's n real tokens zero, drawn among all but [CLS]."""
    rank = _movable(mask, generator).argsort(dim=1).argsort(dim=1)
    count = (mask.sum(dim=1) * share).floor()
    count = torch.minimum(count, mask.sum(dim=1) - 1).unsqueeze(1)
    return words * (rank >= count).unsqueeze(-1)


def cut_features(words: Tensor, mask: Tensor, share: float, generator: torch.Generator) -> Tensor:
    """⌊share · D⌋ dimensions of each sentence zero at all of its real tokens."""
    count, _, dimension = words.shape
    draws = torch.rand(count, 1, dimension, generator=generator, device=words.device)
    cut = draws.argsort(dim=2).argsort(dim=2) < math.floor(share * dimension + 1e-9)
    return words * ~(cut & mask.bool().unsqueeze(-1))


def _movable(mask: Tensor, generator: torch.Generator) -> Tensor:
    """(N, L): a draw in 0 to 1 for every real token but [CLS], infinity elsewhere."""
    draws = torch.rand(mask.shape, generator=generator, device=mask.device)
    draws[:, 0] = torch.inf
    return draws.masked_fill(mask == 0, torch.inf)
