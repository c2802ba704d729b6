"""ConSERT (Yan et al., ACL 2021): two views by perturbations of the embedding block's output.

One encoder, no momentum, no head. The views of a sentence differ in the perturbation of its
embeddings, after their LayerNorm and before the first layer; the encoder's own dropout is off. Each
of the 2N vectors of a batch is compared with all others (NT-Xent).

A token shuffle gives the tokens, except [CLS], each other's positions. Tokens are permuted before
positions are added; since pooling does not depend on the order of the other tokens, the sentence
vector is that of permuted position ids.

Letters: N batch, L tokens, D dimension.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import torch
from pydantic import AfterValidator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from mtdlab.device import Device
from mtdlab.encoders.dropout import Dropout
from mtdlab.methods.base import Method, Step, Tokens
from mtdlab.methods.heads import word_table
from mtdlab.methods.losses import at_least_float32
from mtdlab.methods.perturbations import (
    EmbeddingNoise,
    RandomDraws,
    cut_features,
    cut_tokens,
    shuffle_positions,
)
from mtdlab.methods.presets import PRESETS
from mtdlab.settings import POOLING, Pooling, TrainerSettings, setting, with_default
from mtdlab.settings.augmentation import SHUFFLE
from mtdlab.settings.trainer import Positive

if TYPE_CHECKING:
    from transformers import PreTrainedModel

OFFSET = 3_000_017
"""Added to a run's seed for the generator of perturbations; other generators have other offsets."""


def drop_elements(
    words: Tensor,
    mask: Tensor,  # noqa: ARG001
    share: float,
    generator: torch.Generator,
    *,
    rescaled: bool = True,
) -> Tensor:
    """Dropout: set each element to zero with probability `share`.

    Args:
        rescaled: whether the others are divided by 1 − share (inverted dropout).
    """
    draws = torch.rand(words.shape, generator=generator, device=words.device)
    kept = words * (draws >= share)
    return kept / (1 - share) if rescaled else kept


CHANGES = {"token-cutoff": cut_tokens, "feature-cutoff": cut_features, "dropout": drop_elements}
"""Perturbations of the embedding block's output, each with a share."""
_NAMES = f"none, {SHUFFLE}, {', '.join(f'{name}:SHARE' for name in CHANGES)}"


def parse_perturbation(text: str) -> tuple[str, float]:
    """Name and share of a perturbation; the share is 0 for `none` and `position-shuffle`.

    Raises:
        ValueError: for another name, or a share outside 0 to 1.
    """
    name, _, argument = (piece.strip() for piece in text.partition(":"))
    if name in ("none", SHUFFLE) and not argument:
        return name, 0.0
    try:
        share = float(argument)
    except ValueError:
        share = -1.0
    if name not in CHANGES or not 0 < share < 1:
        raise ValueError(f"perturbation {text!r}: choose from {_NAMES}, as in feature-cutoff:0.2")
    return name, share


def _check_perturbation(text: str) -> str:
    name, share = parse_perturbation(text)
    return f"{name}:{share}" if share else name


Perturbed = Annotated[str, AfterValidator(_check_perturbation)]


class ConSERTSettings(TrainerSettings):
    """The settings of ConSERT: the perturbation of each view, and its published values."""

    presets = PRESETS["consert"]

    pooling: Pooling = with_default(TrainerSettings, "pooling", "last2", POOLING)
    first_perturbation: Perturbed = setting(
        "feature-cutoff:0.2", f"perturbation of the first view's embeddings: {_NAMES}"
    )
    second_perturbation: Perturbed = setting(
        SHUFFLE, f"perturbation of the second view's embeddings: {_NAMES}"
    )
    rescaled_dropout: bool = setting(
        True,
        "whether the perturbation `dropout` divides the elements that it keeps by 1 − SHARE",
        step_cost="none",
    )
    batch_size: Positive = with_default(TrainerSettings, "batch_size", 96)
    temperature: float = with_default(TrainerSettings, "temperature", 0.1)
    learning_rate: float = with_default(TrainerSettings, "learning_rate", 5e-7)
    dropout: float = with_default(TrainerSettings, "dropout", 0.0, "dropout rate of the encoder")
    max_length: int = with_default(TrainerSettings, "max_length", 64)
    evaluate_every: Positive = with_default(TrainerSettings, "evaluate_every", 200)

    def head_operations(self, width: int) -> float:
        """Multiplications per sentence outside the encoder: there is no head."""
        return float(4 * self.batch_size * width)

    def check(self) -> None:
        """Raise ValueError for a batch without negatives, or views that cannot differ."""
        if self.batch_size < 2:
            raise ValueError("batch_size 1 leaves no negatives; it must be at least 2")
        same = self.first_perturbation == self.second_perturbation == "none"
        if same and not self.dropout and self.augmentation == "none":
            raise ValueError(
                "first_perturbation and second_perturbation none make equal views without "
                "dropout and augmentation; perturb at least one"
            )


def _names(settings: TrainerSettings) -> list[str]:
    """The names of both views' perturbations."""
    spelled = (getattr(settings, f"{view}_perturbation") for view in ("first", "second"))
    return [parse_perturbation(text)[0] for text in spelled]


class ConSERT(Method[ConSERTSettings]):
    """NT-Xent of two views of the same sentences, perturbed at the embedding block's output."""

    name = "consert"
    title = "ConSERT"
    source = "Yan et al., ACL 2021"
    Settings = ConSERTSettings

    def __init__(
        self, encoder: "PreTrainedModel", settings: ConSERTSettings, device: Device
    ) -> None:
        """Nothing is initialised at random: there is no head."""
        super().__init__(encoder, settings, device)
        self.trained_encoder = encoder
        nn.Module.to(encoder, device.device)
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings, encoder, device.device)
        spelled = (settings.first_perturbation, settings.second_perturbation)
        self.perturbation = Perturbation(
            spelled, settings.seed, device.device, rescaled=settings.rescaled_dropout
        )
        self.train()

    @classmethod
    def views_differ(cls, settings: TrainerSettings) -> bool:
        """Perturbations differ."""
        return set(_names(settings)) != {"none"} or super().views_differ(settings)

    @classmethod
    def changes_embeddings(cls, settings: TrainerSettings) -> bool:
        """All perturbations but the shuffle change the embedding block's output."""
        return not CHANGES.keys().isdisjoint(_names(settings))

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """NT-Xent of the first and the last view, or of both perturbations of the only one."""
        first, second = self.encode(views)
        return Step(nt_xent(first, second, self.settings.temperature))

    def encode(self, views: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Sentence vectors (N, D) of the first view and the last, each with its perturbation."""
        table = word_table(self.trained_encoder)
        words = [self.noise(table(views[at][0]), views[at][1]) for at in (0, -1)]
        with self.device.autocast():
            first, second = (
                self._encode(words[place], views[at][1], place) for place, at in enumerate((0, -1))
            )
        return first, second

    def _encode(self, words: Tensor, mask: Tensor, place: int) -> Tensor:
        # imported here: transformers takes seconds to import, and study files are read without it
        from mtdlab.encoders.pooling import encode

        return encode(
            self.trained_encoder,
            mask,
            self.settings.training_representation,
            inputs_embeds=self.perturbation.of_words(place, words, mask),
            dropout=self.dropout,
            change=self.perturbation.of_embeddings(place),
        )

    def parts(self) -> dict[str, nn.Module]:
        """Encoder, dropout generator."""
        return {"encoder": self.trained_encoder, "dropout": self.dropout}

    @classmethod
    def describe(cls, settings: ConSERTSettings) -> str:
        """A sentence for the model card: the source of the negatives."""
        return (
            f"Its negatives were both views of the other sentences of a batch of "
            f"{settings.batch_size}; the views were made by {settings.first_perturbation} and "
            f"{settings.second_perturbation} of the embeddings."
        )


class Perturbation(RandomDraws):
    """The perturbations of the two views, with random draws of their own."""

    def __init__(
        self, spelled: Sequence[str], seed: int, device: torch.device, *, rescaled: bool = True
    ) -> None:
        """`spelled`: one of each view, as in the settings; `rescaled`: see `drop_elements`."""
        super().__init__(seed + OFFSET, device)
        self._rescaled = rescaled
        self._parsed: Sequence[tuple[str, float]] = [parse_perturbation(text) for text in spelled]

    def of_words(self, view: int, words: Tensor, mask: Tensor) -> Tensor:
        """Word embeddings (N, L, D) of a view: permuted by `position-shuffle`, else as they are."""
        if self._parsed[view][0] != SHUFFLE:
            return words
        return shuffle_positions(words, mask, self._generator)

    def of_embeddings(self, view: int) -> Callable[[Tensor, Tensor], Tensor] | None:
        """The change of the embedding block's output of a view; None for the shuffle, or none."""
        return partial(self, view) if self._parsed[view][0] in CHANGES else None

    def forward(self, view: int, embedded: Tensor, mask: Tensor) -> Tensor:
        """Output of the embedding block (N, L, D) of a view, under a mask (N, L), perturbed."""
        name, share = self._parsed[view]
        if name == "dropout":
            return drop_elements(embedded, mask, share, self._generator, rescaled=self._rescaled)
        return CHANGES[name](embedded, mask, share, self._generator)


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent () of two views (N, D): each of the 2N vectors is compared with all others.

    For a vector a and its other view b, −log [exp(cos(a, b)/τ) / Σ_{c ≠ a} exp(cos(a, c)/τ)]
    (SimCLR, ConSERT); mean over the 2N vectors, in float32 or wider. Symmetric in the views.
    """
    vectors = normalize(at_least_float32(torch.cat([first, second])), dim=1)
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    logits = (vectors @ vectors.T / temperature).masked_fill(itself, -torch.inf)
    partners = torch.arange(len(vectors), device=vectors.device).roll(len(first))
    return cross_entropy(logits, partners)
