"""The settings of methods with a momentum encoder and a queue of its keys."""

from typing import Annotated

from pydantic import Field

from analysis.measures.trace import d_trace
from mtdlab.settings import TrainerSettings, setting
from mtdlab.settings.trainer import Count

Decay = Annotated[float, Field(ge=0, lt=1)]


class HistorySettings(TrainerSettings):
    """EMA decay and queue size, which with the batch size determine the MTD."""

    ema_decay: Decay = setting(
        0.85,
        "decay of the moving average of weights (momentum encoder) per step",
        symbol="η",
        step_cost="none",
    )
    queue_size: Count = setting(
        512,
        "keys of earlier batches that serve as negatives",
        symbol="K",
        unit="keys",
        step_cost="scales",
        relative_to="batch_size",
    )

    @property
    def mtd(self) -> float:
        """Maximum traceable distance in steps, 1/(1 − η) + K/N (MoCoSE, equation 4)."""
        return d_trace(self.ema_decay, self.queue_size, self.batch_size)

    @property
    def encoder_copies(self) -> int:
        """The trained encoder and the momentum encoder."""
        return 2

    def head_operations(self, width: int) -> float:
        """Multiplications per sentence outside the encoder: head, and similarity to the queue."""
        return float(width**2 + self.queue_size * width)
