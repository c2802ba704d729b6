"""MixCSE (Zhang et al., AAAI 2022): SimCSE with hard negatives mixed from positives and negatives.

As SimCSE, and beside the other sentences of the batch each sentence has a mixed vector as a
negative: mostly that of another sentence, partly its own positive, without gradient. Random
negatives in many dimensions are nearly orthogonal to a sentence (`analysis.spherical_cap`);
a mixed one has a cosine of about 0.24 to it.

Where it departs from the paper: the partner is the next sentence of the batch. Batches are
random, so it is a random one, as in the paper.

Where `mixing: published-code` departs from the published program: by its defaults it clips
gradients at a norm of 1 and decays no weight; here `weight_decay` is a setting, and nothing is
clipped. Its example script passes λ 0.6; the default here is the paper's 0.2.

Letters: N batch, D dimension.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from mtdlab.methods.base import Step, Tokens
from mtdlab.methods.losses import at_least_float32
from mtdlab.methods.simcse import SimCSESettings
from mtdlab.methods.two_pass import TwoPass
from mtdlab.settings import setting


class MixCSESettings(SimCSESettings):
    """The settings of SimCSE, and how negatives are mixed."""

    mixing: Literal["paper", "published-code"] = setting(
        "paper",
        "mixed negatives of a sentence: `paper`: one, of normalised vectors; `published-code`: "
        "those of all sentences, in both directions, of vectors as they are",
    )
    mixing_weight: float = setting(
        0.2,
        "weight of a sentence's own positive in its mixed negative",
        symbol="λ",
        step_cost="none",
        ge=0,
        lt=1,
    )


class MixCSE(TwoPass[MixCSESettings]):
    """InfoNCE between two passes of the same sentences, with mixed negatives in the denominator."""

    name = "mixcse"
    title = "MixCSE"
    source = "Zhang et al., AAAI 2022"
    Settings = MixCSESettings

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """The loss of two passes: of the first view and the last, or of the only one twice."""
        return Step(self.loss(*self.encode(views)))

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """Cross-entropy () of both passes' vectors (N, D), label i in row i.

        Row i holds cos(z1_i, z2_j) / τ for every j, then the logits of its mixed negatives.
        """
        published = self.settings.mixing == "published-code"
        mixed = published_mixed_cosines if published else mixed_cosines
        first, second = at_least_float32(first), at_least_float32(second)
        cosines = normalize(first, dim=1) @ normalize(second, dim=1).T
        cosines = torch.cat([cosines, mixed(first, second, self.settings.mixing_weight)], dim=1)
        own = torch.arange(len(first), device=first.device)
        return cross_entropy(cosines / self.settings.temperature, own)

    @classmethod
    def describe(cls, settings: MixCSESettings) -> str:
        """A sentence for the model card: where the negatives came from."""
        return (
            f"Its negatives were the other sentences of a batch of {settings.batch_size}, and "
            f"mixtures of them with the sentence itself, of weight {settings.mixing_weight}."
        )


def mix(vectors: Tensor, weight: float) -> Tensor:
    """λ v_i + (1 − λ) v_{i+1} of vectors (N, D), the first after the last; no gradient passes."""
    return torch.lerp(vectors.roll(-1, dims=0), vectors, weight).detach()


def mixed_cosines(first: Tensor, second: Tensor, weight: float) -> Tensor:
    """cos(z1_i, m_i), (N, 1), of vectors (N, D), m_i a mixture of the normalised z2 (the paper)."""
    mixed = normalize(mix(normalize(second, dim=1), weight), dim=1)
    return (normalize(first, dim=1) * mixed).sum(dim=1, keepdim=True)


def published_mixed_cosines(first: Tensor, second: Tensor, weight: float) -> Tensor:
    """The published program's mixed columns, (N, 2N), of vectors (N, D).

    cos(z1_i, mix(z2)_j), then cos(mix(z1)_i, z2_j), of vectors that are not normalised before
    they are mixed. The pairs whose mixture holds 1 − λ of the sentence's own positive are masked
    with 0, which leaves exp(0) = 1 in the denominator.
    """
    one = normalize(first, dim=1) @ normalize(mix(second, weight), dim=1).T
    other = normalize(mix(first, weight), dim=1) @ normalize(second, dim=1).T
    same = torch.eye(len(first), dtype=torch.bool, device=first.device)
    one = one.masked_fill(same.roll(-1, dims=1), 0.0)
    return torch.cat([one, other.masked_fill(same.roll(1, dims=1), 0.0)], dim=1)
