"""ConSERT (Yan et al., ACL 2021): two views by perturbations of the embedding block's output.

One encoder, no momentum, no head, and the encoder's own dropout is off. A token shuffle permutes
tokens, except [CLS], before positions are added: since pooling does not depend on the order of the
other tokens, the sentence vector is that of permuted position ids.

Letters: N batch, L tokens, D dimension.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import torch
from pydantic import AfterValidator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mtdlab.device import Device
from mtdlab.encoders.dropout import Dropout
from mtdlab.methods.base import Method, Step, Tokens, Transformer
from mtdlab.methods.losses import unit
from mtdlab.methods.perturbations import CHANGES, EmbeddingNoise, RandomDraws
from mtdlab.methods.presets import PRESETS
from mtdlab.settings import POOLING, Pooling, TrainerSettings, costless, setting, with_default
from mtdlab.settings.augmentation import SHUFFLE, parse_share
from mtdlab.settings.trainer import Positive

OFFSET = 3_000_017
"""Added to a run's seed for the generator of perturbations; other generators have other offsets."""


def drop_elements(
    words: Tensor, _mask: Tensor, generator: torch.Generator, share: float, *, rescaled: bool = True
) -> Tensor:
    """Set each element to zero with probability `share`; `rescaled`: divide others by 1 − share."""
    draws = torch.rand(words.shape, generator=generator, device=words.device)
    kept = words * (draws >= share)
    return kept / (1 - share) if rescaled else kept


WITH_SHARE = ("token-cutoff", "feature-cutoff", "dropout")
"""Perturbations of the embedding block's output."""
_NAMES = f"none, {SHUFFLE}, {', '.join(f'{name}:SHARE' for name in WITH_SHARE)}"


def parse_perturbation(text: str) -> tuple[str, float]:
    """Name and share, 0 for `none` and `position-shuffle`. Raises ValueError for another text."""
    name, _, argument = (piece.strip() for piece in text.partition(":"))
    if name in ("none", SHUFFLE) and not argument:
        return name, 0.0
    share = parse_share(argument)
    if name not in WITH_SHARE or share is None:
        raise ValueError(f"perturbation {text!r}: choose from {_NAMES}, as in feature-cutoff:0.2")
    return name, share


def _check_perturbation(text: str) -> str:
    name, share = parse_perturbation(text)
    return f"{name}:{share}" if share else name


Perturbed = Annotated[str, AfterValidator(_check_perturbation)]


class ConSERTSettings(TrainerSettings):
    """The settings of ConSERT: the perturbation of each view, and its published values."""

    presets = PRESETS["consert"]
    least_batch = 2

    pooling: Pooling = with_default(TrainerSettings, "pooling", "last2", POOLING)
    first_perturbation: Perturbed = setting(
        "feature-cutoff:0.2", f"perturbation of the first view's embeddings: {_NAMES}"
    )
    second_perturbation: Perturbed = setting(
        SHUFFLE, f"perturbation of the second view's embeddings: {_NAMES}"
    )
    rescaled_dropout: bool = costless(
        True, "whether the perturbation `dropout` divides the elements that it keeps by 1 − SHARE"
    )
    batch_size: Positive = with_default(TrainerSettings, "batch_size", 96)
    temperature: float = with_default(TrainerSettings, "temperature", 0.1)
    learning_rate: float = with_default(TrainerSettings, "learning_rate", 5e-7)
    dropout: float = with_default(TrainerSettings, "dropout", 0.0, "dropout rate of the encoder")
    max_length: int = with_default(TrainerSettings, "max_length", 64)
    evaluate_every: Positive = with_default(TrainerSettings, "evaluate_every", 200)

    @property
    def perturbations(self) -> tuple[tuple[str, float], ...]:
        """Name and share of each view's perturbation."""
        return tuple(map(parse_perturbation, (self.first_perturbation, self.second_perturbation)))

    def check(self) -> None:
        super().check()
        same = self.perturbations == (("none", 0), ("none", 0))
        if same and not self.dropout and self.augmentation == "none":
            raise ValueError(
                "first_perturbation and second_perturbation none make equal views without "
                "dropout and augmentation; perturb at least one"
            )


class ConSERT(Method[ConSERTSettings]):
    """NT-Xent of two views of the same sentences, perturbed at the embedding block's output."""

    name = "consert"
    title = "ConSERT"
    source = "Yan et al., ACL 2021"
    negatives = (
        "Its negatives were both views of the other sentences of a batch of {settings.batch_size}; "
        "the views were made by {settings.first_perturbation} and {settings.second_perturbation} "
        "of the embeddings."
    )
    Settings = ConSERTSettings

    def __init__(self, encoder: Transformer, settings: ConSERTSettings, device: Device) -> None:
        super().__init__(encoder, settings, device)
        self.trained_encoder = encoder
        self.dropout = Dropout(settings.dropout, settings.seed)
        self.noise = EmbeddingNoise(settings, encoder, device.device)
        self.perturbation = Perturbation(settings, device.device)

    @classmethod
    def views_differ(cls, settings: Any) -> bool:
        return set(settings.perturbations) != {("none", 0)} or super().views_differ(settings)

    @classmethod
    def changes_embeddings(cls, settings: Any) -> bool:
        """All perturbations but the shuffle change the embedding block's output."""
        return any(share for _, share in settings.perturbations)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """NT-Xent of the first and the last view, or of both perturbations of the only one."""
        first, second = self.encode(views)
        return Step(nt_xent(first, second, self.settings.temperature))

    def encode(self, views: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """Sentence vectors (N, D) of the first view and the last, each with its perturbation."""
        encoder, vectors = self.trained_encoder, []
        table = encoder.get_input_embeddings()
        noisy = [(self.noise(table(ids), mask), mask) for ids, mask in (views[0], views[-1])]
        with self.device.autocast():
            for view, (words, mask) in enumerate(noisy):
                changed, change = self.perturbation.of_view(view, words, mask)
                vectors.append(self.vectors(encoder, changed, mask, self.dropout, change))
        return vectors[0], vectors[1]

    def parts(self) -> dict[str, nn.Module]:
        return {"encoder": self.trained_encoder, "dropout": self.dropout}


class Perturbation(RandomDraws):
    """The perturbations of the two views, with random draws of their own."""

    def __init__(self, settings: ConSERTSettings, device: torch.device) -> None:
        super().__init__(settings.seed + OFFSET, device)
        self._named = settings.perturbations
        drop = partial(drop_elements, rescaled=settings.rescaled_dropout)
        self._changes = CHANGES | {"dropout": drop}

    def of_view(
        self, view: int, words: Tensor, mask: Tensor
    ) -> tuple[Tensor, Callable[[Tensor, Tensor], Tensor] | None]:
        """Words (N, L, D), permuted by the shuffle; the change of the embedding block's output."""
        name, share = self._named[view]
        words = self(view, words, mask) if name == SHUFFLE else words
        return words, partial(self, view) if share else None

    def forward(self, view: int, embedded: Tensor, mask: Tensor) -> Tensor:
        """Embeddings (N, L, D) of a view, under a mask (N, L), perturbed."""
        name, share = self._named[view]
        return self._changes[name](embedded, mask, self._generator, share)


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """NT-Xent () of two views (N, D): each of the 2N vectors is compared with all others.

    For a vector a and its other view b, −log [exp(cos(a, b)/τ) / Σ_{c ≠ a} exp(cos(a, c)/τ)]
    (SimCLR, ConSERT); mean over the 2N vectors, in float32 or wider. Symmetric in the views.
    """
    vectors = unit(torch.cat([first, second]))
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    logits = (vectors @ vectors.T / temperature).masked_fill(itself, -torch.inf)
    partners = torch.arange(len(vectors), device=vectors.device).roll(len(first))
    return cross_entropy(logits, partners)
