"""Augmentation of the word embeddings. On in training only, never in evaluation.

Letters: N batch, L tokens, D dimension.
"""

import math

import torch
from torch import Tensor, nn

from mtdlab.settings.augmentation import EMBEDDING_LEVEL, Augmentation, parse_augmentation

OFFSET = 1_000_003
"""Added to a run's seed for this stream: torch's generator with that seed made the heads."""


class Fgsm(nn.Module):
    """Moves word embeddings by ε·sign(∇_x L) (MoCoSE, equation 1).

    The gradient is as a rule that of the previous batch, which costs nothing extra; it is part of
    the state, so that a resumed run takes the same step.
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gradient: Tensor | None = None
        self._watched: Tensor | None = None

    def forward(self, words: Tensor) -> Tensor:
        """Word embeddings (N, L, D) moved by the step, where there is a gradient.

        Batches are padded to their own longest sentence, so only the tokens that both have move.
        """
        if self.gradient is None or self.epsilon == 0:
            return words
        step = torch.sign(self.gradient) * self.epsilon
        length = min(step.shape[1], words.shape[1])
        return torch.cat([words[:, :length] + step[:, :length], words[:, length:]], dim=1)

    def watch(self, words: Tensor) -> None:
        """Have the backward pass leave its gradient of these word embeddings (N, L, D)."""
        if self.epsilon:
            words.retain_grad()
            self._watched = words

    def keep_gradient(self) -> None:
        """After the backward pass: the watched gradient is that of the next step."""
        if self._watched is not None:
            self.gradient, self._watched = self._watched.grad, None

    def get_extra_state(self) -> Tensor:
        """The gradient, for the state dict; without elements where there is none."""
        return torch.empty(0) if self.gradient is None else self.gradient

    def set_extra_state(self, state: Tensor) -> None:
        """Take the gradient back from a state dict."""
        self.gradient = state.clone() if state.numel() else None


def changed_share(before: Tensor, after: Tensor) -> Tensor:
    """Share of entries that a perturbation changed, () in 0 to 1.

    A step below the numbers' own resolution changes none: an ε that did nothing shows here.
    """
    return (before != after).float().mean()


class EmbeddingNoise(nn.Module):
    """The augmentations of word embeddings that a setting names, in its order.

    Every call draws from a random stream of its own, so that two views differ. The position in
    the stream is part of the state.
    """

    def __init__(self, augmentation: str, seed: int, device: torch.device) -> None:
        super().__init__()
        parsed = parse_augmentation(augmentation)
        self._wanted = [each for each in parsed if each.name in EMBEDDING_LEVEL]
        self._generator = torch.Generator(device).manual_seed(seed + OFFSET)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Word embeddings (N, L, D) under a mask (N, L), as one view sees them."""
        for augmentation in self._wanted:
            words = _augmented(augmentation, words, mask, self._generator)
        return words

    def get_extra_state(self) -> Tensor:
        """The generator's state, for the state dict."""
        return self._generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Continue the stream where a state dict was written."""
        self._generator.set_state(state.cpu())


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
