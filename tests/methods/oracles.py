"""What the tests of several methods share: drawn vectors, and slow transcriptions of formulas."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[np.float64]


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Normal draws in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / math.sqrt(one @ one) / math.sqrt(other @ other))


def info_nce(
    queries: Sequence[Array] | Array,
    keys: Sequence[Array] | Array,
    negatives: Sequence[Array] | Array,
    temperature: float,
    *,
    in_batch: bool = True,
    equivalent: int | None = None,
    similarity: Callable[[Array, Array], float] = cosine,
) -> float:
    """-log [exp(q.k/t) / (exp(q.k/t) + sum over others exp(q.l/t))], a mean over rows.

    With `equivalent` a the sum over n others is (a / n) of it (EqCo, arXiv 2010.01929).
    """
    total = 0.0
    for row, query in enumerate(queries):
        positive = math.exp(similarity(query, keys[row]) / temperature)
        others = [key for at, key in enumerate(keys) if in_batch and at != row] + list(negatives)
        rest = math.fsum(math.exp(similarity(query, other) / temperature) for other in others)
        rest *= 1.0 if equivalent is None else equivalent / len(others)
        total -= math.log(positive / (positive + rest))
    return total / len(queries)
