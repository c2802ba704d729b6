"""What one run trains, put together: both branches, the predictor and the queue.

MoCoSE and SimCSE are the same parts in two arrangements. In SimCSE the target is the online
branch itself, so that nothing is averaged, and the queue stays empty.

Letters: N batch, L tokens, V queue rows in use, D dimension.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mtdlab.config import TrainerSettings
from mtdlab.config.settings import parse_slices
from mtdlab.device import Device
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout
from mtdlab.methods.clusters import centroids
from mtdlab.methods.heads import Branch, embedding_block, predictor, word_table
from mtdlab.methods.losses import info_nce
from mtdlab.methods.momentum import averaged_pairs, ema_update, make_target
from mtdlab.methods.perturbations import EmbeddingNoise
from mtdlab.methods.queue import KeyQueue, PublishedQueue


class Model:
    """Online and target branch, predictor, queue, and how a method makes a loss of them."""

    def __init__(self, encoder: PreTrainedModel, settings: TrainerSettings, device: Device) -> None:
        """Take `encoder` as the online branch's own; heads and first keys are torch's draws."""
        self.settings, self.device = settings, device
        self.online = Branch(encoder, settings).to(device.device)
        self.target = _target(self.online, settings)
        self.predictor = _predictor(encoder, settings).to(device.device)
        self.queue = _queue(encoder, settings).to(device.device)
        self.words = word_table(encoder)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings.augmentation, settings.seed, device.device)
        self._averaged = averaged_pairs(self.target, self.online)
        for module in (self.online, self.target, self.predictor):
            module.train()

    def trained(self) -> list[nn.Parameter]:
        """What the optimiser moves; of the target, its projection where keys take gradients."""
        modules = (self.online, self.predictor, self.target)
        every = {id(one): one for module in modules for one in module.parameters()}
        return [parameter for parameter in every.values() if parameter.requires_grad]

    def parts(self) -> dict[str, nn.Module]:
        """What a checkpoint holds; SimCSE has no target and no queue."""
        heads = {
            "pooler": self.online.pooler,
            "projection": self.online.projection,
            "predictor": self.predictor,
        }
        parts: dict[str, nn.Module] = {
            "encoder": self.online.encoder,
            "heads": nn.ModuleDict(heads),
            "dropout": self.dropout,
        }
        if self.target is not self.online:
            parts |= {"target": self.target, "queue": self.queue}
        return parts

    def average(self, decay: float) -> None:
        """Move the target towards the online branch (equation 2)."""
        ema_update(*self._averaged, decay)

    def look_up(self, ids: Sequence[Tensor]) -> list[Tensor]:
        """Word embeddings (N, L, D) of each view's token ids (N, L).

        A single view is one tensor for both branches. Where keys take gradients too and FGSM wants
        the online branch's alone, as in the published program, each has its own.
        """
        if len(ids) == 1 and self.settings.fgsm_epsilon and not self.settings.detach_keys:
            ids = [*ids, *ids]
        return [self.words(one) for one in ids]

    def encode(self, words: Sequence[Tensor], masks: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Queries and keys, both (N, D), of word embeddings (N, L, D) under masks (N, L).

        The online branch reads the first view, the target the last.
        """
        noisy = self.noise(words[0], masks[0])
        twin = self.noise(words[-1], masks[-1])
        with self.device.autocast():
            queries = self.predictor(self.online(noisy, masks[0], self.dropout))
            with torch.set_grad_enabled(not self.settings.detach_keys), self._as_target():
                keys = self.target(twin, masks[-1], self._target_dropout())
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
        """∇_x L (N, L, D) of the online branch's words: a pass that moves no weight."""
        (gradient,) = torch.autograd.grad(self.loss(*self.encode(words, masks)), words[0])
        return gradient

    def _target_dropout(self) -> Dropout:
        return self.dropout if self.settings.target_dropout else NO_DROPOUT

    @contextmanager
    def _as_target(self) -> Iterator[None]:
        """The target's mode. The embedding block is both branches', so it is put back."""
        if self.settings.target_dropout:
            yield
            return
        self.target.eval()
        try:
            yield
        finally:
            self.target.train()


def _target(online: Branch, settings: TrainerSettings) -> Branch:
    if settings.method == "simcse":
        return online
    target = make_target(online, shared=embedding_block(online.encoder))
    # the published program freezes the target's encoder and pooler, and forgets its projection
    target.projection.requires_grad_(not settings.detach_keys)
    return target


def _predictor(encoder: PreTrainedModel, settings: TrainerSettings) -> nn.Module:
    dimension = int(encoder.config.hidden_size)
    hidden = settings.prediction_dim or dimension
    return predictor(dimension, hidden, settings.prediction_layers, settings.dropout)


def _queue(encoder: PreTrainedModel, settings: TrainerSettings) -> KeyQueue | PublishedQueue:
    kind = PublishedQueue if settings.queue_fill == "published" else KeyQueue
    return kind(
        settings.queue_size,
        int(encoder.config.hidden_size),
        initial=settings.initial_queue_size,
        slices=parse_slices(settings.queue_slice),
    )
