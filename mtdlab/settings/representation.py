"""How a sentence becomes a vector: pooling, prompt, segments."""

from dataclasses import dataclass
from typing import Literal

Pooling = Literal["cls", "mean", "first-last", "last2", "mask"]

SENTENCE, MASK = "{sentence}", "{mask}"
"""Placeholders of a prompt: for the sentence, and for the tokenizer's mask token."""


@dataclass(frozen=True)
class Representation:
    """How an encoder's token vectors become the vector of a sentence.

    pooling         see `mtdlab.encoders.pooling`; `mask` reads the prompt's mask token.
    prompt          a template around each sentence, with the placeholder {sentence} and, for the
                    pooling `mask`, {mask} after it. Empty: the sentence alone.
    segment_length  tokens of the segments that are encoded separately and averaged, weighted by
                    their lengths; 0: a sentence is not cut.
    """

    pooling: Pooling = "cls"
    prompt: str = ""
    segment_length: int = 0

    @property
    def tokens_after_mask(self) -> int:
        """Tokens of the prompt after {mask}, each separated by spaces, and the end token."""
        return len(self.prompt.partition(MASK)[2].split()) + 1

    def check(self) -> None:
        """Raise ValueError for a prompt without its placeholders, or parts that exclude others."""
        before, _, after = self.prompt.partition(SENTENCE)
        if self.prompt and self.prompt.count(SENTENCE) != 1:
            raise ValueError(f"prompt {self.prompt!r} must contain {SENTENCE} once")
        if MASK in before or after.count(MASK) > 1:
            raise ValueError(
                f"prompt {self.prompt!r} must contain {MASK} at most once, after {SENTENCE}"
            )
        if self.pooling == "mask" and MASK not in after:
            raise ValueError(
                f"pooling mask needs a prompt with {SENTENCE} and {MASK}, not {self.prompt!r}"
            )


def describe(representation: Representation) -> str:
    """Pooling, prompt and segments in a few words: `cls pooling`."""
    parts = [f"{representation.pooling} pooling"]
    if representation.prompt:
        parts.append(f"prompt {representation.prompt!r}")
    if representation.segment_length:
        parts.append(f"segments of {representation.segment_length} tokens")
    return ", ".join(parts)
