"""The complete state of a training run, which can be saved and resumed.

Letters: T steps, S evaluation sentences, D dimension.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mtdlab.encoders.adapters import load_own_state, own_state
from mtdlab.encoders.embed import Vectors
from mtdlab.errors import TrialError
from mtdlab.methods.base import Method
from mtdlab.training.batches import BatchOrder
from mtdlab.training.optimizer import make_optimizer
from mtdlab.training.probe import Column, KeySimilarity, Probe

State = dict[str, Tensor]

EVALUATED = ("score", "alignment", "uniformity", "mean_cosine")
"""Columns of the training curve that have values only at steps with an evaluation."""


class Curve:
    """Values per step, stored on the run's device: copying them would synchronise with the GPU."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self.steps, self.device = steps, device
        self._columns = defaultdict[str, Tensor](self._empty)

    def record(self, step: int, values: Mapping[str, Tensor | float]) -> None:
        """Record values () of a step (0 is the first) by column: its loss, or an evaluation."""
        for name, value in values.items():
            self._columns[name][step] = value

    def check(self, step: int) -> None:
        """Raise TrialError if a loss up to `step` is not finite."""
        loss = self._columns["loss"]
        bad = (~torch.isfinite(loss[: step + 1])).nonzero()
        if len(bad):
            at = int(bad[0])
            raise TrialError(f"the loss is {float(loss[at])} at step {at + 1}", "nan_loss")

    def columns(self) -> dict[str, Column]:
        """All columns (T,) by name; NaN at steps without a value."""
        return {name: column.float().cpu().numpy() for name, column in self._columns.items()}

    def state_dict(self) -> State:
        return dict(self._columns)

    def load_state_dict(self, state: State) -> None:
        columns = {name: column.to(self.device).clone() for name, column in state.items()}
        self._columns = defaultdict(self._empty, columns)

    def _empty(self) -> Tensor:
        return torch.full((self.steps,), torch.nan, dtype=torch.float64, device=self.device)


@dataclass
class Best:
    """The best checkpoint so far: its step, counted from 0, and the states of the method's parts.

    The step is -1 if there is none yet. `vectors` (S, D) are of the selection pairs' sentences.
    """

    step: int = -1
    score: float = float("-inf")
    vectors: Vectors = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    states: dict[str, State] = field(default_factory=dict)

    def consider(
        self, step: int, score: float, vectors: Vectors, parts: Mapping[str, nn.Module]
    ) -> None:
        """Store this checkpoint if its score is higher; NaN never is."""
        if score > self.score:
            self.step, self.score, self.vectors = step, score, vectors
            self.states = {
                name: {key: value.cpu().clone() for key, value in own_state(part).items()}
                for name, part in parts.items()
            }

    def state_dict(self) -> dict[str, Any]:
        return vars(self) | {"vectors": torch.from_numpy(self.vectors)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.step, self.score, self.states = state["step"], state["score"], state["states"]
        self.vectors = state["vectors"].numpy()


class RunState:
    """The state of a run after `step` steps, which took `seconds` of wall time.

    The learning rate and the EMA decay are functions of the step and need no state. The method has
    trained weights, queue, FGSM gradient, random generators of dropout and augmentation.
    """

    def __init__(
        self,
        method: Method[Any],
        batches: BatchOrder,
        similarity: KeySimilarity,
        probe: Probe | None = None,
    ) -> None:
        self.step, self.seconds = 0, 0.0
        self.method, self.batches = method, batches
        self.similarity, self.probe = similarity, probe
        self.optimizer = make_optimizer(method, method.settings)
        self.curve, self.best = Curve(method.settings.steps, method.device.device), Best()

    def state_dict(self) -> dict[str, Any]:
        """Nested tensors and numbers, for `load_state_dict`."""
        return {
            "step": self.step,
            "seconds": self.seconds,
            "method": own_state(self.method),
            "optimizer": self.optimizer.state_dict(),
            "batches": self.batches.state_dict(),
            "curve": self.curve.state_dict(),
            "best": self.best.state_dict(),
            "probe": self.probe.state_dict() if self.probe else {},
            "similarity": self.similarity.state_dict(),
            "random": {"cpu": torch.get_rng_state(), "cuda": torch.cuda.get_rng_state_all()},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a run of the same settings and texts. Raises RuntimeError for other shapes."""
        self.step, self.seconds = state["step"], state["seconds"]
        load_own_state(self.method, state["method"])
        for part in ("optimizer", "batches", "curve", "best"):
            getattr(self, part).load_state_dict(state[part])
        if self.probe:
            self.probe.load_state_dict(state["probe"])
        # a checkpoint of an earlier version has none
        if "similarity" in state:
            self.similarity.load_state_dict(state["similarity"])
        torch.set_rng_state(state["random"]["cpu"])
        torch.cuda.set_rng_state_all(state["random"]["cuda"])
