"""SNCSE (Wang and Dou, ICIC 2023): prompts, and negated sentences as soft negatives.

The vector of a sentence is that of the mask token of a prompt around it, in training and
evaluation. The positive is the same sentence in a second prompt. The soft negative is its negation
in the second prompt: near the sentence in words, not in meaning. It is no negative of InfoNCE; a
bidirectional margin loss keeps its cosine with the sentence between α and β below the positive's.

Letters: N batch, D dimension.
"""

from dataclasses import replace
from typing import Any

from torch import Tensor
from torch.nn.functional import cosine_similarity, relu

from mtdlab.methods.base import View
from mtdlab.methods.losses import at_least_float32, info_nce
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.simcse import SimCSESettings, TwoPass
from mtdlab.settings import POOLING, Pooling, costless, with_default
from mtdlab.settings.augmentation import NEGATIONS, ContractedNot
from mtdlab.settings.representation import MASK
from mtdlab.settings.trainer import Positive

PROMPT = 'This sentence : " {sentence} " means {mask} .'
SECOND_PROMPT = 'This sentence of " {sentence} " means {mask} .'


class SNCSESettings(SimCSESettings):
    """The settings of SimCSE with SNCSE's defaults, its second prompt and its margins."""

    presets = PRESETS["sncse"]

    pooling: Pooling = with_default(SimCSESettings, "pooling", "mask", POOLING)
    prompt: str = with_default(SimCSESettings, "prompt", PROMPT)
    second_prompt: str = costless(
        SECOND_PROMPT, "prompt of the positive and of the soft negative, in training only"
    )
    batch_size: Positive = with_default(SimCSESettings, "batch_size", 256)
    learning_rate: float = with_default(SimCSESettings, "learning_rate", 1e-5)
    contracted_not: ContractedNot = costless(
        "removed",
        "what becomes of “n't” in the soft negative: `removed`, as “not” is; `kept`: another “not” "
        "stands before it, as in the published program",
    )
    margin_low: float = costless(
        0.1,
        "minimum by which the soft negative's cosine stays below the positive's",
        symbol="α",
        ge=0,
    )
    margin_high: float = costless(
        0.3,
        "maximum by which the soft negative's cosine stays below the positive's",
        symbol="β",
        ge=0,
    )
    margin_weight: float = costless(
        1e-3, "weight of the bidirectional margin loss", symbol="λ", ge=0
    )

    def check(self) -> None:
        super().check()
        if self.margin_low > self.margin_high:
            raise ValueError(
                f"margin_low {self.margin_low} is above margin_high {self.margin_high}; it must be "
                "the smaller of the two"
            )
        first = self.representation
        second = replace(first, prompt=self.second_prompt)
        second.check()
        words = [
            (one.tokens_before, one.tokens_after(), one.tokens_after(MASK))
            for one in (first, second)
        ]
        if words[0] != words[1]:
            raise ValueError(
                f"second_prompt {self.second_prompt!r} must have as many words as prompt "
                f"{self.prompt!r} before the sentence, after it and after the mask token"
            )


class SNCSE(TwoPass[SNCSESettings]):
    """InfoNCE between a sentence in two prompts, and a margin loss for its negation."""

    name = "sncse"
    title = "SNCSE"
    source = "Wang and Dou, ICIC 2023"
    negatives = (
        "Its negatives were the other sentences of a batch of {settings.batch_size}, and its soft "
        "negatives the negations of the sentences."
    )
    Settings = SNCSESettings
    order = range(3)

    @classmethod
    def views(cls, settings: Any) -> tuple[View, ...]:
        """The sentence, augmented, in the first prompt; it and its negation in the second."""
        online, second = super().views(settings)[0], settings.second_prompt
        return (online, View(prompt=second), View(NEGATIONS[settings.contracted_not], second))

    def loss(self, first: Tensor, second: Tensor, negated: Tensor) -> Tensor:
        """InfoNCE of z1 and z2, and λ times the margin loss of z1, z2 and z3; all (N, D)."""
        settings = self.settings
        contrast = info_nce(first, second, None, settings.temperature)
        margin = margin_loss(
            first, second, negated, low=settings.margin_low, high=settings.margin_high
        )
        return contrast + settings.margin_weight * margin


def margin_loss(
    first: Tensor, second: Tensor, negated: Tensor, *, low: float, high: float
) -> Tensor:
    """The bidirectional margin loss () of vectors z1, z2, z3, (N, D) each.

    Mean of relu(Δ + α) + relu(−Δ − β), Δ = cos(z1, z3) − cos(z1, z2): 0 where −β <= Δ <= −α.
    """
    first, second, negated = map(at_least_float32, (first, second, negated))
    difference = cosine_similarity(first, negated) - cosine_similarity(first, second)
    return (relu(difference + low) + relu(-difference - high)).mean()
