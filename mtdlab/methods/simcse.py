"""Unsupervised SimCSE (Gao et al., EMNLP 2021): one encoder, two dropout masks, in-batch negatives.

Letters: N batch, L tokens, D dimension.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor, nn

from mtdlab.encoders.dropout import Dropout
from mtdlab.methods.base import Method, Step, Tokens
from mtdlab.methods.heads import Branch, word_table
from mtdlab.methods.losses import info_nce
from mtdlab.methods.perturbations import EmbeddingNoise
from mtdlab.settings import TrainerSettings, setting
from mtdlab.settings.trainer import Positive

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from mtdlab.device import Device


class SimCSESettings(TrainerSettings):
    """The settings of SimCSE: those of every method, evaluated as often as published."""

    evaluate_every: Positive = setting(
        125, "steps between two evaluations", unit="steps", step_cost="none"
    )

    def check(self) -> None:
        """Raise ValueError where a batch has no negatives."""
        if self.batch_size < 2:
            raise ValueError("batch_size 1 leaves no negatives: they are the batch's others")


class SimCSE(Method[SimCSESettings]):
    """InfoNCE between two passes of the same sentences, each with its own dropout mask.

    The head (Linear, tanh) serves training only. Both passes receive gradients.
    """

    name = "simcse"
    title = "SimCSE"
    source = "Gao et al., EMNLP 2021"
    Settings = SimCSESettings

    def __init__(
        self, encoder: "PreTrainedModel", settings: SimCSESettings, device: "Device"
    ) -> None:
        """The head's weights are drawn from torch's generator."""
        super().__init__(encoder, settings, device)
        self.branch = Branch(
            encoder, pooling=settings.pooling, dropout=settings.dropout, activation=nn.Tanh()
        ).to(device.device)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings.augmentation, settings.seed, device.device)
        self.train()

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """InfoNCE of two passes: of the first view and the last, or of the only one twice."""
        first, second = self.encode(views)
        return Step(self.loss(first, second))

    def encode(self, views: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Head vectors of both passes, each (N, D) and under a dropout mask of its own."""
        table = word_table(self.branch.encoder)
        words = [table(ids) for ids, _ in views]
        masks = [mask for _, mask in views]
        noisy = [self.noise(words[at], masks[at]) for at in (0, -1)]
        # in one context: each weight is cast once, and its gradient summed before it is cast back
        with self.device.autocast():
            first, second = (self.branch(noisy[at], masks[at], self.dropout) for at in (0, -1))
        return first, second

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """InfoNCE (); S[i, j] = cos(z1_i, z2_j) / τ, both (N, D), with label i."""
        return info_nce(first, second, None, self.settings.temperature)

    def parts(self) -> dict[str, nn.Module]:
        """Encoder, head, dropout's random stream."""
        return {
            "encoder": self.branch.encoder,
            "heads": nn.ModuleDict({"pooler": self.branch.pooler}),
            "dropout": self.dropout,
        }
