"""The built-in synthetic data set: an English corpus and graded sentence pairs, no download.

Sentences are generated from events (people, animals and things acting at places and times), each of
which can be worded in many ways. Seeds are fixed, so that the texts are the same on every machine.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Literal

from mtdlab.builtin.events import draw_event
from mtdlab.builtin.pairs import draw_pair
from mtdlab.builtin.render import draw_wording, render

__all__ = ["builtin_pairs", "builtin_sentences"]

Pair = tuple[str, str, float]

SENTENCES = 24_000
PAIRS = 1_500
_SEEDS = {"test": 1, "dev": 2, "train": 3}


@cache
def _pairs() -> dict[str, tuple[Pair, ...]]:
    """The pairs of both splits; made together, so that no sentence is in two pairs."""
    seen: set[str] = set()
    splits = {}
    for split in ("test", "dev"):
        rng = Random(_SEEDS[split])
        pairs: list[Pair] = []
        while len(pairs) < PAIRS:
            left, right, gold = draw_pair(rng)
            if left != right and left not in seen and right not in seen:
                seen.update((left, right))
                pairs.append((left, right, gold))
        splits[split] = tuple(pairs)
    return splits


@cache
def _sentences() -> tuple[str, ...]:
    held_out = {text for pairs in _pairs().values() for pair in pairs for text in pair[:2]}
    rng = Random(_SEEDS["train"])
    # a dict, because the order of a set of strings differs between processes
    found: dict[str, None] = {}
    while len(found) < SENTENCES:
        sentence = render(draw_event(rng), draw_wording(rng))
        if sentence not in held_out:
            found[sentence] = None
    return tuple(found)


def builtin_sentences() -> list[str]:
    """The built-in training corpus: 24,000 distinct sentences, none of which is in a pair."""
    return list(_sentences())


def builtin_pairs(split: Literal["dev", "test"]) -> list[Pair]:
    """1,500 sentence pairs with gold similarities from 0 to 5.

    No sentence occurs twice in the two splits together. The gold similarity is `events.similarity`,
    which depends on the events and not on their wording.

    Raises:
        ValueError: `split` is neither "dev" nor "test".
    """
    if split not in _pairs():
        raise ValueError(f"split is {split!r}; the built-in pairs have 'dev' and 'test'")
    return list(_pairs()[split])
