"""Random changes of word embeddings, applied in training only.

Letters: N batch, L tokens, D dimension.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from mtdlab.encoders.pooling import position_embeddings
from mtdlab.methods.base import Tokens, Transformer
from mtdlab.settings import TrainerSettings
from mtdlab.settings.augmentation import SHUFFLE, parse_augmentation


class RandomDraws(nn.Module):
    """A module with a random generator of its own, so that a resumed run draws the same numbers.

    The draws of other modules do not depend on how many it makes.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        super().__init__()
        self._generator = torch.Generator(device).manual_seed(seed)

    def uniform(self, like: Tensor) -> Tensor:
        """Uniform draws in [0, 1) in float64, of the shape and device of `like`."""
        return torch.rand(
            like.shape, generator=self._generator, device=like.device, dtype=torch.float64
        )

    def get_extra_state(self) -> Tensor:
        return self._generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        self._generator.set_state(state.cpu())


OFFSET = 1_000_003
"""Added to a run's seed, because the heads are initialised from a generator with that seed."""


class Fgsm(nn.Module):
    """Adds ε·sign(∇_x L) to word embeddings (fast gradient sign method; MoCoSE, equation 1).

    By default the gradient is that of the previous batch, which needs no extra pass. It is part of
    the state dict, so that a resumed run is identical.
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gradient: Tensor | None = None
        self._retained: Tensor | None = None

    def forward(self, words: Tensor) -> Tensor:
        """Word embeddings (N, L, D), perturbed at the tokens that both batches have; L differs."""
        if self.gradient is None or self.epsilon == 0:
            return words
        step = torch.sign(self.gradient) * self.epsilon
        length = min(step.shape[1], words.shape[1])
        return torch.cat([words[:, :length] + step[:, :length], words[:, length:]], dim=1)

    def retain(self, words: Tensor) -> None:
        """Retain the next gradient of word embeddings (N, L, D), also of a frozen table."""
        if self.epsilon:
            words.requires_grad_().retain_grad()
            self._retained = words

    def keep_gradient(self) -> None:
        """Use the retained gradient in the next step; called after the backward pass."""
        if self._retained is not None:
            self.gradient, self._retained = self._retained.grad, None

    def get_extra_state(self) -> Tensor:
        """The gradient, for the state dict; empty if there is none."""
        return torch.empty(0) if self.gradient is None else self.gradient

    def set_extra_state(self, state: Tensor) -> None:
        self.gradient = state.clone() if state.numel() else None


class EmbeddingNoise(RandomDraws):
    """Applies the setting `augmentation` to word embeddings, each time with new random draws."""

    def __init__(
        self, settings: TrainerSettings, encoder: Transformer, device: torch.device
    ) -> None:
        super().__init__(settings.seed + OFFSET, device)
        parsed = parse_augmentation(settings.augmentation)
        self._wanted = [(one.name, one.share or 0.0) for one in parsed if one.name in CHANGES]
        self._published = settings.augmentation_draw == "published-code"
        self._most = settings.max_length
        # no submodule: the encoder's state is not part of this one's
        self._encoder = (encoder,)

    def forward(self, words: Tensor, mask: Tensor) -> Tensor:
        """Augmented word embeddings (N, L, D) of one view, under a mask (N, L)."""
        for name, share in self._wanted:
            if self._published:
                words = self._augment_as_published(name, share, words)
            else:
                words = CHANGES[name](words, mask, self._generator, share)
        return words

    def _augment_as_published(self, name: str, share: float, words: Tensor) -> Tensor:
        """Augment as MoCoSE's program, which pads to `max_length` positions and changes all."""
        count, length, dimension = words.shape
        if name == SHUFFLE:
            table = position_embeddings(*self._encoder)
            places = min(max(self._most, length), len(table))
            draws = torch.rand(places, generator=self._generator, device=words.device)
            # the encoder adds the embeddings of the first L positions itself
            return words + table[draws.argsort()[:length]] - table[:length]
        if name == "token-cutoff":
            cut = self._choose(count, max(self._most, length), share)[:, :length]
            return words * ~cut.unsqueeze(-1)
        return words * ~self._choose(count, dimension, share).unsqueeze(1)

    def _choose(self, rows: int, total: int, share: float) -> Tensor:
        """A mask (N, total) with ⌊share · total⌋ true elements in each row, but at least one."""
        draws = torch.rand(rows, total, generator=self._generator, device=self._generator.device)
        return draws.argsort(dim=1).argsort(dim=1) < max(1, int(share * total))


def shuffle_positions(
    words: Tensor, mask: Tensor, generator: torch.Generator, _share: float = 0.0
) -> Tensor:
    """Permute each sentence's real tokens except [CLS]; positions are added afterwards."""
    order = _movable(mask, generator)
    places = torch.arange(mask.shape[1], device=mask.device)
    # [CLS] first, then the drawn order, then padding unchanged
    order = torch.where(torch.isfinite(order), order, 1.0 + places)
    order[:, 0] = -1
    return words.gather(1, order.argsort(dim=1).unsqueeze(-1).expand_as(words))


def cut_tokens(words: Tensor, mask: Tensor, generator: torch.Generator, share: float) -> Tensor:
    """Set ⌊share · n⌋ of each sentence's n real tokens to zero, drawn among all except [CLS]."""
    rank = _movable(mask, generator).argsort(dim=1).argsort(dim=1)
    count = (mask.sum(dim=1) * share).floor()
    count = torch.minimum(count, mask.sum(dim=1) - 1).unsqueeze(1)
    return words * (rank >= count).unsqueeze(-1)


def cut_features(words: Tensor, mask: Tensor, generator: torch.Generator, share: float) -> Tensor:
    """Set ⌊share · D⌋ dimensions of each sentence to zero at all of its real tokens."""
    count, _, dimension = words.shape
    draws = torch.rand(count, 1, dimension, generator=generator, device=words.device)
    cut = draws.argsort(dim=2).argsort(dim=2) < math.floor(share * dimension + 1e-9)
    return words * ~(cut & mask.bool().unsqueeze(-1))


CHANGES: dict[str, Callable[[Tensor, Tensor, torch.Generator, float], Tensor]] = {
    SHUFFLE: shuffle_positions,
    "token-cutoff": cut_tokens,
    "feature-cutoff": cut_features,
}
"""The changes of embeddings (N, L, D) under a mask (N, L) by a share, by their names."""


def _movable(mask: Tensor, generator: torch.Generator) -> Tensor:
    """Uniform draws (N, L) for real tokens except [CLS]; infinity elsewhere."""
    draws = torch.rand(mask.shape, generator=generator, device=mask.device)
    draws[:, 0] = torch.inf
    return draws.masked_fill(mask == 0, torch.inf)


def repeat_tokens(ids: Tensor, times: Tensor) -> Tokens:
    """Ids and mask (N, L'), each of the ids (N, L) as often as `times` (N, L) states, in order."""
    counts = times.sum(dim=1, keepdim=True)
    mask = torch.arange(int(counts.max()), device=ids.device) < counts
    result = ids.new_zeros(mask.shape)
    result[mask] = ids.flatten().repeat_interleave(times.flatten())
    return result, mask.to(times.dtype)
