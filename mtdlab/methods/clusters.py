"""Pseudo-negatives: the centroids of clusters instead of a queue's keys.

Letters: V rows, k clusters, D dimension.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

ROUNDS = 10
"""Of assigning and averaging. A fixed number: to ask whether it has converged, a GPU would have
to be waited for."""


@torch.no_grad()
def centroids(keys: Tensor, count: int) -> Tensor:
    """Unit vectors (k, D) that stand for unit keys (V, D): the centroids of k-means, scaled.

    Lloyd's algorithm from evenly spaced rows, so that it is the same every time; 1 gives the
    mean. A cluster that loses all of its keys stays where it was. Not more keys than clusters are
    returned as they are. After the slides that MoCoSE's authors published later.
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
