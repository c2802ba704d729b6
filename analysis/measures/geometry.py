"""Alignment, uniformity, mean cosine, singular values and whitening of sentence embeddings.

Letters: N embeddings, D dimension, k dimensions kept. Every function but `singular_values` and
`fit_whitening` divides each row by its L2 norm first, so that the scale of the input does not
matter. Sources: Wang and Isola (2020), equations 2 and 3; of whitening Su et al. (2021), "Whitening
Sentence Representations", as MoCoSE's and SimCSE's baselines use it: y = (x - mean) U S^(-1/2),
which gives a mean of 0 and the identity as covariance.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mtdlab.analysis.measures import Floats

# One block of similarities at a time, 2 MiB in float64: larger ones leave the processor's cache.
_BLOCK_VALUES = 1 << 18
NOTEBOOK_BATCH = 64
"""The number of rows of a batch in the notebook of MoCoSE's authors."""


def normalise_rows(x: ArrayLike, *, name: str = "x") -> Floats:
    """Rows of unit L2 norm, (N, D) to (N, D) in float64.

    Raises ValueError if x is not a matrix, or for the first row that is all zeros or contains a
    value that is not finite: such an embedding has no direction.
    """
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"{name} has shape {rows.shape}; it must be a matrix (N, D)")
    broken = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if broken.size:
        raise ValueError(f"row {broken[0]} of {name} contains a value that is not finite")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    zero = np.flatnonzero(norms[:, 0] == 0)
    if zero.size:
        raise ValueError(f"row {zero[0]} of {name} is all zeros and has no direction")
    return np.asarray(rows / norms, dtype=np.float64)


def _unit_rows(x: ArrayLike) -> Floats:
    rows = normalise_rows(x)
    if len(rows) < 2:
        raise ValueError(f"x has {len(rows)} rows; pairs need at least 2")
    return rows


def alignment(x: ArrayLike, y: ArrayLike, *, alpha: float = 2) -> float:
    """Mean over positive pairs of ||x_i - y_i||^alpha; 0 when every pair coincides.

    Row i of x (N, D) is the positive of row i of y. Raises ValueError for different shapes, no
    rows, a row that is zero or not finite, or alpha <= 0.
    """
    left, right = normalise_rows(x), normalise_rows(y, name="y")
    if left.shape != right.shape:
        raise ValueError(f"x has shape {left.shape} and y {right.shape}; they must be equal")
    if not len(left):
        raise ValueError("x has 0 rows; alignment needs at least 1 pair")
    if not alpha > 0:
        raise ValueError(f"alpha is {alpha:g}; it must be above 0")
    return float(np.mean(np.linalg.norm(left - right, axis=1) ** alpha))


def uniformity(x: ArrayLike, *, t: float = 2) -> float:
    """Log of the mean over distinct pairs of exp(-t ||x_i - x_j||^2); lower is more uniform.

    Of x (N, D), N >= 2. For t = 2 a uniform distribution on a sphere of high dimension gives -4,
    identical embeddings give 0. The Gram matrix is computed in blocks of 2 MiB, never as a whole;
    of float32 vectors in float32, added up in float64, which takes half the time and changes the
    8th decimal. Raises ValueError for fewer than 2 rows, a row that is zero or not finite, or no
    t above 0.
    """
    rows = _unit_rows(x)
    if not t > 0:
        raise ValueError(f"t is {t:g}; it must be above 0")
    if np.asarray(x).dtype == np.float32:
        rows = rows.astype(np.float32)
    count = len(rows)
    step = max(1, _BLOCK_VALUES // count)
    total = 0.0
    for start in range(0, count, step):
        block = rows[start : start + step]
        kernel = block @ rows[start:].T
        kernel -= 1
        kernel *= 2 * t
        np.exp(kernel, out=kernel)
        square = kernel[:, : len(block)]
        np.fill_diagonal(square, 0)
        # the diagonal block contains each of its pairs twice
        sums = kernel.sum(axis=1), -square.sum(axis=1) / 2
        total += float(np.sum(sums, dtype=np.float64))
    return math.log(total / (count * (count - 1) / 2))


def batched_uniformity(x: ArrayLike) -> float:
    """Uniformity as in the notebook of MoCoSE's authors: the mean over consecutive batches of rows.

    Of x (N, D), N >= 2; a last batch of one row is left out. It depends on the order of the rows
    and differs from `uniformity` of the same vectors: on one set of embeddings of STS-B's sentences
    it is -3.475 where `uniformity` is -3.816. Raises ValueError as `uniformity`.
    """
    rows = _unit_rows(x)
    parts = np.split(rows, range(NOTEBOOK_BATCH, len(rows), NOTEBOOK_BATCH))
    return float(np.mean([uniformity(part) for part in parts if len(part) > 1]))


def mean_cosine(x: ArrayLike) -> float:
    """Mean cosine similarity over all distinct pairs of rows, (N, D) with N >= 2.

    Closed form: (||sum of the unit rows||^2 - N) / (N (N - 1)). Raises ValueError for fewer than 2
    rows or a row that is zero or not finite.
    """
    rows = _unit_rows(x)
    count = len(rows)
    total = rows.sum(axis=0)
    return float((total @ total - np.sum(rows * rows)) / (count * (count - 1)))


def _finite_rows(x: ArrayLike, *, least: int) -> Floats:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < least or not rows.size:
        raise ValueError(f"x has shape {rows.shape}; it must be a matrix (N, D) with N >= {least}")
    if not np.isfinite(rows).all():
        raise ValueError("x contains values that are not finite")
    return rows


def singular_values(x: ArrayLike) -> Floats:
    """Singular values of (N, D), largest first, min(N, D) of them.

    They are square roots of the eigenvalues of the smaller Gram matrix in float64: values below
    about 1e-8 of the largest are dominated by rounding errors. The rows are neither centred nor
    normalised. Raises ValueError unless x is a matrix of finite values, not empty.
    """
    rows = _finite_rows(x, least=1)
    gram = rows @ rows.T if rows.shape[0] < rows.shape[1] else rows.T @ rows
    return np.asarray(np.sqrt(np.clip(np.linalg.eigvalsh(gram)[::-1], 0, None)))


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
    """Mean of x (N, D), and its k directions of largest variance, each scaled to variance 1.

    The covariance is divided by N. Raises ValueError for other shapes, fewer than 2 rows, values
    that are not finite, or a k outside 1 to the rank of the covariance.
    """
    rows = _finite_rows(x, least=2)
    mean = rows.mean(axis=0)
    variances, directions = np.linalg.eigh(
        np.cov(rows, rowvar=False, bias=True).reshape(rows.shape[1], rows.shape[1])
    )
    variances, directions = variances[::-1], directions[:, ::-1]
    rank = int((variances > max(variances[0], 0) * _RANK_TOLERANCE).sum())
    if not 1 <= k <= rank:
        raise ValueError(f"k is {k}; these embeddings span {rank} dimensions, so 1 to {rank}")
    return Whitening(mean, directions[:, :k] / np.sqrt(variances[:k]))
