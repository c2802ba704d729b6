"""Unsupervised SimCSE (Gao et al., EMNLP 2021): one encoder, two dropout masks, in-batch negatives.

`TwoPass` is the base class of all methods that encode each sentence twice with one encoder.

Letters: N batch, L tokens, D dimension.
"""

from collections.abc import Sequence
from typing import TypeVar

from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.dropout import Dropout
from mtdlab.methods.base import Method, Step, Tokens, Transformer
from mtdlab.methods.heads import Branch, copy_pooler, initialise_heads, word_table
from mtdlab.methods.history import HeadSettings
from mtdlab.methods.losses import info_nce
from mtdlab.methods.perturbations import EmbeddingNoise
from mtdlab.methods.presets import PRESETS
from mtdlab.settings import TrainerSettings, costless, with_default
from mtdlab.settings.trainer import Positive

S = TypeVar("S", bound="TwoPassSettings")


class TwoPassSettings(HeadSettings):
    """The settings of methods with one encoder and a head."""

    select_with_head: bool = costless(
        False,
        "whether checkpoints are compared by vectors that have passed the head; the curve then has "
        "their score, alignment and uniformity, final scores are without",
    )


class TwoPass(Method[S]):
    """One encoder with a head (Linear, tanh) used in training only; both passes have gradients."""

    def __init__(self, encoder: Transformer, settings: S, device: Device) -> None:
        """The head is initialised from torch's global generator."""
        super().__init__(encoder, settings, device)
        self.branch = Branch(
            encoder,
            representation=settings.training_representation,
            dropout=settings.dropout,
            activation=nn.Tanh(),
        ).to(device.device)
        initialise_heads(settings.head_initialisation, self.branch.pooler)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings, encoder, device.device)

    def use_pooler(self, pooler: nn.Module | None) -> None:
        """Start from the encoder's pre-trained pooler with `head_initialisation: bert`."""
        if self.settings.head_initialisation == "bert":
            copy_pooler(pooler, self.branch.pooler)

    def selection_head(self) -> nn.Module | None:
        """The head with `select_with_head`, else None."""
        head = nn.Sequential(self.branch.pooler, self.branch.activation)
        return head if self.settings.select_with_head else None

    def encode(self, views: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Head vectors (N, D) of the first and the last view, or twice of the only one.

        The passes have different dropout masks.
        """
        first, second = self.passes(views, (0, -1))
        return first, second

    def passes(self, views: Sequence[Tokens], order: Sequence[int]) -> list[Tensor]:
        """Head vectors (N, D) of the views at these indices, each with a new dropout mask."""
        table = word_table(self.branch.encoder)
        words = [table(ids) for ids, _ in views]
        masks = [mask for _, mask in views]
        noisy = [self.noise(words[at], masks[at]) for at in order]
        # one context: each weight is cast once, and its gradients are summed before they are cast
        # back
        with self.device.autocast():
            return [
                self.branch(embeddings, masks[at], self.dropout)
                for embeddings, at in zip(noisy, order, strict=True)
            ]

    def parts(self) -> dict[str, nn.Module]:
        return {
            "encoder": self.branch.encoder,
            "heads": nn.ModuleDict({"pooler": self.branch.pooler}),
            "dropout": self.dropout,
        }


class SimCSESettings(TwoPassSettings):
    """The settings of SimCSE: the shared settings, with the published evaluation interval."""

    presets = PRESETS["simcse"]

    evaluate_every: Positive = with_default(TrainerSettings, "evaluate_every", 125)

    def check(self) -> None:
        """Raise ValueError for a batch without negatives."""
        if self.batch_size < 2:
            raise ValueError("batch_size 1 leaves no negatives; it must be at least 2")


class SimCSE(TwoPass[SimCSESettings]):
    """InfoNCE between two passes of the same sentences, with different dropout masks."""

    name = "simcse"
    title = "SimCSE"
    source = "Gao et al., EMNLP 2021"
    Settings = SimCSESettings

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """InfoNCE of two passes: of the first and the last view, or twice of the only one."""
        first, second = self.encode(views)
        return Step(self.loss(first, second))

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """InfoNCE (); S[i, j] = cos(z1_i, z2_j) / τ, both (N, D), with label i."""
        return info_nce(first, second, None, self.settings.temperature)
