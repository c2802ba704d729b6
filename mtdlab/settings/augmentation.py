"""The syntax of the setting `augmentation`: `none`, or one or several joined by `+`.

    position-shuffle             token-cutoff:SHARE           feature-cutoff:SHARE
    typos:SHARE                  repetition:SHARE             synonyms:MODEL
    paraphrase:MODEL             back-translation:MODEL,MODEL

SHARE lies between 0 and 1; MODEL is a folder or a Hugging Face name, without `+` and `,`.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

SHARED = ("token-cutoff", "feature-cutoff", "typos", "repetition")
MODELS = {"synonyms": 1, "paraphrase": 1, "back-translation": 2}
"""The number of models that each of these augmentations takes."""

ContractedNot = Literal["removed", "kept"]
NEGATIONS: Mapping[ContractedNot, str] = {"removed": "negation", "kept": "negation-keeping-n't"}
"""Augmentations of text that change the meaning: for the views of methods that use them as
negatives, not for the setting. The keys are the treatments of “n't”, see
`mtdlab.corpus.negation`."""
SHUFFLE = "position-shuffle"
EMBEDDING_LEVEL = (SHUFFLE, "token-cutoff", "feature-cutoff")
"""Augmentations of word embeddings, with separate random draws for each view."""
TEXT_LEVEL = ("typos", "repetition", "synonyms", "paraphrase", "back-translation")
"""Augmentations of one branch's text, by default the online one's; the other reads the original."""


@dataclass(frozen=True)
class Augmentation:
    """One augmentation: its name, and its share or models if it takes any."""

    name: str
    share: float | None = None
    models: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The canonical spelling."""
        share = () if self.share is None else (str(self.share),)
        argument = ",".join((*share, *self.models))
        return f"{self.name}:{argument}" if argument else self.name


def parse_augmentation(text: str) -> list[Augmentation]:
    """The augmentations in the order in which they apply. Raises ValueError for a wrong one."""
    if text.strip() == "none":
        return []
    augmentations = [_parse(part.strip()) for part in text.split("+")]
    names = [augmentation.name for augmentation in augmentations]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"augmentation {text!r}: {name} occurs twice; each may occur once")
    return augmentations


def text_level(text: str) -> str:
    """The augmentations that change the text, spelled as in the setting; "none" without any."""
    changing = [part for part in parse_augmentation(text) if part.name in TEXT_LEVEL]
    return "+".join(map(str, changing)) or "none"


def parse_share(text: str) -> float | None:
    """The number above 0 and below 1 that a text is; None for any other text."""
    with suppress(ValueError):
        if 0 < (share := float(text)) < 1:
            return share
    return None


def _parse(part: str) -> Augmentation:
    name, colon, argument = (piece.strip() for piece in part.partition(":"))
    if name in SHARED:
        if (share := parse_share(argument)) is None:
            raise ValueError(
                f"augmentation {part!r}: needs a share above 0 and below 1, as in {name}:0.1"
            )
        return Augmentation(name, share=share)
    if name in MODELS:
        models = tuple(model.strip() for model in argument.split(","))
        if len(models) != MODELS[name] or not all(models):
            spelled = f"{name}:{','.join(['MODEL'] * MODELS[name])}"
            raise ValueError(
                f"augmentation {part!r}: write {spelled}, each a folder or a Hugging Face name"
            )
        return Augmentation(name, models=models)
    if name not in (*EMBEDDING_LEVEL, *NEGATIONS.values()):
        known = ", ".join((*EMBEDDING_LEVEL, *TEXT_LEVEL))
        raise ValueError(
            f"unknown augmentation {part!r}; choose none, or one or several of {known}, joined by +"
        )
    if colon:
        raise ValueError(f"augmentation {part!r}: takes no argument; write {name}")
    return Augmentation(name)
