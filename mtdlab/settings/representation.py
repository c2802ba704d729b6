"""The representation of a sentence as a vector: pooling, prompt and segments."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self

Pooling = Literal["cls", "mean", "first-last", "last2", "last-token", "mask"]
POOLING = "how token vectors become a sentence vector"

SENTENCE, MASK = "{sentence}", "{mask}"
"""The placeholders of a prompt for the sentence and for the tokenizer's mask token."""


@dataclass(frozen=True)
class Representation:
    """How an encoder's token vectors become the vector of a sentence.

    Attributes:
        pooling: see `mtdlab.encoders.pooling`; `mask` reads the prompt's mask token.
        prompt: a template around each sentence, with the placeholder {sentence} and, for the
            pooling `mask`, {mask} after it; Empty: the sentence alone.
        segment_length: tokens of the segments that are encoded separately and averaged, weighted by
            their lengths; 0: a sentence is not cut. With a prompt each segment is a part of the
            sentence with the whole prompt around it.
    """

    pooling: Pooling = "cls"
    prompt: str = ""
    segment_length: int = 0

    @property
    def tokens_before(self) -> int:
        """The start token, and the prompt's tokens before {sentence}, separated by spaces."""
        return len(self.prompt.partition(SENTENCE)[0].split()) + 1

    def tokens_after(self, mark: str = SENTENCE) -> int:
        """The prompt's tokens after a mark, separated by spaces, and the end token."""
        return len(self.prompt.partition(mark)[2].split()) + 1

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Self:
        """The representation of recorded settings; what they lack has its default."""
        return cls(
            **{field.name: settings[field.name] for field in fields(cls) if field.name in settings}
        )

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
        around = self.tokens_before + self.tokens_after()
        if self.prompt and 0 < self.segment_length <= around:
            raise ValueError(
                f"segment_length {self.segment_length} leaves no tokens for the sentence: its "
                f"prompt takes {around}; it must be larger, or 0 for no segments"
            )


def describe(representation: Representation) -> str:
    """Pooling, prompt and segments in a few words: `cls pooling`."""
    parts = [f"{representation.pooling} pooling"]
    if representation.prompt:
        parts.append(f"prompt {representation.prompt!r}")
    if representation.segment_length:
        parts.append(f"segments of {representation.segment_length} tokens")
    return ", ".join(parts)
