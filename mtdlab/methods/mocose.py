"""MoCoSE (Cao et al., Findings of ACL 2022): momentum contrast with a negative queue.

Letters: N batch, L tokens, V queue rows in use, D dimension.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal

import torch
from pydantic import AfterValidator, Field
from torch import Tensor, nn
from torch.nn.functional import normalize

from mtdlab.encoders.dropout import NO_DROPOUT, Dropout
from mtdlab.methods.base import Method, Step, Tokens, evaluation_mode
from mtdlab.methods.clusters import centroids
from mtdlab.methods.heads import Branch, embedding_block, predictor, word_table
from mtdlab.methods.history import HistorySettings
from mtdlab.methods.losses import at_least_float32, info_nce
from mtdlab.methods.momentum import averaged_pairs, ema_update, make_target
from mtdlab.methods.perturbations import EmbeddingNoise, Fgsm, changed_share
from mtdlab.methods.queue import KeyQueue, PublishedQueue, parse_slices
from mtdlab.settings import limits, setting
from mtdlab.settings.schedules import ema_decay_at, mean_trace
from mtdlab.settings.trainer import Count, Positive

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from mtdlab.device import Device

Layers = Annotated[int, Field(ge=0, le=limits.LAYERS)]
DEFAULT_INITIAL = 128
"""K_s if not given; a smaller queue starts full."""

PRESETS: Mapping[str, Mapping[str, Any]] = {
    # the defaults of the fields: the paper's method at its base size; what the paper leaves open is
    # taken from its published code
    "intended": {},
    # the paper's text, except that its similarity, a dot product without a temperature, does not
    # reproduce its results: cosine similarity and temperature 0.05 are kept
    "paper": {
        # equation 3 sums over the queue alone; equation 1 uses the gradient of the same batch
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
        "fgsm_gradient": "previous",
        "queue_fill": "published",
        "select_on": "test",
    },
}


def _checked_slices(text: str) -> str:
    parse_slices(text)
    return text


class MoCoSESettings(HistorySettings):
    """The settings of MoCoSE; `preset` sets those that are not given."""

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
    queue_slice: Annotated[str, AfterValidator(_checked_slices)] = setting(
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
        None, "dimension inside the prediction head; by default the encoder's", step_cost="scales"
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
        projection = self.projection_layers * width**2
        return (
            super().head_operations(width)
            + projection
            + self.prediction_layers * width * (self.prediction_dim or width)
        )


class MoCoSE(Method[MoCoSESettings]):
    """An online branch with a predictor, a target branch (its EMA), and a queue of target keys.

    Both branches share the embedding block, which is trained and not averaged.
    """

    name = "mocose"
    title = "MoCoSE"
    source = "Cao et al., Findings of ACL 2022"
    Settings = MoCoSESettings

    def __init__(
        self, encoder: "PreTrainedModel", settings: MoCoSESettings, device: "Device"
    ) -> None:
        """The order of construction fixes the order of random draws."""
        super().__init__(encoder, settings, device)
        width = int(encoder.config.hidden_size)
        self.online = Branch(
            encoder,
            representation=settings.representation,
            dropout=settings.dropout,
            projection_layers=settings.projection_layers,
        ).to(device.device)
        self.target = make_target(self.online, shared=embedding_block(encoder))
        # the published program freezes the target's encoder and pooler, but not its projection
        self.target.projection.requires_grad_(not settings.detach_keys)
        self.predictor = predictor(
            width, settings.prediction_dim or width, settings.prediction_layers, settings.dropout
        ).to(device.device)
        queue = PublishedQueue if settings.queue_fill == "published" else KeyQueue
        self.queue = queue(
            settings.queue_size,
            width,
            initial=settings.initial_queue_size,
            slices=parse_slices(settings.queue_slice),
        ).to(device.device)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings.augmentation, settings.seed, device.device)
        self.fgsm = Fgsm(settings.fgsm_epsilon)
        self._averaged = averaged_pairs(self.target, self.online)
        self.train()

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        """InfoNCE of the online branch's queries and the target branch's keys.

        The online branch reads the first view, the target the last.
        """
        settings = self.settings
        decay = ema_decay_at(step, settings)
        if settings.ema_order == "before-target":
            self.average(decay)
        masks = [mask for _, mask in views]
        clean = self.look_up([ids for ids, _ in views])
        if settings.fgsm_gradient == "current" and settings.fgsm_epsilon:
            self.fgsm.gradient = self.gradient(clean, masks)
        words = [self.fgsm(one) for one in clean]
        self.fgsm.retain(words[0])
        queries, keys = self.encode(words, masks)
        loss = self.loss(queries, keys)
        measures: dict[str, Tensor | float] = {
            "fgsm_changed": changed_share(clean[0], words[0]),
            "ema_decay": decay,
            "queue_fill": self.queue.fill,
        }
        return Step(loss, normalize(at_least_float32(keys.detach()), dim=1), measures)

    def update(self, step: int, result: Step) -> None:
        """Average the target branch and enqueue the keys."""
        self.fgsm.keep_gradient()
        if self.settings.ema_order == "after-step":
            self.average(ema_decay_at(step, self.settings))
        if result.keys is not None:
            self.queue.enqueue(result.keys)

    @torch.no_grad()
    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) of sentences by the target branch, in evaluation mode."""
        with evaluation_mode(self.target), self.device.autocast():
            keys = self.target(word_table(self.online.encoder)(ids), mask, NO_DROPOUT)
        return normalize(at_least_float32(keys), dim=1)

    def parts(self) -> dict[str, nn.Module]:
        """Encoder, heads, dropout generator, target branch, queue."""
        heads = {
            "pooler": self.online.pooler,
            "projection": self.online.projection,
            "predictor": self.predictor,
        }
        return {
            "encoder": self.online.encoder,
            "heads": nn.ModuleDict(heads),
            "dropout": self.dropout,
            "target": self.target,
            "queue": self.queue,
        }

    @classmethod
    def describe(cls, settings: MoCoSESettings) -> str:
        """A sentence for the model card: the source of the negatives."""
        return (
            f"Its negatives came from a queue of {settings.queue_size} keys of a momentum encoder "
            f"(EMA decay {settings.ema_decay}), in batches of {settings.batch_size}: a maximum "
            f"traceable distance of {settings.mtd:.2f} steps."
        )

    def average(self, decay: float) -> None:
        """EMA update of the target branch (equation 2)."""
        ema_update(*self._averaged, decay)

    def look_up(self, ids: Sequence[Tensor]) -> list[Tensor]:
        """Word embeddings (N, L, D) of each view's token ids (N, L).

        With a single view both branches share one tensor, unless gradients pass through the keys
        and FGSM needs the gradient of the online branch alone (published program): then there are
        two.
        """
        if len(ids) == 1 and self.settings.fgsm_epsilon and not self.settings.detach_keys:
            ids = [*ids, *ids]
        table = word_table(self.online.encoder)
        return [table(one) for one in ids]

    def encode(self, words: Sequence[Tensor], masks: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Queries and keys, both (N, D), of word embeddings (N, L, D) under masks (N, L)."""
        noisy = self.noise(words[0], masks[0])
        twin = self.noise(words[-1], masks[-1])
        with self.device.autocast():
            queries = self.predictor(self.online(noisy, masks[0], self.dropout))
            with torch.set_grad_enabled(not self.settings.detach_keys), self._target_mode():
                dropout = self.dropout if self.settings.target_dropout else NO_DROPOUT
                keys = self.target(twin, masks[-1], dropout)
        return queries, keys

    def loss(self, queries: Tensor, keys: Tensor) -> Tensor:
        """InfoNCE () of queries (N, D) and keys (N, D) against the queue, or its clusters."""
        negatives = self.queue.negatives()
        if self.settings.queue_clusters:
            negatives = centroids(negatives, self.settings.queue_clusters)
        return info_nce(
            queries,
            keys,
            negatives,
            self.settings.temperature,
            in_batch_negatives=self.settings.in_batch_negatives,
        )

    def gradient(self, words: Sequence[Tensor], masks: Sequence[Tensor]) -> Tensor:
        """∇_x L (N, L, D) with respect to the online branch's word embeddings, by an extra pass."""
        (gradient,) = torch.autograd.grad(self.loss(*self.encode(words, masks)), words[0])
        return gradient

    def _target_mode(self) -> AbstractContextManager[None]:
        """Evaluation mode if the target has no dropout; the modes of all modules are restored."""
        return nullcontext() if self.settings.target_dropout else evaluation_mode(self.target)
