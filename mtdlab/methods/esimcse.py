"""ESimCSE (Wu et al., COLING 2022): SimCSE with repeated sub-words and a queue of momentum keys.

Two changes to SimCSE. Some sub-words of the second view are repeated, drawn anew at every step, so
that the views of a positive pair differ in length. Vectors of earlier batches by a momentum encoder
without dropout are negatives in addition to the in-batch negatives.

The momentum encoder is a full copy, word embeddings included, and all of it is averaged; it uses
the head of the online encoder. The queue starts empty. docs/methods/esimcse.md compares it with the
paper and its program.

Letters: N batch, L tokens, K queue, D dimension.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.pooling import position_limit
from mtdlab.methods.base import Step, Tokens, Transformer
from mtdlab.methods.history import Decay, HistorySettings
from mtdlab.methods.losses import info_nce
from mtdlab.methods.momentum import averaged_pairs, draw_weights, ema_update, make_target
from mtdlab.methods.perturbations import RandomDraws, repeat_tokens
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.queue import KeyQueue, find_ages
from mtdlab.methods.simcse import TwoPass, TwoPassSettings
from mtdlab.settings import costless, setting, with_default
from mtdlab.settings.trainer import Count, Positive

OFFSET = 2_000_003
"""Added to a run's seed for the generator of repetitions; other generators have other offsets."""

Draw = Literal["paper", "published-code"]


class ESimCSESettings(HistorySettings, TwoPassSettings):
    """The settings of ESimCSE: repetition, momentum encoder and queue."""

    presets = PRESETS["esimcse"]
    least_batch = 2

    evaluate_every: Positive = with_default(HistorySettings, "evaluate_every", 125)
    ema_decay: Decay = with_default(HistorySettings, "ema_decay", 0.995)
    queue_size: Count = with_default(
        HistorySettings,
        "queue_size",
        160,
        "keys of earlier batches that serve as negatives; by default 2.5 batches",
    )
    repetition_rate: Annotated[float, Field(ge=0, le=1)] = setting(
        0.32, "maximum share of a sentence's tokens that are repeated; 0: none", step_cost="switch"
    )
    repetition_draw: Draw = costless(
        "paper",
        "distribution of the number of repeated tokens: uniform in 0 to max(2, ⌊rate n⌋) of n "
        "sub-words; `published-code`: in 0 to min(10, ⌊rate n⌋) − 1, [CLS] and [SEP] counted in n",
    )


class ESimCSE(TwoPass[ESimCSESettings]):
    """InfoNCE of sentences and their copies with repeated sub-words; batch and queue negatives."""

    name = "esimcse"
    title = "ESimCSE"
    source = "Wu et al., COLING 2022"
    negatives = (
        "Its negatives were the other sentences of a batch of {settings.batch_size} and a queue of "
        "{settings.queue_size} keys of a momentum encoder (EMA decay {settings.ema_decay}): a "
        "maximum traceable distance of {settings.mtd:.2f} steps."
    )
    Settings = ESimCSESettings

    def __init__(self, encoder: Transformer, settings: ESimCSESettings, device: Device) -> None:
        super().__init__(encoder, settings, device)
        self.target = make_target(self.branch, shared=self.branch.pooler)
        queue = KeyQueue(settings.queue_size, int(encoder.config.hidden_size))
        self.queue = queue.to(device.device)
        self.repetition = Repetition(settings, position_limit(encoder), device.device)
        self._averaged = averaged_pairs(self.target, self.branch)
        if settings.target_initialisation == "random":
            draw_weights(self.target.encoder)
            # before the first keys too: of a copy this average changes nothing
            ema_update(*self._averaged, settings.ema_decay)

    @classmethod
    def views_differ(cls, settings: Any) -> bool:
        return settings.repetition_rate > 0 or super().views_differ(settings)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """InfoNCE of the first view and the last, with repeated sub-words; N + K candidates."""
        first, second = self.encode([views[0], self.repetition(*views[-1])])
        loss = info_nce(first, second, self.queue.negatives(), self.settings.temperature)
        return Step(loss, self.keys(*views[-1]), {"queue_fill": self.queue.fill})

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) by the momentum encoder and the head of the online encoder."""
        return self.target.keys(ids, mask, self.device)

    def online_keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) by the online encoder and its head."""
        return self.branch.keys(ids, mask, self.device)

    def ages_in_use(self, step: int) -> tuple[int, int]:
        return find_ages(self.settings.queue_size, self.settings.batch_size, step)

    def update(self, step: int, result: Step) -> None:  # noqa: ARG002
        ema_update(*self._averaged, self.settings.ema_decay)
        if result.keys is not None:
            self.queue.enqueue(result.keys)

    def parts(self) -> dict[str, nn.Module]:
        return {**super().parts(), "target": self.target, "queue": self.queue}


class Repetition(RandomDraws):
    """Repeats some tokens of each sentence, each directly after itself."""

    def __init__(self, settings: ESimCSESettings, limit: int, device: torch.device) -> None:
        """`limit` is the maximum number of tokens of a sentence afterwards."""
        super().__init__(settings.seed + OFFSET, device)
        self.rate, self.draw = settings.repetition_rate, settings.repetition_draw
        self.limit = limit

    def forward(self, ids: Tensor, mask: Tensor) -> Tokens:
        """Ids and mask (N, L') of the sentences with repeated tokens, from ids and mask (N, L).

        The first and the last real token, [CLS] and [SEP], are never repeated. As in the published
        program, L' may exceed `max_length`, but not `limit`, the number of the encoder's positions.
        """
        if not self.rate:
            return ids, mask
        lengths = mask.sum(dim=1, keepdim=True)
        places = torch.arange(mask.shape[1], device=mask.device)
        repeatable = (places > 0) & (places < lengths - 1)
        draws = self.uniform(repeatable).masked_fill(~repeatable, torch.inf)
        # uniform in 0 to the maximum, (N, 1)
        counts = (self.uniform(lengths) * (self.most(lengths) + 1)).long()
        chosen = draws.argsort(dim=1).argsort(dim=1) < counts
        return repeat_tokens(ids, mask * (1 + (chosen & repeatable).long()))

    def most(self, lengths: Tensor) -> Tensor:
        """Maximum number of repeated tokens of sentences with `lengths` real tokens, (N, 1)."""
        subwords = (lengths - 2).clamp(min=0)
        if self.draw == "paper":
            most = (subwords.double() * self.rate).long().clamp(min=2)
        else:
            most = (lengths.double() * self.rate).long().clamp(max=10) - 1
        return most.minimum(subwords).minimum(self.limit - lengths).clamp(min=0)
