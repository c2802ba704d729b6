"""The settings of MoCoSE.

Source: Cao et al., Findings of ACL 2022, and the program that its authors published.

This module imports no torch, see `mtdlab.methods.registry.SETTINGS`.
"""

import itertools
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from mtdlab.analysis.measures.trace import EmaDecay
from mtdlab.methods.history import HeadSettings, HistorySettings
from mtdlab.methods.presets import PRESETS
from mtdlab.settings import costless, limits, setting
from mtdlab.settings.trainer import Count, Positive

Layers = Annotated[int, Field(ge=0, le=limits.LAYERS)]


def parse_slices(text: str) -> list[tuple[int, int]]:
    """Half-open ranges of queue positions, 0 the newest; none for "all".

    Raises ValueError for a text that is neither "all" nor ranges such as "0-256,768-1024".
    """
    slices = []
    for part in text.split(",") if text != "all" else ():
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


class MoCoSESettings(HistorySettings, HeadSettings):
    """The settings of MoCoSE."""

    title: ClassVar[str] = "MoCoSE"
    presets = PRESETS["mocose"]

    ema_decay_end: Annotated[float, Field(ge=0, le=1)] | None = costless(
        None, "end of a cosine schedule of the EMA decay"
    )
    ema_schedule_steps: Positive | None = costless(
        None, "length of that schedule; by default `steps`", unit="steps"
    )
    ema_order: Literal["after-step", "before-target"] = costless(
        "after-step",
        "when the momentum encoder is updated; `before-target`: before the forward pass of the "
        "target branch, as in the published program",
    )
    initial_queue_size: Count = costless(
        128,
        "random unit vectors that the queue starts with; by default min(128, K)",
        symbol="K_s",
        unit="keys",
        relative_to="queue_size",
    )
    queue_slice: Annotated[str, AfterValidator(_check_slices)] = setting(
        "all",
        "positions of the queue that enter the loss once full, 0 the newest; `0-256,768-1024`",
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
    equivalent_negatives: Count = costless(
        0,
        "negatives to whose sum that of the negatives in use is scaled, so that the size of the "
        "loss does not depend on their number (EqCo); 0: it is not scaled",
        symbol="α",
    )
    positive_branch: Literal["target", "online"] = setting(
        "target",
        "branch that makes the positive of a query and the in-batch negatives; `online`: with "
        "gradient and without the prediction head, so that the EMA decay acts on the queue alone",
    )
    target: Literal["ema", "frozen"] = setting(
        "ema",
        "weights of the target branch: the average of the online branch's; `frozen`: those it "
        "starts with, embeddings included, so that keys do not age and there is no MTD",
    )
    detach_keys: bool = setting(True, "whether gradients through the keys are stopped")
    target_dropout: bool = setting(True, "whether the target branch uses dropout")
    augmented_branch: Literal["online", "target"] = costless(
        "online",
        "branch that reads the text changed by `augmentation`; the other one reads the original "
        "text",
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
    projection_layers: Layers = setting(1, "layers of the projection head", unit="layers")
    prediction_layers: Layers = setting(2, "layers of the prediction head", unit="layers")
    prediction_dim: Positive | None = setting(
        None,
        "dimension of queries, keys and queue: of the outputs of projection and prediction head; "
        "by default the encoder's",
    )
    predictor_hidden_dim: Positive | None = setting(
        None, "dimension inside the prediction head; by default that of its output"
    )

    head_norm_eps: float = costless(1e-5, "ε of the LayerNorms in the heads", gt=0)

    def check(self) -> None:
        super().check()
        self._check_positions()
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
        if self.target == "frozen" and not self.detach_keys:
            raise ValueError(
                "detach_keys false trains parts of the target branch, which target frozen forbids; "
                "choose detach_keys true, or target ema"
            )
        if self.queue_size == 0 and not (self.in_batch_negatives and self.batch_size > 1):
            raise ValueError(
                "queue_size 0 leaves no negatives with batch_size 1 or without in_batch_negatives"
            )

    def _check_positions(self) -> None:
        slices = parse_slices(self.queue_slice)
        for first, last in slices:
            if last > self.queue_size:
                raise ValueError(
                    f"queue_slice {first}-{last} lies outside queue_size {self.queue_size}"
                )
        most = self.initial_queue_size + (self.steps - 1) * self.batch_size
        if slices and most < self.queue_size:
            raise ValueError(
                f"queue_slice {self.queue_slice} is used once the queue is full, but {self.steps} "
                f"steps of batch_size {self.batch_size} do not fill queue_size {self.queue_size}"
            )
        used = sum(last - first for first, last in slices) or self.queue_size
        if self.queue_clusters > used:
            raise ValueError(
                f"queue_clusters {self.queue_clusters} exceeds the {used} positions in use; "
                "choose 0 (no clusters) to that number"
            )

    @property
    def without_effect(self) -> Mapping[str, str]:
        """With a frozen target the EMA decay and its schedule."""
        names = ("ema_decay", "ema_decay_end", "ema_schedule_steps", "ema_order")
        return dict.fromkeys(names, "target: frozen") if self.target == "frozen" else {}

    @property
    def mtd(self) -> float | None:  # type: ignore[override]  # a frozen target has no age
        """MTD in steps (equation 4), of a schedule by `EmaDecay.trace`; None if frozen."""
        if self.target == "frozen":
            return None
        return self.schedule.trace(self.steps) + self.queue_size / self.batch_size

    @property
    def schedule(self) -> EmaDecay:
        """The EMA decay of each step; with `before-target` one step ahead, as published."""
        shift = int(self.ema_order == "before-target")
        return EmaDecay(self.ema_decay, self.ema_decay_end, self.ema_schedule_steps, shift)
