"""Which sentences of an evaluation stand in the training text too."""

import re
import unicodedata
from collections.abc import Collection, Set
from dataclasses import dataclass

_BETWEEN_WORDS = re.compile(r"[\W_]+")
EXAMPLES = 3
"""Sentences of an overlap that are shown."""


@dataclass(frozen=True)
class Overlap:
    """How many different sentences of an evaluation set stand in the training text."""

    evaluation: str
    sentences: int
    in_corpus: int
    examples: tuple[str, ...]


def normalised(sentence: str) -> str:
    """Words in lower case with single spaces: without punctuation, after Unicode's NFKC."""
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return _BETWEEN_WORDS.sub(" ", folded).strip()


class EvaluationSet:
    """The sentences of an evaluation set, looked for in the training text piece by piece."""

    def __init__(self, name: str, sentences: Collection[str]) -> None:
        self.name = name
        self._texts = {normalised(text): text for text in sentences}
        self._texts.pop("", None)
        self._found: set[str] = set()

    def look_in(self, normal: Set[str]) -> None:
        """Look in some normalised sentences of the training text."""
        self._found |= self._texts.keys() & normal

    def overlap(self) -> Overlap:
        """What was found so far."""
        examples = tuple(self._texts[text] for text in sorted(self._found)[:EXAMPLES])
        return Overlap(self.name, len(self._texts), len(self._found), examples)
