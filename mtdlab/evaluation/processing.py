"""Post-processing of the sentence vectors of a task, fitted to these vectors without labels.

Whitening, and BERT-flow (Li et al., EMNLP 2020), which maps sentence vectors to a standard normal
distribution. An invertible network f is trained on the vectors alone to maximise
log N(f(u); 0, I) + log |det ∂f/∂u|; the cosine of f(u) is the score. It has two levels of three
steps; after the first level half of the dimensions are split off to the prior. A step is actnorm
(scale and shift, initialised by the first batch), a fixed random permutation of the dimensions, and
an additive coupling of their two halves through a small network.

Letters: N vectors, D dimension, k dimensions kept.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from analysis.measures.geometry import fit_whitening

Floats = NDArray[np.float64]

LEVELS, STEPS, WIDTH = 2, 3, 32
LEARNING_RATE, BATCH = 1e-3, 32
"""Adam, one epoch. The batch size is this program's choice."""
LEAST = 2 * LEVELS
"""Dimensions of a vector: each level couples two halves."""


class FlowStep(nn.Module):
    """Actnorm, permutation, additive coupling of D dimensions."""

    order: Tensor
    inverse_order: Tensor

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dimension))
        self.log_scale = nn.Parameter(torch.zeros(dimension))
        order = torch.randperm(dimension)
        self.register_buffer("order", order)
        self.register_buffer("inverse_order", order.argsort())
        self.unchanged = dimension // 2
        last = nn.Linear(WIDTH, dimension - self.unchanged)
        # the coupling starts as the identity
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.network = nn.Sequential(
            nn.Linear(self.unchanged, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), last
        )

    @torch.no_grad()
    def initialise(self, rows: Tensor) -> None:
        """Give each dimension of rows (N, D) mean 0 and variance 1, unless it is constant."""
        deviation = rows.std(dim=0, correction=0)
        constant = deviation <= 1e-6 * deviation.max()
        self.log_scale.copy_(-deviation.masked_fill(constant, 1.0).log())
        self.shift.copy_(-rows.mean(dim=0))

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Rows (N, D), and log |det| () of the Jacobian, which is equal for all rows."""
        rows = (rows + self.shift) * self.log_scale.exp()
        first, second = rows[:, self.order].split(
            [self.unchanged, len(self.order) - self.unchanged], dim=1
        )
        return torch.cat([first, second + self.network(first)], dim=1), self.log_scale.sum()

    def inverse(self, rows: Tensor) -> Tensor:
        """The rows (N, D) that `forward` maps to `rows`."""
        first, second = rows.split([self.unchanged, len(self.order) - self.unchanged], dim=1)
        rows = torch.cat([first, second - self.network(first)], dim=1)[:, self.inverse_order]
        return rows * (-self.log_scale).exp() - self.shift


class FlowNetwork(nn.Module):
    """The invertible network: levels of steps, the second on half the dimensions."""

    def __init__(self, dimension: int) -> None:
        """Initialised from torch's global generator. Raises ValueError below 4 dimensions."""
        super().__init__()
        if dimension < LEAST:
            raise ValueError(f"vectors have {dimension} dimensions; a flow needs at least {LEAST}")
        self.levels = nn.ModuleList()
        for level in range(LEVELS):
            width = dimension if level == 0 else dimension - dimension // 2
            self.levels.append(nn.ModuleList(FlowStep(width) for _ in range(STEPS)))
        self.split = dimension // 2

    @torch.no_grad()
    def initialise(self, rows: Tensor) -> None:
        """Initialise every actnorm by a first batch (N, D)."""
        for level, steps in enumerate(self.levels):
            rows = rows if level == 0 else rows[:, self.split :]
            for step in _steps(steps):
                step.initialise(rows)
                rows, _ = step(rows)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors z (N, D) of rows (N, D), and log |det ∂z/∂rows| (), equal for all rows."""
        split_off, determinant = [], rows.new_zeros(())
        for level, steps in enumerate(self.levels):
            if level:
                split_off.append(rows[:, : self.split])
                rows = rows[:, self.split :]
            for step in _steps(steps):
                rows, logarithm = step(rows)
                determinant = determinant + logarithm
        return torch.cat([*split_off, rows], dim=1), determinant

    def inverse(self, rows: Tensor) -> Tensor:
        """The rows (N, D) that `forward` maps to `rows`."""
        split_off, rows = rows[:, : self.split], rows[:, self.split :]
        for level in reversed(range(LEVELS)):
            for step in reversed(_steps(self.levels[level])):
                rows = step.inverse(rows)
            rows = torch.cat([split_off, rows], dim=1) if level else rows
        return rows

    def log_likelihood(self, rows: Tensor) -> Tensor:
        """Mean of log N(f(u); 0, I) + log |det ∂f/∂u|, (), over rows (N, D)."""
        vectors, determinant = self.forward(rows)
        dimension = rows.shape[1]
        density = -(vectors.square().sum(dim=1) + dimension * math.log(2 * math.pi)) / 2
        return density.mean() + determinant


def _steps(level: nn.Module) -> list[FlowStep]:
    return [step for step in level.children() if isinstance(step, FlowStep)]


def fit_flow(vectors: Floats, seed: int = 0) -> FlowNetwork:
    """A flow trained for one epoch on vectors (N, D); the same for the same seed.

    Raises ValueError below 4 dimensions, or for values that are not finite.
    """
    if not np.isfinite(vectors).all():
        raise ValueError("sentence vectors are not finite")
    rows = torch.from_numpy(vectors).float()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        flow = FlowNetwork(rows.shape[1])
        batches = rows[torch.randperm(len(rows))].split(BATCH)
    flow.initialise(batches[0])
    optimizer = torch.optim.Adam(flow.parameters(), lr=LEARNING_RATE)
    with torch.enable_grad():
        for batch in batches:
            optimizer.zero_grad()
            (-flow.log_likelihood(batch)).backward()
            optimizer.step()
    return flow.eval()


def apply_flow(vectors: Floats, seed: int = 0) -> Floats:
    """f(u) (N, D) of the vectors (N, D) on which the flow is trained. Raises as `fit_flow`."""
    flow = fit_flow(vectors, seed)
    with torch.no_grad():
        mapped, _ = flow.forward(torch.from_numpy(vectors).float())
    return mapped.numpy().astype(np.float64)


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
        return apply_flow(vectors, self.seed)

    def __str__(self) -> str:
        return f"mapped by a flow (seed {self.seed})"
