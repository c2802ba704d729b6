"""Post-processing of the sentence vectors of a task, fitted to these vectors without labels.

Letters: N vectors, D dimension, k dimensions kept.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from analysis.whitening import fit_whitening

Floats = NDArray[np.float64]


class Processing(Protocol):
    """A map of the vectors of one task."""

    def __call__(self, vectors: Floats) -> Floats:
        """(N, D) to (N, k). Raises ValueError where it cannot be fitted to the vectors."""

    def __str__(self) -> str:
        """In a few words, for the heading of a table."""


@dataclass(frozen=True)
class Whiten:
    """Whitening; `dimensions` are kept."""

    dimensions: int

    def __call__(self, vectors: Floats) -> Floats:
        """Whitened vectors of unit length. Raises ValueError if they span too little."""
        return fit_whitening(vectors, self.dimensions).apply(vectors)

    def __str__(self) -> str:
        return f"whitened to {self.dimensions} dimensions"


@dataclass(frozen=True)
class Flow:
    """BERT-flow, trained on the vectors with this seed."""

    seed: int = 0

    def __call__(self, vectors: Floats) -> Floats:
        """Vectors of equal dimension. Raises ValueError below 4 dimensions."""
        from mtdlab.evaluation.flow import apply_flow

        return apply_flow(vectors, self.seed)

    def __str__(self) -> str:
        return f"mapped by a flow (seed {self.seed})"
