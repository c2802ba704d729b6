"""Unsupervised SimCSE (Gao et al., EMNLP 2021): one encoder, two dropout masks, in-batch negatives.

Letters: N batch, D dimension.
"""

from collections.abc import Sequence

from torch import Tensor

from mtdlab.methods.base import Step, Tokens
from mtdlab.methods.losses import info_nce
from mtdlab.methods.two_pass import TwoPass
from mtdlab.settings import TrainerSettings, with_default
from mtdlab.settings.trainer import Positive


class SimCSESettings(TrainerSettings):
    """The settings of SimCSE: the shared settings, with the published evaluation interval."""

    evaluate_every: Positive = with_default(TrainerSettings, "evaluate_every", 125)

    def check(self) -> None:
        """Raise ValueError for a batch without negatives."""
        if self.batch_size < 2:
            raise ValueError("batch_size 1 leaves no negatives; it must be at least 2")


class SimCSE(TwoPass[SimCSESettings]):
    """InfoNCE between two passes of the same sentences, with different dropout masks.

    The head (Linear, tanh) is used in training only. Both passes have gradients.
    """

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
