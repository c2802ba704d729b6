"""What a run leaves behind: its curve, its best checkpoint, what it scored.

Letters: T steps, D dimension.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mtdlab.config.tasks import LOOKS, needed
from mtdlab.encoders.embed import Vectors
from mtdlab.errors import TrialError
from mtdlab.evaluation.sts import Evaluation
from mtdlab.evaluation.suite import TaskScore
from mtdlab.training.inputs import EncoderScores

Column = NDArray[np.float32]
State = dict[str, Tensor]


class Curve:
    """Per-step values of a run, kept on its device so that no step waits for a copy."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self.loss = torch.full((steps,), torch.nan, device=device)
        self.fgsm_changed = torch.zeros(steps, device=device)
        self.ema_decay = np.full(steps, np.nan, dtype=np.float32)
        self.queue_fill = np.full(steps, np.nan, dtype=np.float32)
        self.evaluations: dict[int, Evaluation] = {}

    def record(self, step: int, loss: Tensor, changed: Tensor, decay: float, fill: int) -> None:
        """Note what a step (0 the first) saw."""
        self.loss[step] = loss.detach()
        self.fgsm_changed[step] = changed
        self.ema_decay[step] = decay
        self.queue_fill[step] = fill

    def check(self, step: int) -> None:
        """Raise TrialError where a loss up to `step` is not finite."""
        bad = (~torch.isfinite(self.loss[: step + 1])).nonzero()
        if len(bad):
            at = int(bad[0])
            raise TrialError(f"the loss is {float(self.loss[at])} at step {at + 1}")

    def columns(self) -> dict[str, Column]:
        """Every column (T,) by name; an evaluation stands at the step it followed."""
        columns = {
            "loss": self.loss.cpu().numpy(),
            "fgsm_changed": self.fgsm_changed.cpu().numpy(),
            "ema_decay": self.ema_decay,
            "queue_fill": self.queue_fill,
        }
        for name in ("score", "alignment", "uniformity", "mean_cosine"):
            column = np.full(len(self.loss), np.nan, dtype=np.float32)
            for step, evaluation in self.evaluations.items():
                column[step] = getattr(evaluation, name)
            columns[name] = column
        return columns


@dataclass
class Best:
    """The checkpoint with the best score so far on the pairs that choose.

    Its step (0 the first), what the sentences it was chosen by were to it (S, D), and the state
    of every part of it: encoder, heads, target, queue.
    """

    step: int = -1
    score: float = float("-inf")
    vectors: Vectors = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    states: dict[str, State] = field(default_factory=dict)

    def consider(
        self, step: int, score: float, vectors: Vectors, parts: Mapping[str, nn.Module]
    ) -> None:
        """Keep this checkpoint if it beats the best; a missing score never does."""
        if score > self.score:
            self.step, self.score, self.vectors = step, score, vectors
            self.states = {name: _copied(part) for name, part in parts.items()}


def _copied(part: nn.Module) -> State:
    return {name: value.cpu().clone() for name, value in part.state_dict().items()}


@dataclass(frozen=True)
class Outcome:
    """A finished run. `best_step` counts from 1; `before` is the encoder as it was loaded.

    scores  on each of the settings' tasks, of the best checkpoint and of the loaded encoder.
    """

    best_step: int
    before: EncoderScores
    after: EncoderScores
    curve: dict[str, Column]
    states: dict[str, State]
    scores: tuple[TaskScore, ...]
    scores_before: tuple[TaskScore, ...]
    wall_seconds: float

    def score_of(self, metric: str) -> tuple[float, float]:
        """A metric's score and that of the encoder as it was loaded, x 100; NaN for none.

        An average counts only where all of its tasks have a score.
        """
        if metric in LOOKS:
            split = metric.removeprefix("sts_")
            return getattr(self.after, split).score, getattr(self.before, split).score
        return _mean(metric, self.scores), _mean(metric, self.scores_before)

    def all_scores(self) -> dict[str, float]:
        """Every score of the best checkpoint by name, x 100; NaN for none."""
        looks = {"sts_dev": self.after.dev.score, "sts_test": self.after.test.score}
        return looks | {
            each.task: np.nan if each.score is None else each.score for each in self.scores
        }

    @property
    def weights(self) -> State:
        """The encoder's own part of the best checkpoint."""
        return self.states["encoder"]


def _mean(metric: str, scores: tuple[TaskScore, ...]) -> float:
    found = {each.task: each.score for each in scores}
    values = [found.get(task) for task in needed(metric)]
    return float(np.mean([np.nan if value is None else value for value in values]))
