"""The built-in synthetic data set: an English corpus and graded sentence pairs, no download.

The texts and the encoder are files of this package; `tests/builtin/generators/` wrote them.
"""

import gzip
from functools import cache
from pathlib import Path
from typing import Literal

__all__ = ["builtin_pairs", "builtin_sentences"]

Pair = tuple[str, str, float]


def data_file(name: str) -> Path:
    """The file of the sentences, or of a split of the pairs."""
    return Path(__file__).with_name(f"{name}.gz")


@cache
def _lines(name: str) -> tuple[str, ...]:
    return tuple(gzip.decompress(data_file(name).read_bytes()).decode().split("\n"))


def builtin_sentences() -> list[str]:
    """The built-in training corpus: 24,000 distinct sentences, none of which is in a pair."""
    return list(_lines("sentences"))


def builtin_pairs(split: Literal["dev", "test"]) -> list[Pair]:
    """1,500 sentence pairs with gold similarities from 0 to 5.

    No sentence occurs twice in the two splits together. The gold similarity is that of the events,
    whatever their wording. Raises ValueError for another split.
    """
    if split not in ("dev", "test"):
        raise ValueError(f"split is {split!r}; the built-in pairs have 'dev' and 'test'")
    rows = (line.split("\t") for line in _lines(split))
    return [(left, right, float(gold)) for left, right, gold in rows]
