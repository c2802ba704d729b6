"""Settings that several methods share: those of a momentum encoder with a queue, and of heads."""

from typing import Annotated, Literal

from pydantic import Field

from mtdlab.analysis.measures.trace import NOTATION, d_trace
from mtdlab.settings import TrainerSettings, costless, setting
from mtdlab.settings.trainer import Count

Decay = Annotated[float, Field(ge=0, lt=1)]


class HistorySettings(TrainerSettings):
    """EMA decay and queue size, which with the batch size determine the MTD."""

    ema_decay: Decay = costless(0.85, NOTATION["ema_decay"].description, symbol="η")
    target_initialisation: Literal["copy", "random"] = costless(
        "copy",
        "weights that the momentum encoder starts from: those of the encoder, or random ones, as "
        "before pre-training",
    )
    queue_size: Count = setting(
        512, NOTATION["queue_size"].description, symbol="K", unit="keys", relative_to="batch_size"
    )

    def check(self) -> None:
        super().check()
        initial = getattr(self, "initial_queue_size", 0)
        if initial > self.queue_size:
            raise ValueError(
                f"initial_queue_size {initial} exceeds queue_size {self.queue_size}; it may be 0 "
                "to queue_size"
            )
        if self.target_initialisation == "random" and self.lora_rank:
            raise ValueError(
                "target_initialisation random: with adapters both encoders share the weights that "
                "are not trained; choose copy, or lora_rank 0"
            )

    @property
    def mtd(self) -> float:
        """Maximum traceable distance in steps, 1/(1 − η) + K/N (MoCoSE, equation 4)."""
        return d_trace(self.ema_decay, self.queue_size, self.batch_size)

    @property
    def encoder_copies(self) -> int:
        return 2


class HeadSettings(TrainerSettings):
    """The initialisation of the heads that are used in training only."""

    head_initialisation: Literal["torch", "normal", "bert"] = costless(
        "torch",
        "initial weights of the heads: those of torch; `normal`: normal with standard deviation "
        "0.02, biases 0; `bert`: the same, and the pooler that was pre-trained with the encoder, "
        "if it has one",
    )
