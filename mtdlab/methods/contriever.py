"""Contriever (Izacard et al., TMLR 2022): momentum contrast of two crops of a document.

The positive pair of a document is two random crops, each with some tokens deleted. The keys are a
momentum encoder's, the average of all weights; there is no head. Vectors are means over tokens and
are compared by dot product. Negatives are the queue alone, which starts full of random unit
vectors. The published values, of 32 GPUs, are the defaults. docs/methods/contriever.md compares it
with the paper and its program.

Letters: N batch, L tokens, K queue, V rows of it in use, D dimension.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mtdlab.device import Device
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout, evaluation_mode
from mtdlab.methods.base import Method, Step, Tokens, Transformer, View
from mtdlab.methods.history import Decay, HistorySettings
from mtdlab.methods.losses import at_least_float32, unit
from mtdlab.methods.momentum import averaged_pairs, draw_weights, ema_update, make_target
from mtdlab.methods.perturbations import EmbeddingNoise, RandomDraws, repeat_tokens
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.queue import KeyQueue, find_ages
from mtdlab.settings import POOLING, Pooling, TrainerSettings, costless, setting, with_default
from mtdlab.settings.trainer import Count, Positive

OFFSET = 4_000_037
"""Added to a run's seed for the generator of crops; other generators have other offsets."""

Share = Annotated[float, Field(gt=0, le=1)]


class ContrieverSettings(HistorySettings):
    """The settings of Contriever: crops, momentum encoder, queue, and its published values."""

    presets = PRESETS["contriever"]

    pooling: Pooling = with_default(HistorySettings, "pooling", "mean", POOLING)
    ema_decay: Decay = with_default(HistorySettings, "ema_decay", 0.9995)
    queue_size: Positive = with_default(
        HistorySettings,
        "queue_size",
        131_072,
        "keys of earlier batches, the only negatives; by default 64 batches",
    )
    initial_queue_size: Count = costless(
        131_072,
        "random unit vectors that the queue starts with; by default K",
        symbol="K_s",
        unit="keys",
        relative_to="queue_size",
    )
    batch_size: Positive = setting(
        2048, "documents per training step", symbol="N", unit="documents"
    )
    crop_min: Share = costless(0.05, "least share of a document in a crop")
    crop_max: Share = setting(0.5, "greatest share of a document in a crop")
    deletion_rate: float = costless(
        0.1, "probability that a token of a crop is deleted", ge=0, lt=1
    )
    normalise: bool = costless(
        False, "whether vectors are compared by cosine; false: by dot product, as they are"
    )
    target_dropout: bool = setting(False, "whether keys are encoded with dropout")
    learning_rate: float = with_default(HistorySettings, "learning_rate", 5e-5)
    warmup_steps: Count = with_default(
        HistorySettings,
        "warmup_steps",
        20_000,
        "steps over which the learning rate rises linearly from 0; by default steps / 25",
    )
    max_length: int = with_default(
        HistorySettings,
        "max_length",
        256,
        "tokens per document, into which consecutive sentences are joined",
    )
    steps: int = with_default(HistorySettings, "steps", 500_000)

    def check(self) -> None:
        super().check()
        if self.crop_min > self.crop_max:
            raise ValueError(
                f"crop_min {self.crop_min} exceeds crop_max {self.crop_max}; lower crop_min"
            )
        if self.prompt:
            raise ValueError("contriever crops documents, which have no prompt; remove prompt")


class Contriever(Method[ContrieverSettings]):
    """InfoNCE of two crops of a document, by dot product, with the queue's keys as negatives."""

    name = "contriever"
    title = "Contriever"
    source = "Izacard et al., TMLR 2022"
    negatives = (
        "Its positives were pairs of crops of a document, its negatives a queue of "
        "{settings.queue_size} keys of a momentum encoder (EMA decay {settings.ema_decay}), in "
        "batches of {settings.batch_size}: a maximum traceable distance of {settings.mtd:.2f} "
        "steps."
    )
    Settings = ContrieverSettings

    def __init__(self, encoder: Transformer, settings: ContrieverSettings, device: Device) -> None:
        super().__init__(encoder, settings, device)
        self.online = encoder
        self.target = make_target(encoder)
        if settings.target_initialisation == "random":
            draw_weights(self.target)
        width = int(encoder.config.hidden_size)
        queue = KeyQueue(settings.queue_size, width, initial=settings.initial_queue_size)
        self.queue = queue.to(device.device)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings, encoder, device.device)
        self.crops = Crops(settings, device.device)
        self._averaged = averaged_pairs(self.target, encoder)

    @classmethod
    def views(cls, settings: TrainerSettings) -> tuple[View, ...]:
        """Documents: the augmented text and the original, or only the latter."""
        views = super().views(settings)
        return tuple(replace(view, document=True, positive=False) for view in views)

    @classmethod
    def views_differ(cls, _settings: Any) -> bool:
        return True

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """InfoNCE of crops of the first view and the last; the average is updated between them."""
        queries = self._vectors(self.online, self.dropout, *self.crops(*views[0]))
        ema_update(*self._averaged, self.settings.ema_decay)
        drops = self.settings.target_dropout
        with torch.no_grad(), evaluation_mode(self.target, wanted=not drops):
            dropout = self.dropout if drops else NO_DROPOUT
            keys = self._vectors(self.target, dropout, *self.crops(*views[-1]))
        loss = queue_loss(queries, keys, self.queue.negatives(), self.settings.temperature)
        return Step(loss, keys, {"queue_fill": self.queue.fill})

    def update(self, step: int, result: Step) -> None:  # noqa: ARG002
        if result.keys is not None:
            self.queue.enqueue(result.keys)

    @torch.no_grad()
    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) of sentences by the momentum encoder, without dropout and crops."""
        return self._still(self.target, ids, mask)

    @torch.no_grad()
    def online_keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """The same (N, D) by the online encoder."""
        return self._still(self.online, ids, mask)

    def ages_in_use(self, step: int) -> tuple[int, int]:
        return find_ages(self.settings.queue_size, self.settings.batch_size, step)

    def _still(self, encoder: Transformer, ids: Tensor, mask: Tensor) -> Tensor:
        with evaluation_mode(encoder):
            return unit(self._vectors(encoder, NO_DROPOUT, ids, mask, noisy=False))

    def parts(self) -> dict[str, nn.Module]:
        return {
            "encoder": self.online,
            "dropout": self.dropout,
            "target": self.target,
            "queue": self.queue,
        }

    def _vectors(
        self,
        encoder: Transformer,
        dropout: Dropout,
        ids: Tensor,
        mask: Tensor,
        *,
        noisy: bool = True,
    ) -> Tensor:
        """Vectors (N, D) in float32 or wider, of unit length with `normalise`."""
        words = encoder.get_input_embeddings()(ids)
        words = self.noise(words, mask) if noisy else words
        vectors = at_least_float32(self.vectors(encoder, words, mask, dropout))
        return unit(vectors) if self.settings.normalise else vectors


def queue_loss(queries: Tensor, keys: Tensor, negatives: Tensor, temperature: float) -> Tensor:
    """InfoNCE () by dot product of queries and keys (N, D) against negatives (V, D) alone.

    −log [exp(q·k/τ) / (exp(q·k/τ) + Σ_l exp(q·l/τ))], mean over the batch.
    """
    positive = (queries * keys).sum(dim=1, keepdim=True)
    logits = torch.cat([positive, queries @ negatives.T.to(queries.dtype)], dim=1) / temperature
    first = torch.zeros(len(queries), dtype=torch.long, device=queries.device)
    return cross_entropy(logits, first)


class Crops(RandomDraws):
    """Random crops of documents, with deleted tokens."""

    def __init__(self, settings: ContrieverSettings, device: torch.device) -> None:
        super().__init__(settings.seed + OFFSET, device)
        self.least, self.most = settings.crop_min, settings.crop_max
        self.deletion = settings.deletion_rate

    def forward(self, ids: Tensor, mask: Tensor) -> Tokens:
        """Ids and mask (N, L') of one crop of each document, from ids and mask (N, L).

        Of n tokens between [CLS] and [SEP], which stay, a crop has ⌊u n⌋ consecutive ones, at least
        one, u uniform in `least` to `most`, at a uniform place. Then each is deleted with the
        probability `deletion`; at least one remains.
        """
        lengths = mask.sum(dim=1, keepdim=True) - 2
        share = self.least + (self.most - self.least) * self.uniform(lengths)
        size = (share * lengths).long().clamp(min=1).minimum(lengths)
        begin = 1 + (self.uniform(lengths) * (lengths - size + 1)).long()
        places = torch.arange(mask.shape[1], device=mask.device)
        inside = (places >= begin) & (places < begin + size)
        draws = self.uniform(inside)
        # the token with the greatest draw remains
        spared = draws == draws.masked_fill(~inside, -1).amax(dim=1, keepdim=True)
        kept = inside & ((draws >= self.deletion) | spared)
        kept = kept | (places == 0) | (places == lengths + 1)
        return repeat_tokens(ids, kept.long())
