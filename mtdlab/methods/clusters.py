"""Pseudo-negatives: cluster centroids instead of the keys of a queue.

Letters: V rows, k clusters, D dimension.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

ROUNDS = 10
"""Iterations of Lloyd's algorithm. Fixed, because a convergence test would synchronise with the GPU
at every iteration."""


@torch.no_grad()
def centroids(keys: Tensor, count: int) -> Tensor:
    """Normalised k-means centroids (k, D) of unit keys (V, D); the keys themselves if V <= k.

    Lloyd's algorithm, initialised with evenly spaced rows and therefore deterministic; k 1 gives
    the mean. An empty cluster keeps its centroid. Source: later slides by MoCoSE's authors.
    """
    total = len(keys)
    if total <= count:
        return keys
    centres = keys[torch.arange(count, device=keys.device) * total // count]
    for _ in range(ROUNDS):
        centres = _round(keys, centres)
    return normalize(centres, dim=1)


def _round(keys: Tensor, centres: Tensor) -> Tensor:
    # the nearest centre c has the greatest x·c − |c|²/2
    nearest = (keys @ centres.T - centres.square().sum(dim=1) / 2).argmax(dim=1)
    members = one_hot(nearest, len(centres)).to(keys.dtype)
    sizes = members.sum(dim=0).unsqueeze(1)
    return torch.where(sizes > 0, members.T @ keys / sizes.clamp(min=1), centres)
