"""MoCoSE (Cao et al., Findings of ACL 2022): momentum contrast with a negative queue.

Letters: N batch, L tokens, V queue rows in use, P dimension of queries, keys and queue
(`prediction_dim`, by default the encoder's D).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout, evaluation_mode
from mtdlab.methods.base import Method, Step, Tokens, Transformer, View
from mtdlab.methods.heads import Branch, copy_pooler, embedding_block, initialise_heads, predictor
from mtdlab.methods.losses import info_nce, unit
from mtdlab.methods.mocose_settings import MoCoSESettings, parse_slices
from mtdlab.methods.momentum import averaged_pairs, draw_weights, ema_update, make_target
from mtdlab.methods.perturbations import EmbeddingNoise, Fgsm
from mtdlab.methods.queue import KeyQueue, PublishedQueue, centroids, find_ages


class MoCoSE(Method[MoCoSESettings]):
    """An online branch with a predictor, a target branch (its EMA), and a queue of target keys.

    Both branches share the embedding block, which is trained and not averaged, unless the target
    branch is frozen.
    """

    name = "mocose"
    title = MoCoSESettings.title
    source = "Cao et al., Findings of ACL 2022"
    negatives = (
        "Its negatives came from a queue of {settings.queue_size} keys of a momentum encoder (EMA "
        "decay {settings.ema_decay}), in batches of {settings.batch_size}: a maximum traceable "
        "distance of {settings.mtd:.2f} steps."
    )
    Settings = MoCoSESettings

    def __init__(self, encoder: Transformer, settings: MoCoSESettings, device: Device) -> None:
        """The order of construction fixes the order of random draws."""
        super().__init__(encoder, settings, device)
        width = settings.prediction_dim or int(encoder.config.hidden_size)
        self.online = Branch(
            encoder,
            representation=settings.training_representation,
            dropout=settings.dropout,
            projection_layers=settings.projection_layers,
            eps=settings.head_norm_eps,
            output=width,
        ).to(device.device)
        head = predictor(
            width,
            settings.predictor_hidden_dim or width,
            settings.prediction_layers,
            settings.dropout,
            settings.head_norm_eps,
        ).to(device.device)
        heads = (self.online.pooler, self.online.projection, head)
        initialise_heads(settings.head_initialisation, *heads)
        self.is_frozen = settings.target == "frozen"
        shared = None if self.is_frozen else embedding_block(encoder)
        self.target = make_target(self.online, shared=shared)
        if settings.target_initialisation == "random":
            draw_weights(self.target.encoder)
        # the published program freezes the target's encoder and pooler, but not its projection
        self.target.projection.requires_grad_(not settings.detach_keys)
        self.predictor = head
        queue = PublishedQueue if settings.queue_fill == "published" else KeyQueue
        self.queue = queue(
            settings.queue_size,
            width,
            initial=settings.initial_queue_size,
            slices=parse_slices(settings.queue_slice),
        ).to(device.device)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings, encoder, device.device)
        self.fgsm = Fgsm(settings.fgsm_epsilon)
        self._averaged = averaged_pairs(self.target, self.online)

    @classmethod
    def views(cls, settings: Any) -> tuple[View, ...]:
        """The views of the online and of the target branch; one view for both if they are equal."""
        views = super().views(settings)
        if settings.augmented_branch == "online":
            return views
        changes = [view.augmentation for view in views]
        swapped = zip(views, changes[::-1], strict=True)
        return tuple(replace(view, augmentation=change) for view, change in swapped)

    def use_pooler(self, pooler: nn.Module | None) -> None:
        """Start both branches from the encoder's pooler, if there is one, for heads of `bert`."""
        if self.settings.head_initialisation == "bert":
            for branch in (self.online, self.target):
                copy_pooler(pooler, branch.pooler)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        """InfoNCE of the online branch's queries, of the first view, and keys of the last view."""
        settings = self.settings
        if settings.ema_order == "before-target":
            ema_update(*self._averaged, self.decay(step))
        masks = [mask for _, mask in views]
        clean = self.look_up([ids for ids, _ in views])
        if settings.fgsm_gradient == "current" and settings.fgsm_epsilon:
            self.fgsm.gradient = self.gradient(clean, masks)
        words = [self.fgsm(one) for one in clean]
        self.fgsm.retain(words[0])
        queries, positives, keys = self.encode(words, masks)
        loss = self.loss(queries, positives)
        measures: dict[str, Tensor | float] = {
            # 0 where ε is below the floating-point resolution of all entries
            "fgsm_changed": (clean[0] != words[0]).float().mean(),
            "ema_decay": self.decay(step),
            "queue_fill": self.queue.fill,
        }
        return Step(loss, unit(keys.detach()), measures)

    def update(self, step: int, result: Step) -> None:
        self.fgsm.keep_gradient()
        if self.settings.ema_order == "after-step":
            ema_update(*self._averaged, self.decay(step))
        if result.keys is not None:
            self.queue.enqueue(result.keys)

    def decay(self, step: int) -> float:
        """The EMA decay of a step; 1 with a frozen target."""
        settings = self.settings
        return 1.0 if self.is_frozen else float(settings.schedule.at(step, settings.steps))

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, P) by the target branch."""
        return self.target.keys(ids, mask, self.device)

    def online_keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, P) by the online branch, without the prediction head."""
        return self.online.keys(ids, mask, self.device)

    def ages_in_use(self, step: int) -> tuple[int, int]:
        """Those in the slices once the queue is full."""
        settings = self.settings
        # the published program counts the random keys twice
        random = settings.initial_queue_size * (1 + (settings.queue_fill == "published"))
        is_full = random + step * settings.batch_size >= settings.queue_size
        slices = parse_slices(settings.queue_slice) if is_full else ()
        return find_ages(settings.queue_size, settings.batch_size, step, slices)

    @classmethod
    def describe(cls, settings: Any) -> str:
        if settings.mtd is not None:
            return super().describe(settings)
        return (
            f"Its negatives came from a queue of {settings.queue_size} keys of a copy of the "
            f"encoder that is not updated, in batches of {settings.batch_size}."
        )

    def parts(self) -> dict[str, nn.Module]:
        online = self.online
        heads = {"pooler": online.pooler, "projection": online.projection}
        return {
            "encoder": online.encoder,
            "heads": nn.ModuleDict({**heads, "predictor": self.predictor}),
            "dropout": self.dropout,
            "target": self.target,
            "queue": self.queue,
        }

    def look_up(self, ids: Sequence[Tensor]) -> list[Tensor]:
        """Word embeddings (N, L, D) of token ids (N, L) of each view: those of the keys last.

        With a single view both branches share one tensor, unless FGSM needs the gradient of the
        queries alone and others pass gradients too. A frozen target has a table of its own; the
        positives of the online branch, if there are any, then come before the keys.
        """
        settings = self.settings
        others = not settings.detach_keys or settings.positive_branch == "online"
        if len(ids) == 1 and (self.is_frozen or (settings.fgsm_epsilon and others)):
            ids = [*ids, *ids]
        table = self.online.encoder.get_input_embeddings()
        if not self.is_frozen:
            return [table(one) for one in ids]
        online = ids if settings.positive_branch == "online" else ids[:1]
        return [*map(table, online), self.target.encoder.get_input_embeddings()(ids[-1])]

    def encode(
        self, words: Sequence[Tensor], masks: Sequence[Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, positives and keys, each (N, P), of word embeddings (N, L, D) as in `look_up`.

        Masks are (N, L). The positives are the keys, or the online branch's vectors of the same
        view: its projections, as the keys are, so that with an EMA decay of 0 both are equal but
        for dropout.
        """
        noisy = self.noise(words[0], masks[0])
        twin = self.noise(words[-1], masks[-1])
        with self.device.autocast():
            queries = self.predictor(self.online(noisy, masks[0], self.dropout))
            gradients, drops = not self.settings.detach_keys, self.settings.target_dropout
            still = evaluation_mode(self.target, wanted=not drops)
            with torch.set_grad_enabled(gradients), still:
                keys = self.target(twin, masks[-1], self.dropout if drops else NO_DROPOUT)
            if self.settings.positive_branch == "target":
                return queries, keys, keys
            if self.is_frozen:
                twin = self.noise(words[1], masks[-1])
            return queries, self.online(twin, masks[-1], self.dropout), keys

    def loss(self, queries: Tensor, positives: Tensor) -> Tensor:
        """InfoNCE () of queries and positives, both (N, P), against the queue, or its clusters."""
        negatives = self.queue.negatives()
        if self.settings.queue_clusters:
            negatives = centroids(negatives, self.settings.queue_clusters)
        return info_nce(
            queries,
            positives,
            negatives,
            self.settings.temperature,
            in_batch_negatives=self.settings.in_batch_negatives,
            equivalent_negatives=self.settings.equivalent_negatives,
        )

    def gradient(self, words: Sequence[Tensor], masks: Sequence[Tensor]) -> Tensor:
        """∇_x L (N, L, D) with respect to the online branch's word embeddings, by an extra pass."""
        first = words[0].requires_grad_()
        queries, positives, _ = self.encode(words, masks)
        (gradient,) = torch.autograd.grad(self.loss(queries, positives), first)
        return gradient
