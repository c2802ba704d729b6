"""Augmentation of the word embeddings. On in training only, never in evaluation.

Letters: N batch, L tokens, D dimension.
"""

import torch
from torch import Tensor


def sign_step(gradient: Tensor | None, epsilon: float) -> Tensor | None:
    """ε·sign(∇_x L), (N, L, D): how FGSM moves the word embeddings (MoCoSE, equation 1)."""
    if gradient is None or epsilon == 0:
        return None
    return torch.sign(gradient) * epsilon


def perturb(embeddings: Tensor, step: Tensor | None) -> Tensor:
    """Word embeddings (N, L, D) moved by an FGSM step made on another batch.

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
