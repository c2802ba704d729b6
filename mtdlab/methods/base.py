"""The base class of training methods, which states their contract.

Letters: N batch, L tokens, D dimension.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

import torch
from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout, evaluation_mode
from mtdlab.encoders.fast import OnEmbeddings
from mtdlab.encoders.pooling import encode
from mtdlab.errors import MtdlabError
from mtdlab.methods.losses import unit
from mtdlab.settings import TrainerSettings
from mtdlab.settings.augmentation import EMBEDDING_LEVEL, parse_augmentation, text_level
from mtdlab.settings.trainer import is_pairs

if TYPE_CHECKING:
    # transformers takes seconds to import, and reading a study file needs only the settings
    from transformers import PreTrainedModel

    from mtdlab.encoders.loading import Encoder

S = TypeVar("S", bound=TrainerSettings)

Transformer: TypeAlias = "PreTrainedModel"
"""An encoder of the library transformers."""

Tokens = tuple[Tensor, Tensor]
"""Token ids and attention mask of a batch, both (N, L); real tokens come first."""


@dataclass(frozen=True)
class View:
    """A version of the text of a batch.

    Attributes:
        augmentation: the augmentations that change each sentence; "none": the original text.
        prompt: the text around each sentence, see `mtdlab.settings.representation`.
        positive: the second text of each pair of a corpus of pairs instead of the first.
        document: whether sentences are joined, see `mtdlab.corpus.documents`: in all views or none.
    """

    augmentation: str = "none"
    prompt: str = ""
    positive: bool = False
    document: bool = False


@dataclass(frozen=True)
class Step:
    """The result of a forward pass.

    Attributes:
        loss: () in float32 or wider, to be differentiated.
        keys: (N, D) to enqueue after the optimizer's step; None without a queue.
        measures: further columns of the training curve: numbers, or tensors ().
    """

    loss: Tensor
    keys: Tensor | None = None
    measures: Mapping[str, Tensor | float] = field(default_factory=dict)


class Steps(Protocol):
    """The steps of a run that are left, for a method that brings a trainer.

    For each step it calls `begin`, changes the weights by `optimizer`, which then has the rates of
    the step, and calls `end`.
    """

    settings: TrainerSettings
    optimizer: torch.optim.Optimizer

    @property
    def left(self) -> int:
        """How many steps are left."""

    def begin(self) -> Sequence[Tokens]:
        """Begin a step; returns the views of its batch."""

    def end(self, result: Step) -> None:
        """Record, evaluate and save what is due; an exception ends the run: let it through."""


class Method(nn.Module, ABC, Generic[S]):
    """A training method: its settings, the views it reads, its modules, loss and updates.

    A subclass is selected by its class attribute `name` (see `mtdlab.methods.registry`). Its state
    dict contains everything that a training step changes, including queues and the states of random
    generators, so that a run can be resumed.

    Attributes:
        name, title: the value of `method:` in a study file, and the name in text.
        source: where it was published.
        negatives: sentences for the model card on the negatives; `{settings.NAME}` is a setting.
        Settings: its settings: a subclass of `TrainerSettings`.
        packages: what it needs besides mtdlab's own packages, recorded with their versions.
        brings_trainer: whether `take_steps` trains in place of mtdlab's loop; `--objective` then
            takes the method's name.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    source: ClassVar[str]
    negatives: ClassVar[str] = (
        "Its negatives were the other sentences of a batch of {settings.batch_size}."
    )
    Settings: ClassVar[type[TrainerSettings]]
    packages: ClassVar[tuple[str, ...]] = ()
    brings_trainer: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, encoder: Transformer, settings: S, device: Device) -> None:
        """Build the method's modules around `encoder`, which is moved and trained in place.

        Random initialisation draws from torch's global generator, which the run has seeded.
        """
        super().__init__()
        self.settings, self.device = settings, device
        nn.Module.to(encoder.train(), device.device)

    @classmethod
    def views(cls, settings: TrainerSettings) -> tuple[View, ...]:
        """The views of a batch, in the order in which `forward` receives them.

        By default the augmented text, for the online branch, and the original one, for the target
        branch; of pairs the anchor and the positive; one view where both are equal.
        """
        text = View(prompt=settings.prompt)
        online = replace(text, augmentation=text_level(settings.augmentation))
        target = replace(text, positive=is_pairs(settings.corpus))
        return (text,) if online == target else (online, target)

    @classmethod
    def views_differ(cls, settings: TrainerSettings) -> bool:
        """Whether a sentence's views differ without dropout, which some encoders lack.

        A method that changes tokens or embeddings itself overrides it.
        """
        names = {augmentation.name for augmentation in parse_augmentation(settings.augmentation)}
        return len(set(cls.views(settings))) > 1 or not names.isdisjoint(EMBEDDING_LEVEL)

    @classmethod
    def changes_embeddings(cls, settings: TrainerSettings) -> bool:  # noqa: ARG003
        """Whether it changes the embedding block's output, which decoders do not have."""
        return False

    @classmethod
    def check_encoder(cls, encoder: "Encoder", settings: Any) -> None:
        """Raise MtdlabError where it cannot train an encoder with these settings."""

    def use_pooler(self, pooler: nn.Module | None) -> None:
        """Called once before training with the encoder's pre-trained pooler, if it has one."""

    def selection_head(self) -> nn.Module | None:
        """A head through which vectors (N, D) pass when checkpoints are compared; None: none."""
        return None

    @abstractmethod
    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        """The loss of a step (0 is the first) on the views of a batch.

        It must not modify a queue, so that an error in a forward pass leaves the state unchanged.
        """

    def update(self, step: int, result: Step) -> None:
        """Update the momentum encoder and the queue after the optimizer's step. By default none."""

    def take_steps(self, steps: Steps) -> None:
        """Take the steps of a run that are left, by the trainer that it brings."""
        raise NotImplementedError(f"{self.name} brings no trainer of its own")

    @torch.no_grad()
    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Unit vectors (N, D) of original sentences (N, L) by the branch of keys, heads included.

        Their change is measured (`ages_in_use`, `probe_every`). The call must not affect the run:
        no dropout, augmentation, random draws or gradient, and the mode of every module restored.
        By default they are the encoder's vectors; a method with a queue overrides it.
        """
        with evaluation_mode(self.encoder):
            vectors = self.vectors(self.encoder, self.encoder.get_input_embeddings()(ids), mask)
        return unit(vectors)

    def online_keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        """What the online encoder makes of sentences now, to compare with `keys`, as these (N, D).

        By default `keys`: without an average they are the online encoder's own.
        """
        return self.keys(ids, mask)

    def ages_in_use(self, step: int) -> tuple[int, int] | None:  # noqa: ARG002
        """Mean and greatest age in steps of the keys that enter the loss of a step.

        A key made by the weights from which the step begins is 0 steps old. It follows from the
        step and the settings. Where it is known, each run measures how similar such keys are to
        `online_keys`; None, the default: they are not measured.
        """
        return None

    def vectors(
        self,
        encoder: Transformer,
        words: Tensor,
        mask: Tensor,
        dropout: Dropout = NO_DROPOUT,
        change: OnEmbeddings | None = None,
    ) -> Tensor:
        """Sentence vectors (N, D), pooled as in training, see `mtdlab.encoders.pooling.encode`."""
        pooled = self.settings.training_representation
        with self.device.autocast():
            return encode(
                encoder, mask, pooled, inputs_embeds=words, dropout=dropout, change=change
            )

    @property
    def encoder(self) -> Transformer:
        """The encoder that is evaluated and exported. Raises MtdlabError before `parts` works."""
        try:
            parts = self.parts()
        except AttributeError as error:
            # torch would report this property as missing instead
            raise MtdlabError(
                f"method {self.name}: self.encoder is one of parts(), which cannot be read yet "
                f"({error}); in __init__ use the argument encoder"
            ) from None
        return cast("Transformer", parts["encoder"])

    @abstractmethod
    def parts(self) -> dict[str, nn.Module]:
        """The modules that an exported checkpoint contains, by name; `encoder` is required."""

    @classmethod
    def describe(cls, settings: Any) -> str:
        """Sentences for the model card; by default those on the negatives."""
        return cls.negatives.format(settings=settings)

    def trained(self) -> list[nn.Parameter]:
        """The parameters that the optimizer changes."""
        return [parameter for parameter in self.parameters() if parameter.requires_grad]
