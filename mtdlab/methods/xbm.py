"""XBM, a cross-batch memory (Wang et al., CVPR 2020): SimCSE with a queue of its own vectors.

The memory is a first-in, first-out queue of vectors that the same encoder made in earlier steps.
There is no momentum encoder, so that the MTD is that of an EMA decay of 0: 1 + K/N steps.

The paper's loss is one over labelled images; here it is InfoNCE.

Letters: N batch, L tokens, K queue, D dimension.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from mtdlab.analysis.measures.trace import d_trace
from mtdlab.device import Device
from mtdlab.methods.base import Step, Tokens, Transformer
from mtdlab.methods.history import HistorySettings
from mtdlab.methods.losses import info_nce, unit
from mtdlab.methods.queue import KeyQueue, find_ages
from mtdlab.methods.simcse import SimCSESettings, TwoPass
from mtdlab.settings import costless, with_default
from mtdlab.settings.trainer import Count


class XBMSettings(SimCSESettings):
    """The settings of SimCSE, the size of the memory and the step from which it is filled."""

    queue_size: Count = with_default(
        HistorySettings,
        "queue_size",
        512,
        "vectors of earlier batches, by the encoder that is trained, that serve as negatives",
    )
    queue_warmup_steps: Count = costless(
        0,
        "first steps whose vectors do not enter the queue, since early ones drift fast",
        unit="steps",
    )

    def check(self) -> None:
        super().check()
        # the vectors of a step are negatives from the next one on
        if 0 < self.steps - 1 <= self.queue_warmup_steps:
            raise ValueError(
                f"queue_warmup_steps {self.queue_warmup_steps} leaves no step with a queue in "
                f"{self.steps} steps; it must be below {self.steps - 1}"
            )

    @property
    def mtd(self) -> float:
        """Maximum traceable distance in steps without an average, 1 + K/N."""
        return d_trace(0, self.queue_size, self.batch_size)


class XBM(TwoPass[XBMSettings]):
    """InfoNCE of two passes against the other sentences of the batch and the memory."""

    name = "xbm"
    title = "XBM"
    source = "Wang et al., CVPR 2020"
    negatives = (
        "Its negatives were the other sentences of a batch of {settings.batch_size} and a queue of "
        "{settings.queue_size} earlier vectors of the same encoder: a maximum traceable distance "
        "of {settings.mtd:.2f} steps."
    )
    Settings = XBMSettings

    def __init__(self, encoder: Transformer, settings: XBMSettings, device: Device) -> None:
        super().__init__(encoder, settings, device)
        queue = KeyQueue(settings.queue_size, int(encoder.config.hidden_size))
        self.queue = queue.to(device.device)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        first, second = self.encode(views)
        loss = info_nce(first, second, self.queue.negatives(), self.settings.temperature)
        return Step(loss, unit(second.detach()), {"queue_fill": self.queue.fill})

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) by encoder and head."""
        return self.branch.keys(ids, mask, self.device)

    def ages_in_use(self, step: int) -> tuple[int, int]:
        settings = self.settings
        filling = max(0, step - settings.queue_warmup_steps)
        return find_ages(settings.queue_size, settings.batch_size, filling)

    def update(self, step: int, result: Step) -> None:
        if result.keys is not None and step >= self.settings.queue_warmup_steps:
            self.queue.enqueue(result.keys)

    def parts(self) -> dict[str, nn.Module]:
        return {**super().parts(), "queue": self.queue}
