"""The contrastive loss.

Letters: N batch, V queue rows in use, D dimension.
"""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize


def info_nce(queries: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """InfoNCE of queries (N, D) against their keys (N, D) and queue negatives (V, D).

    −log [exp(q·k/τ) / (exp(q·k/τ) + Σ_l exp(q·l/τ))], l over the batch's other keys and the
    queue, vectors compared by cosine (MoCoSE, equation 3, with the in-batch negatives of its
    published code). One matrix product; the mean over the batch in float32.
    """
    candidates = torch.cat([normalize(keys.float(), dim=1), negatives])
    logits = normalize(queries.float(), dim=1) @ candidates.T / temperature
    return cross_entropy(logits, torch.arange(len(queries), device=queries.device))
