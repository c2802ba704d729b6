"""The contract of a training method.

Letters: N batch, L tokens, D dimension.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from mtdlab.methods.losses import at_least_float32
from mtdlab.settings import TrainerSettings

if TYPE_CHECKING:
    # transformers takes seconds to import, and reading a study file needs only the settings
    from transformers import PreTrainedModel

    from mtdlab.device import Device

S = TypeVar("S", bound=TrainerSettings)

Tokens = tuple[Tensor, Tensor]
"""Token ids and attention mask of a batch, both (N, L); real tokens come first."""

View = Literal["text", "augmented"]
"""A text that a batch holds: the sentences as they are, or changed by `augmentation`."""


@dataclass(frozen=True)
class Step:
    """What a forward pass gives.

    loss       () in float32 or wider, to be differentiated.
    keys       (N, D) to enqueue after the optimizer's step; None where there is no queue.
    measures   what to record in the training curve, by column: numbers, or tensors ().
    """

    loss: Tensor
    keys: Tensor | None = None
    measures: Mapping[str, Tensor | float] = field(default_factory=dict)


class Method(nn.Module, ABC, Generic[S]):
    """A training method: its settings, the views it reads, its modules, loss and updates.

    A subclass is found by the name of its class attribute `name` (see
    `mtdlab.methods.registry`). It is a module: its state dict holds everything that a training
    step changes, random streams and queues as extra state, so that a run can be resumed.

    name, title   the value of `method:` in a study file, and the name in a sentence.
    source        where it was published.
    Settings      its settings: a subclass of `TrainerSettings`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    Settings: ClassVar[type[TrainerSettings]]

    @abstractmethod
    def __init__(self, encoder: "PreTrainedModel", settings: S, device: "Device") -> None:
        """Build the method's modules around `encoder`, which it trains in place.

        Random initialisation draws from torch's global generator, which the run has seeded.
        """
        super().__init__()
        self.settings, self.device = settings, device

    @classmethod
    def views(cls, settings: TrainerSettings, *, augmented: bool) -> tuple[View, ...]:
        """The views of a batch, in the order in which `forward` receives them.

        augmented   whether the settings' augmentation changes the text.

        By default the online branch reads the augmented text, the target the text as it is; one
        view where there is no such augmentation.
        """
        del settings
        return ("augmented", "text") if augmented else ("text",)

    @abstractmethod
    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        """The loss of a step (0 the first) on the views of a batch.

        It must not change a queue: a loss that raises leaves the state as it was.
        """

    def update(self, step: int, result: Step) -> None:
        """What follows the optimizer's step: average the momentum encoder, enqueue the keys."""

    @torch.no_grad()
    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) of sentences by the branch that encodes keys, its heads included.

        ids, mask   (N, L) of the sentences as they are.

        `probe_every` measures with it how fast keys change. It must leave the run as it is: no
        dropout, no augmentation, no random number drawn, no gradient, every module's mode as
        before. By default the sentence vectors of the encoder; a method with a queue overrides it.
        """
        # here, since transformers takes seconds to import and reading a study file needs none of it
        from mtdlab.encoders.pooling import encode

        with evaluation_mode(self.encoder), self.device.autocast():
            vectors = encode(self.encoder, mask, self.settings.pooling, input_ids=ids)
        return normalize(at_least_float32(vectors), dim=1)

    @property
    def encoder(self) -> "PreTrainedModel":
        """The encoder that is evaluated and exported: the part of that name."""
        return cast("PreTrainedModel", self.parts()["encoder"])

    @abstractmethod
    def parts(self) -> dict[str, nn.Module]:
        """The modules of an exported checkpoint by name; `encoder` is one of them."""

    @classmethod
    def describe(cls, settings: Any) -> str:
        """A sentence for the model card: where the negatives of such a run came from."""
        return f"Its negatives were the other sentences of a batch of {settings.batch_size}."

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the optimizer changes."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Evaluation mode, in which its dropout modules drop nothing; each part's mode is put back."""
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True
