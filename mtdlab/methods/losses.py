"""The contrastive loss.

Letters: N batch, V queue rows in use, D dimension.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize


def at_least_float32(values: Tensor) -> Tensor:
    """`values` converted to float32, unless they are float64."""
    return values if values.dtype == torch.float64 else values.float()


def unit(vectors: Tensor) -> Tensor:
    """Vectors (N, D) divided by their lengths, in float32 or wider."""
    return normalize(at_least_float32(vectors), dim=1)


def cosines(first: Tensor, second: Tensor) -> Tensor:
    """Cosines (A, B) of vectors (A, D) and (B, D), in float32 or wider."""
    return unit(first) @ unit(second).T


def info_nce(
    queries: Tensor,
    keys: Tensor,
    negatives: Tensor | None,
    temperature: float,
    *,
    in_batch_negatives: bool = True,
    equivalent_negatives: int = 0,
) -> Tensor:
    """InfoNCE () of queries (N, D) against their keys (N, D) and queue negatives (V, D) or None.

    −log [exp(q·k/τ) / (exp(q·k/τ) + Σ_l exp(q·l/τ))] with normalised vectors; l runs over the
    queue (MoCoSE, equation 3) and, with `in_batch_negatives`, over the other keys of the batch (its
    published code). Mean over the batch, in float32 or wider.

    With `equivalent_negatives` α, the sum over the n negatives is multiplied by α/n, so that the
    loss has the size of one with α negatives (EqCo, Zhu et al., arXiv 2010.01929); 0: it is not.
    """
    candidates = unit(keys)
    if negatives is not None:
        candidates = torch.cat([candidates, negatives])
    logits = unit(queries) @ candidates.T / temperature
    positives = torch.arange(len(queries), device=queries.device)
    if not in_batch_negatives:
        others = logits.new_ones(len(queries), len(keys), dtype=torch.bool).fill_diagonal_(False)
        logits[:, : len(keys)].masked_fill_(others, -torch.inf)
    if equivalent_negatives:
        count = logits.shape[1] - (1 if in_batch_negatives else len(keys))
        # a factor of the negatives is a shift of the positives: log-softmax ignores a constant
        logits.diagonal().sub_(math.log(equivalent_negatives / count))
    return cross_entropy(logits, positives)
