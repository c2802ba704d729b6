"""Augmentations of a sentence that need no model. Words are separated by spaces."""

import re
from random import Random

_ROWS = ("1234567890", "qwertyuiop", "asdfghjkl", "zxcvbnm")
"""A US keyboard; each row is half a key to the right of the one above."""


def _neighbours() -> dict[str, str]:
    """The keys beside each key, on its row and on those above and below."""
    places = {
        key: (row, column + row / 2)
        for row, keys in enumerate(_ROWS)
        for column, key in enumerate(keys)
    }
    return {
        key: "".join(
            other
            for other, (down, right) in places.items()
            if 0 < (down - row) ** 2 + (right - column) ** 2 <= 1.25
        )
        for key, (row, column) in places.items()
    }


NEIGHBOURS = _neighbours()


def typos(sentence: str, share: float, random: Random) -> str:
    """Each word is mistyped, in one character, with probability `share`.

    A character is doubled, left out, swapped with the next, or becomes a key beside it: one of
    what is possible there, each as likely. A word never vanishes and always changes.
    """

    def typed(word: re.Match[str]) -> str:
        return _mistyped(word[0], random) if random.random() < share else word[0]

    return re.sub(r"\S+", typed, sentence)


def _mistyped(word: str, random: Random) -> str:
    place = random.randrange(len(word))
    before, letter, after = word[:place], word[place], word[place + 1 :]
    possible = [before + letter + letter + after]
    if len(word) > 1:
        possible.append(before + after)
    if after and after[0] != letter:
        possible.append(before + after[0] + letter + after[1:])
    if keys := NEIGHBOURS.get(letter.lower()):
        key = random.choice(keys)
        possible.append(before + (key.upper() if letter.isupper() else key) + after)
    return random.choice(possible)


def repetition(sentence: str, share: float, random: Random) -> str:
    """Of n words, k are doubled in place, k uniform in 0 to max(2, ⌊share·n⌋), at most n.

    ESimCSE (Wu et al. 2022), equation 2, on words where the paper takes sub-words; it uses a
    share of 0.32.
    """
    words = sentence.split()
    most = min(len(words), max(2, int(share * len(words))))
    doubled = set(random.sample(range(len(words)), random.randint(0, most)))
    return " ".join(
        f"{word} {word}" if place in doubled else word for place, word in enumerate(words)
    )
