"""The settings of MoCoSE, their values in each preset, and what paper and program say about them.

Source: Cao et al., Findings of ACL 2022, and the program that its authors published.

This module imports no torch, see `mtdlab.methods.registry.SETTINGS`.
"""

import itertools
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from mtdlab.methods.history import HistorySettings
from mtdlab.settings import limits, setting
from mtdlab.settings.schedules import mean_trace
from mtdlab.settings.trainer import Count, Positive

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # the defaults of the settings: the paper's method at its base size. Three values follow the
    # program where the paper says otherwise or nothing: in_batch_negatives and fgsm_gradient
    # (against equations 3 and 1), and target_dropout
    "intended": {},
    # equations 1 and 3 and the schedule of the paper. Not the paper to the letter: its dot product
    # without a temperature is cosine similarity at 0.05 here, and the optimizer, which it does not
    # describe, is AdamW with a linear decay of the learning rate
    "paper": {
        "in_batch_negatives": False,
        "fgsm_gradient": "current",
        # the only schedule in the paper; the 0.85 of `intended` is the best value of its grid
        "ema_decay": 0.75,
        "ema_decay_end": 0.95,
    },
    # the authors' program in training. Not reproduced: its augmentations during evaluation, and its
    # transfer scores, which are cross-validated on training data
    "published-code": {
        "in_batch_negatives": True,
        "detach_keys": False,
        # the start is that of its example; the end and the number of calls are constants in it
        "ema_decay": 0.75,
        "ema_decay_end": 1.0,
        "ema_schedule_steps": 15_000,
        "ema_order": "before-target",
        "target_dropout": True,
        "augmented_branch": "target",
        "fgsm_gradient": "previous",
        "queue_fill": "published",
        "select_on": "sts_average",
        # from the library that trains it and from BERT's configuration
        "max_gradient_norm": 1.0,
        "weight_decay_exceptions": "biases-and-norms",
        "head_norm_eps": 1e-12,
        "head_initialisation": "bert",
        "precision": "float32",
    },
}

SOURCES: Mapping[str, str] = {
    "ema_decay": "paper: 0.85 is the best constant of table 3, its schedule starts at 0.75; "
    "program: its example starts at 0.75",
    "ema_decay_end": "paper: constant, or a cosine from 0.75 to 0.95; program: a cosine to 1",
    "ema_schedule_steps": "paper: the run's steps; program: 15,000 calls, whatever the run's "
    "length (none: the run's steps)",
    "ema_order": "paper: after the optimizer's step; program: before the next step's target pass",
    "in_batch_negatives": "paper: the queue alone (equation 3); program: also the batch's other "
    "keys",
    "temperature": "paper: not given; program: 0.05",
    "detach_keys": "paper: no gradient through the keys; program: gradients reach the shared "
    "embeddings and the target's projection",
    "target_dropout": "paper: not described; program: on",
    "augmented_branch": "paper: not described; program: the target branch",
    "fgsm_epsilon": "paper: the best value of table 9",
    "fgsm_gradient": "paper: this batch's (equation 1); program: the previous batch's, for both "
    "branches",
    "queue_size": "paper: base size",
    "initial_queue_size": "paper: base size",
    "queue_fill": "paper: K_s random keys at first, at most K; program: 2 K_s at first, more than "
    "K while it fills",
    "select_on": "paper: “validate”; program: the average of the seven test sets",
    "projection_layers": "paper: the best value of table 4",
    "prediction_layers": "paper: the best value of table 4",
    "prediction_dim": "paper: the encoder's dimension is the best value of table 6 (none: the "
    "encoder's)",
    "head_norm_eps": "paper: not described; program: BERT's configuration",
    "head_initialisation": "paper: not described; program: BERT's, and the pre-trained pooler",
    "batch_size": "paper: base size",
    "learning_rate": "paper: base size",
    "weight_decay": "paper: base size",
    "weight_decay_exceptions": "paper: not described; program: its library's",
    "max_gradient_norm": "paper: not described; program: its library's default (0: no clipping)",
    "max_length": "paper: base size",
    "evaluate_every": "paper: every 100 steps",
    "pooling": "paper: [CLS] of the last layer, before the pooler",
    "dropout": "paper: 0.1 in embeddings and encoder",
    "precision": "program: float32",
}
"""What the paper and the program say about each setting that a preset or the paper determines."""
FIXED: Mapping[str, str] = {
    "similarity: cosine": "paper: dot product; program: cosine",
    "embedding block: shared, trained, not averaged": "paper: not described; program: the same",
    "optimizer: AdamW": "paper: not described; program: the same",
    "learning rate: linear decay to 0, no warm-up": "paper: not described; program: the same",
}
"""What is the same in every preset and is not a setting."""


Layers = Annotated[int, Field(ge=0, le=limits.LAYERS)]
DEFAULT_INITIAL = 128
"""K_s if not given; a smaller queue starts full."""


def parse_slices(text: str) -> list[tuple[int, int]] | None:
    """Half-open ranges of queue positions, 0 the newest; None for "all".

    Raises ValueError for a text that is neither "all" nor ranges such as "0-256,768-1024".
    """
    if text == "all":
        return None
    slices = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (dash and first.isdigit() and last.isdigit() and int(first) < int(last)):
            raise ValueError(f'{part.strip()!r} is no range; write "all" or "0-256,768-1024"')
        slices.append((int(first), int(last)))
    if any(start < end for (_, end), (start, _) in itertools.pairwise(slices)):
        raise ValueError(f"{text!r}: ranges must ascend and not overlap, or keys count twice")
    return slices


def _check_slices(text: str) -> str:
    parse_slices(text)
    return text


class MoCoSESettings(HistorySettings):
    """The settings of MoCoSE; `preset` sets those that are not given."""

    title: ClassVar[str] = "MoCoSE"

    preset: Literal["intended", "paper", "published-code"] = setting(
        "intended", "set of values for settings that are not given", step_cost="none"
    )
    ema_decay_end: Annotated[float, Field(ge=0, le=1)] | None = setting(
        None, "end of a cosine schedule of the EMA decay", step_cost="none"
    )
    ema_schedule_steps: Positive | None = setting(
        None, "length of that schedule; by default `steps`", unit="steps", step_cost="none"
    )
    ema_order: Literal["after-step", "before-target"] = setting(
        "after-step",
        "when the momentum encoder is updated; `before-target`: before the forward pass of the "
        "target branch, as in the published program",
        step_cost="none",
    )
    initial_queue_size: Count = setting(
        DEFAULT_INITIAL,
        "random unit vectors that the queue starts with; by default min(128, K)",
        symbol="K_s",
        unit="keys",
        step_cost="none",
        relative_to="queue_size",
    )
    queue_slice: Annotated[str, AfterValidator(_check_slices)] = setting(
        "all",
        "positions that enter the loss once the queue is full, 0 the newest: `0-256,768-1024`",
    )
    queue_fill: Literal["exact", "published"] = setting(
        "exact", "filling of the queue; `published`: with the excess of the authors' program"
    )
    queue_clusters: Count = setting(
        0, "centroids that replace the queue's keys: 1 their mean, k those of k-means; 0 none"
    )
    in_batch_negatives: bool = setting(
        True,
        "whether other keys of the batch are negatives too; false: the queue alone (equation 3)",
    )
    detach_keys: bool = setting(True, "whether gradients through the keys are stopped")
    target_dropout: bool = setting(True, "whether the target branch uses dropout")
    augmented_branch: Literal["online", "target"] = setting(
        "online",
        "branch that reads the text changed by `augmentation`; the other one reads the original "
        "text",
        step_cost="none",
    )
    fgsm_epsilon: float = setting(
        5e-9,
        "step of the FGSM perturbation of the word embeddings; 0: none",
        symbol="ε",
        step_cost="switch",
        ge=0,
    )
    fgsm_gradient: Literal["previous", "current"] = setting(
        "previous", "batch whose gradient FGSM uses; `current` needs a second pass per step"
    )
    projection_layers: Layers = setting(
        1, "layers of the projection head", unit="layers", step_cost="scales"
    )
    prediction_layers: Layers = setting(
        2, "layers of the prediction head", unit="layers", step_cost="scales"
    )
    prediction_dim: Positive | None = setting(
        None,
        "dimension of queries, keys and queue: of the outputs of projection and prediction head; "
        "by default the encoder's",
        step_cost="scales",
    )
    predictor_hidden_dim: Positive | None = setting(
        None,
        "dimension inside the prediction head; by default that of its output",
        step_cost="scales",
    )

    head_norm_eps: float = setting(1e-5, "ε of the LayerNorms in the heads", step_cost="none", gt=0)
    head_initialisation: Literal["torch", "bert"] = setting(
        "torch",
        "initial weights of the heads: those of torch; `bert`: normal with standard deviation "
        "0.02, biases 0, and the pooler that was pre-trained with the encoder, if it has one",
        step_cost="none",
    )

    @classmethod
    def fill(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """The preset's values, and an `initial_queue_size` of at most `queue_size`."""
        preset = values.get("preset", "intended")
        filled = dict(PRESETS.get(preset, {}) if isinstance(preset, str) else {})
        size = values.get("queue_size", cls.model_fields["queue_size"].default)
        if isinstance(size, int) and size >= 0:
            filled["initial_queue_size"] = min(DEFAULT_INITIAL, size)
        return filled

    def check(self) -> None:
        """Raise ValueError for an invalid combination of values."""
        self._check_queue()
        if self.ema_decay_end is not None and self.ema_decay_end < self.ema_decay:
            raise ValueError(
                f"ema_decay {self.ema_decay} is above ema_decay_end {self.ema_decay_end}, but a "
                "schedule must rise; for a constant decay set ema_decay_end: null"
            )
        if self.prediction_dim and not self.projection_layers:
            raise ValueError(
                f"prediction_dim {self.prediction_dim} is the dimension of the projection's output "
                "and needs projection_layers of 1 or more"
            )
        if self.queue_size == 0 and not (self.in_batch_negatives and self.batch_size > 1):
            raise ValueError(
                "queue_size 0 leaves no negatives with batch_size 1 or without in_batch_negatives"
            )

    def _check_queue(self) -> None:
        if self.initial_queue_size > self.queue_size:
            raise ValueError(
                f"initial_queue_size {self.initial_queue_size} exceeds queue_size "
                f"{self.queue_size}; it may be 0 to queue_size"
            )
        slices = parse_slices(self.queue_slice) or []
        for first, last in slices:
            if last > self.queue_size:
                raise ValueError(
                    f"queue_slice {first}-{last} lies outside queue_size {self.queue_size}"
                )
        used = sum(last - first for first, last in slices) or self.queue_size
        if self.queue_clusters > used:
            raise ValueError(
                f"queue_clusters {self.queue_clusters} exceeds the {used} positions in use; "
                "choose 0 (no clusters) to that number"
            )

    @property
    def mtd(self) -> float:
        """Maximum traceable distance in steps (equation 4).

        With a schedule of the decay, the mean over the run's steps. A schedule that ends at 1 has
        no finite mean: then it is the MTD of its start, as the paper labels such runs.
        """
        if self.ema_decay_end in (None, 1):
            return super().mtd
        return mean_trace(self) + self.queue_size / self.batch_size

    def head_operations(self, width: int) -> float:
        """Multiplications per sentence outside the encoder: heads, and similarity to the queue."""
        output = self.prediction_dim or width
        # the first layer of the projection changes the dimension; without layers there is none
        projection = output * (width + (self.projection_layers - 1) * output)
        return (
            float(width**2 + self.queue_size * output)
            + bool(self.projection_layers) * projection
            + self.prediction_layers * output * (self.predictor_hidden_dim or output)
        )
