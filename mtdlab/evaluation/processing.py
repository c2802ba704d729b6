"""Post-processing of the sentence vectors of a task, fitted to these vectors without labels.

Whitening, and BERT-flow (Li et al., EMNLP 2020), which maps sentence vectors to a standard normal
distribution. An invertible network f is trained on the vectors alone to maximise
log N(f(u); 0, I) + log |det ∂f/∂u|; the cosine of f(u) is the score. Network, objective and
optimizer are those of the published program; docs/methods/post-processing.md compares the two.

Letters: P pairs or sentences, N vectors, D dimension, k dimensions kept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, nn

from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.geometry import fit_whitening
from mtdlab.errors import MtdlabError
from mtdlab.settings import first_error, setting

Sides = tuple[Floats, Floats]


@dataclass(frozen=True)
class Whiten:
    """Whitening; `dimensions` are kept.

    It is called, as `Flow` is, with both sides (P, D) of pairs; of single sentences the second is
    (0, D).
    """

    dimensions: int

    def __call__(self, first: Floats, second: Floats) -> Sides:
        """Whitened vectors of unit length. Raises ValueError if they span too little."""
        whitening = fit_whitening(np.concatenate([first, second]), self.dimensions)
        return whitening.apply(first), whitening.apply(second)

    def __str__(self) -> str:
        return f"whitened to {self.dimensions} dimensions"


class Flow(BaseModel):
    """BERT-flow, with the defaults of the published program."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed: int = setting(0, "of the initial weights, the order of the pairs, the permutations", ge=0)
    levels: int = setting(3, "groups of steps; half of the dimensions leave after each", ge=1)
    depth: int = setting(3, "steps of a level", ge=1)
    width: int = setting(32, "hidden units of a coupling network", ge=1)
    permutation: Literal["reversed", "random"] = setting(
        "reversed", "of the dimensions before a coupling; the paper has random ones"
    )
    batch_size: int = setting(32, "pairs, of both sides", ge=1)
    learning_rate: float = setting(1e-3, "constant", gt=0)

    def __call__(self, first: Floats, second: Floats) -> Sides:
        """Transformed vectors of equal dimension. Raises ValueError for too few dimensions."""
        flow = fit_flow(first, second, self)
        with torch.no_grad():
            mapped = [flow(torch.from_numpy(side))[0].numpy() for side in (first, second)]
        return mapped[0], mapped[1]

    def __str__(self) -> str:
        changed = self.model_dump(exclude_defaults=True, exclude={"seed"})
        parts = [f"seed {self.seed}", *(f"{name} {value}" for name, value in changed.items())]
        return f"mapped by a flow ({', '.join(parts)})"


Processing = Whiten | Flow
"""A map of the vectors of one task."""


def parse_flow(text: str) -> Flow:
    """A flow from text such as `0,levels=2`: the seed, then settings. Raises MtdlabError."""
    seed, *others = text.split(",")
    try:
        return Flow.model_validate({"seed": seed} | dict(other.split("=", 1) for other in others))
    except ValidationError as error:
        raise MtdlabError(f"--flow {text}: {first_error(error)}") from None
    except ValueError:
        raise MtdlabError(f"--flow {text}: give a seed, then NAME=VALUE after commas") from None


class ActNorm(nn.Module):
    """Shift and scale of D dimensions, (x + b) · exp(3 s).

    The first rows that it maps, (N, D), initialise it: their mean becomes 0, their variance 1
    unless they are constant.
    """

    def __init__(self, dimension: int, *, initialised: bool = False) -> None:
        """With `initialised` the first rows do not initialise it; it starts as the identity."""
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dimension))
        self.log_scale = nn.Parameter(torch.zeros(dimension))
        self.initialised = initialised

    def forward(self, rows: Tensor) -> Tensor:
        """Rows (N, D)."""
        if not self.initialised:
            self._initialise(rows)
        return (rows + self.shift) * (3 * self.log_scale).exp()

    @torch.no_grad()
    def _initialise(self, rows: Tensor) -> None:
        self.shift.copy_(-rows.mean(dim=0))
        deviation = rows.std(dim=0, correction=0)
        # all-MiniLM-L6-v2 has a constant dimension; scaled by 1e6 in each step it overflows
        constant = deviation <= 1e-6 * deviation.max()
        self.log_scale.copy_(-(deviation + 1e-6).masked_fill(constant, 1.0).log() / 3)
        self.initialised = True


class FlowStep(nn.Module):
    """Actnorm, permutation, additive coupling of D dimensions: half of them shifts the others."""

    order: Tensor

    def __init__(self, order: Tensor, width: int) -> None:
        """`order` is the permutation (D,), of 2 dimensions at least."""
        super().__init__()
        self.norm = ActNorm(len(order))
        self.register_buffer("order", order)
        first, second = (len(half) for half in order.chunk(2))
        inner = [nn.Linear(size, width, bias=False) for size in (first, width)]
        for linear in inner:
            nn.init.normal_(linear.weight, std=0.05)
        last = nn.Linear(width, second, bias=False)
        # the coupling starts as the identity
        nn.init.zeros_(last.weight)
        self.network = nn.Sequential(
            *(layer for linear in inner for layer in (linear, ActNorm(width), nn.ReLU())),
            last,
            ActNorm(second, initialised=True),
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Rows (N, D)."""
        first, second = self.norm(rows)[:, self.order].chunk(2, dim=1)
        return torch.cat([first, second + self.network(first)], dim=1)


class FlowNetwork(nn.Module):
    """The invertible network: levels of steps, each level on half the dimensions of the last."""

    def __init__(self, dimension: int, settings: Flow) -> None:
        """It is initialised from torch's global generator, then by the first rows that it maps.

        Raises ValueError where a level would have fewer than 2 dimensions.
        """
        super().__init__()
        least = 2 ** (settings.levels - 1) + 1
        if dimension < least:
            raise ValueError(
                f"vectors have {dimension} dimensions; a flow of {settings.levels} levels needs at "
                f"least {least}"
            )
        self.levels: Any = nn.ModuleList()
        is_random = settings.permutation == "random"
        for _ in range(settings.levels):
            orders = [
                torch.randperm(dimension) if is_random else torch.arange(dimension).flip(0)
                for _ in range(settings.depth)
            ]
            self.levels.append(
                nn.Sequential(*(FlowStep(order, settings.width) for order in orders))
            )
            dimension -= dimension // 2

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Vectors z (N, D) of rows (N, D), and log |det ∂z/∂rows| (), equal for all rows."""
        split_off: list[Tensor] = []
        for number, level in enumerate(self.levels):
            if number:
                rows, rest = rows.chunk(2, dim=1)
                split_off.append(rest)
            rows = level(rows)
        scales = [3 * step.norm.log_scale.sum() for level in self.levels for step in level]
        return torch.cat([*split_off, rows], dim=1), torch.stack(scales).sum()

    def bits_per_dimension(self, rows: Tensor) -> Tensor:
        """−[log N(f(u); 0, I) + log |det ∂f/∂u|] / (D log 2), (), its mean over rows (N, D)."""
        vectors, determinant = self.forward(rows)
        dimension = rows.shape[1]
        square = vectors.square().sum(dim=1).mean()
        density = -(square + dimension * math.log(2 * math.pi)) / 2
        return -(density + determinant) / (dimension * math.log(2))


def fit_flow(first: Floats, second: Floats, settings: Flow) -> FlowNetwork:
    """A flow in float64, trained for one epoch on both sides of P pairs, (P, D).

    The same seed gives the same flow. For single sentences `second` is (0, D). Raises ValueError as
    `FlowNetwork`.
    """
    sides = [torch.from_numpy(side) for side in (first, second) if len(side)]
    size = min(settings.batch_size, len(first))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        flow = FlowNetwork(first.shape[1], settings).double()
        # one batch initialises the flow before an epoch of full batches, which then ends in a
        # second pass, as the program's input does
        order = torch.cat([torch.randperm(len(first)) for _ in range(2)])
    batches = order[: (len(first) // size + 1) * size].split(size)
    train_flow(flow, [[side[rows] for side in sides] for rows in batches], settings.learning_rate)
    return flow


CLIP, DECAY, EPSILON = 1.0, 0.01, 1e-6
MOMENTUM, SQUARES = 0.9, 0.999
"""AdamW's maximum norm of the gradient, weight decay of all parameters, ε, β₁ and β₂."""


@torch.no_grad()
def train_flow(
    flow: FlowNetwork, batches: Sequence[Sequence[Tensor]], learning_rate: float
) -> None:
    """Initialise a flow by the first side of the first batch, and train it on the others.

    A batch has sides (N, D); the loss is the sum of their `bits_per_dimension`. AdamW without bias
    correction, as in BERT's program; torch's has it.
    """
    flow(batches[0][0])
    parameters = list(flow.parameters())
    moments = [(torch.zeros_like(weights), torch.zeros_like(weights)) for weights in parameters]
    for sides in batches[1:]:
        with torch.enable_grad():
            loss = torch.stack([flow.bits_per_dimension(side) for side in sides]).sum()
        gradients = torch.autograd.grad(loss, parameters)
        scale = 1 / torch.nn.utils.get_total_norm(gradients).div(CLIP).clamp(min=1)
        for parameter, unclipped, (mean, square) in zip(
            parameters, gradients, moments, strict=True
        ):
            gradient = unclipped * scale
            mean.lerp_(gradient, 1 - MOMENTUM)
            square.lerp_(gradient.square(), 1 - SQUARES)
            change = mean / (square.sqrt() + EPSILON) + DECAY * parameter
            parameter.sub_(learning_rate * change)
