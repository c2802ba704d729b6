"""Generation of the texts of the built-in data set, which the package contains as files.

    python -m mtdlab.builtin.generate

The sentences are generated from events (people, animals and things acting at places and times),
each of which can be worded in many ways. Seeds are fixed, so that the texts are the same on every
machine.
"""

from __future__ import annotations

import gzip
from random import Random

from mtdlab.builtin import Pair, data_file
from mtdlab.builtin.events import draw_event
from mtdlab.builtin.pairs import draw_pair
from mtdlab.builtin.render import draw_wording, render

SENTENCES = 24_000
PAIRS = 1_500
_SEEDS = {"test": 1, "dev": 2, "train": 3}


def generate_pairs() -> dict[str, list[Pair]]:
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
        splits[split] = pairs
    return splits


def generate_files() -> dict[str, str]:
    """The text of each file by name: a sentence in each line, or a pair and its gold similarity."""
    pairs = generate_pairs()
    held_out = {text for split in pairs.values() for pair in split for text in pair[:2]}
    rng = Random(_SEEDS["train"])
    # a dict, because the order of a set of strings differs between processes
    found: dict[str, None] = {}
    while len(found) < SENTENCES:
        sentence = render(draw_event(rng), draw_wording(rng))
        if sentence not in held_out:
            found[sentence] = None
    # repr of a float gives the same bits again
    rows = {name: ["\t".join([*pair[:2], repr(pair[2])]) for pair in pairs[name]] for name in pairs}
    return {name: "\n".join(lines) for name, lines in {"sentences": [*found], **rows}.items()}


if __name__ == "__main__":
    for name, text in generate_files().items():
        # without a time in it, so that the same text gives the same file
        data_file(name).write_bytes(gzip.compress(text.encode(), mtime=0))
