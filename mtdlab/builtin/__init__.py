"""The built-in synthetic data set: an English corpus and pairs graded by meaning, no download.

Sentences are rendered from events (people, animals and things acting at places and times), each
of which has many wordings. Everything is drawn from fixed seeds, so the texts are the same on every
machine.
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
    """Both splits at once, so that no sentence is in two pairs."""
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
    # A dict keeps the order in which sentences are drawn; a set would not.
    found: dict[str, None] = {}
    while len(found) < SENTENCES:
        sentence = render(draw_event(rng), draw_wording(rng))
        if sentence not in held_out:
            found[sentence] = None
    return tuple(found)


def builtin_sentences() -> list[str]:
    """The built-in training corpus: 24,000 distinct sentences, none of them in a pair."""
    return list(_sentences())


def builtin_pairs(split: Literal["dev", "test"]) -> list[Pair]:
    """1,500 sentence pairs with the gold similarity of what they mean, from 0 to 5.

    No sentence occurs twice in the two splits together. Gold is `events.similarity`, computed
    from the events and blind to the words.

    Raises:
        ValueError: `split` is neither "dev" nor "test".
    """
    if split not in _pairs():
        raise ValueError(f"split is {split!r}; the built-in pairs have 'dev' and 'test'")
    return list(_pairs()[split])
