"""Whitening: a linear map to sentence embeddings with mean 0 and identity covariance.

Letters: N embeddings, D dimension, k dimensions kept. Source: Su et al. (2021), "Whitening
Sentence Representations", as MoCoSE's and SimCSE's baselines use it: y = (x - mean) U S^(-1/2).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.geometry import normalise_rows

Floats = NDArray[np.float64]

# Smaller variances, relative to the largest, are rounding errors: scaling would amplify noise.
_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Whitening:
    """A fitted whitening: the mean (D,) and the kernel U S^(-1/2) (D, k)."""

    mean: Floats
    kernel: Floats

    def apply(self, x: ArrayLike) -> Floats:
        """Whitened rows of unit L2 norm, (N, D) to (N, k).

        Raises ValueError for another dimension, or a row that is zero after whitening.
        """
        rows = np.asarray(x, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ValueError(f"x has shape {rows.shape}; it must be (N, {len(self.mean)})")
        return normalise_rows((rows - self.mean) @ self.kernel)


def fit_whitening(x: ArrayLike, k: int) -> Whitening:
    """Mean, and the k directions of largest variance, each scaled to variance 1.

    x  (N, D), N >= 2.
    k  dimensions to keep, 1 to the rank of the covariance.

    The covariance is divided by N. Raises ValueError for other shapes, values that are not
    finite, or a k that the rows do not span.
    """
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise ValueError(f"x has shape {rows.shape}; it must be a matrix (N, D) with N >= 2")
    if not np.isfinite(rows).all():
        raise ValueError("x contains values that are not finite")
    mean = rows.mean(axis=0)
    variances, directions = np.linalg.eigh(
        np.cov(rows, rowvar=False, bias=True).reshape(rows.shape[1], rows.shape[1])
    )
    variances, directions = variances[::-1], directions[:, ::-1]
    rank = int((variances > max(variances[0], 0) * _RANK_TOLERANCE).sum())
    if not 1 <= k <= rank:
        raise ValueError(f"k is {k}; these embeddings span {rank} dimensions, so 1 to {rank}")
    return Whitening(mean, directions[:, :k] / np.sqrt(variances[:k]))
