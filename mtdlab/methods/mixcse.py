"""MixCSE (Zhang et al., AAAI 2022): SimCSE with hard negatives mixed from positives and negatives.

In addition to SimCSE's in-batch negatives, each sentence has a mixed negative: a weighted mean of
its positive (λ) and of the vector of another sentence (1 − λ), the next one of the batch, whose
order is random. No gradient passes through it unless `stop_gradient` is false;
docs/methods/mixcse.md has the reason.

Letters: N batch, D dimension.
"""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mtdlab.methods.losses import at_least_float32, cosines, unit
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.simcse import SimCSESettings, TwoPass
from mtdlab.settings import costless, setting


class MixCSESettings(SimCSESettings):
    """The settings of SimCSE, and those of mixed negatives."""

    presets = PRESETS["mixcse"]

    mixing: Literal["paper", "published-code"] = setting(
        "paper",
        "mixed negatives of a sentence: `paper`: one, of normalised vectors; `published-code`: "
        "those of all sentences, in both directions, of vectors that are not normalised",
    )
    mixing_weight: float = costless(
        0.2, "weight of a sentence's positive in its mixed negative", symbol="λ", ge=0, lt=1
    )
    stop_gradient: bool = setting(
        True, "whether no gradient passes through mixed negatives, as in the paper"
    )


class MixCSE(TwoPass[MixCSESettings]):
    """InfoNCE between two passes of the same sentences, with mixed negatives in the denominator."""

    name = "mixcse"
    title = "MixCSE"
    source = "Zhang et al., AAAI 2022"
    negatives = (
        "Its negatives were the other sentences of a batch of {settings.batch_size}, and mixtures "
        "of them with the sentence itself, of weight {settings.mixing_weight}."
    )
    Settings = MixCSESettings

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Cross-entropy () of the vectors (N, D) of both passes; the label of row i is i.

        The logits of row i: cos(z1_i, z2_j) / τ for every j, then those of its mixed negatives.
        """
        published = self.settings.mixing == "published-code"
        mixed = published_mixed_cosines if published else mixed_cosines
        first, second = at_least_float32(first), at_least_float32(second)
        weight, stop = self.settings.mixing_weight, self.settings.stop_gradient
        negatives = mixed(first, second, weight, stop_gradient=stop)
        columns = [cosines(first, second), negatives]
        labels = torch.arange(len(first), device=first.device)
        return cross_entropy(torch.cat(columns, dim=1) / self.settings.temperature, labels)


def mix(vectors: Tensor, weight: float, *, stop_gradient: bool = True) -> Tensor:
    """λ v_i + (1 − λ) v_{i+1} of vectors (N, D), the first following the last."""
    mixed = torch.lerp(vectors.roll(-1, dims=0), vectors, weight)
    return mixed.detach() if stop_gradient else mixed


def mixed_cosines(
    first: Tensor, second: Tensor, weight: float, *, stop_gradient: bool = True
) -> Tensor:
    """cos(z1_i, m_i), (N, 1), of vectors (N, D); m_i mixed from the normalised z2 (paper)."""
    mixed = unit(mix(unit(second), weight, stop_gradient=stop_gradient))
    return (unit(first) * mixed).sum(dim=1, keepdim=True)


def published_mixed_cosines(
    first: Tensor, second: Tensor, weight: float, *, stop_gradient: bool = True
) -> Tensor:
    """The published program's mixed columns, (N, 2N), of vectors (N, D).

    cos(z1_i, mix(z2)_j), then cos(mix(z1)_i, z2_j), mixed without normalisation. Logits of pairs
    whose mixture contains the sentence's positive with weight 1 − λ are set to 0, so that each adds
    exp(0) = 1 to the denominator.
    """
    seconds, firsts = (
        mix(vectors, weight, stop_gradient=stop_gradient) for vectors in (second, first)
    )
    one, other = cosines(first, seconds), cosines(firsts, second)
    same = torch.eye(len(first), dtype=torch.bool, device=first.device)
    one = one.masked_fill(same.roll(-1, dims=1), 0.0)
    return torch.cat([one, other.masked_fill(same.roll(1, dims=1), 0.0)], dim=1)
