"""Unsupervised SimCSE (Gao et al., EMNLP 2021): one encoder, two dropout masks, in-batch negatives.

`TwoPass` is the base class of all methods that encode each sentence twice with one encoder.

Letters: N batch, L tokens, D dimension.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.dropout import Dropout
from mtdlab.methods.base import Method, Step, Tokens, Transformer
from mtdlab.methods.heads import Branch, copy_pooler, initialise_heads
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
    """One encoder with a head (Linear, tanh) used in training only; all passes have gradients.

    Attributes:
        order: the views of the passes; by default the first and the last, or twice the only one.
        loss: the loss () of the vectors (N, D) of the passes.
    """

    order: ClassVar[Sequence[int]] = (0, -1)
    loss: Callable[..., Tensor]

    def __init__(self, encoder: Transformer, settings: S, device: Device) -> None:
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
        head = nn.Sequential(self.branch.pooler, self.branch.activation)
        return head if self.settings.select_with_head else None

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """The loss of the passes; a method with more than a loss overrides it."""
        return Step(self.loss(*self.encode(views)))

    def encode(self, views: Sequence[Tokens]) -> list[Tensor]:
        """Head vectors (N, D) of the views in `order`, each with a new dropout mask."""
        table = self.branch.encoder.get_input_embeddings()
        words = [(table(ids), mask) for ids, mask in views]
        noisy = [(self.noise(*words[at]), words[at][1]) for at in self.order]
        # one context: each weight is cast once, and its gradients are summed before they are cast
        # back
        with self.device.autocast():
            return [self.branch(embeddings, mask, self.dropout) for embeddings, mask in noisy]

    def parts(self) -> dict[str, nn.Module]:
        return {
            "encoder": self.branch.encoder,
            "heads": nn.ModuleDict({"pooler": self.branch.pooler}),
            "dropout": self.dropout,
        }


class SimCSESettings(TwoPassSettings):
    """The settings of SimCSE: the shared settings, with the published evaluation interval."""

    presets = PRESETS["simcse"]
    least_batch = 2

    evaluate_every: Positive = with_default(TrainerSettings, "evaluate_every", 125)


class SimCSE(TwoPass[SimCSESettings]):
    """InfoNCE between two passes of the same sentences, with different dropout masks."""

    name = "simcse"
    title = "SimCSE"
    source = "Gao et al., EMNLP 2021"
    Settings = SimCSESettings

    def loss(self, first: Tensor, second: Tensor) -> Tensor:
        """InfoNCE (); S[i, j] = cos(z1_i, z2_j) / τ, both (N, D), with label i."""
        return info_nce(first, second, None, self.settings.temperature)
