"""Typos and repetition: by hand, and by how often."""

from collections import Counter
from random import Random

import pytest

from mtdlab.corpus.augmented import NEIGHBOURS, repetition, typos

WORDS = "the old dog sleeps near a small happy house and 3 children sing".split()  # noqa: SIM905


@pytest.mark.parametrize(
    ("key", "beside"), [("g", "tyfhvb"), ("q", "12wa"), ("p", "0ol"), ("m", "jkn"), ("1", "2q")]
)
def test_neighbours_of_a_key(key: str, beside: str) -> None:
    assert sorted(NEIGHBOURS[key]) == sorted(beside)


def test_neighbours_are_each_others() -> None:
    assert all(key in NEIGHBOURS[other] for key in NEIGHBOURS for other in NEIGHBOURS[key])


def _possible(word: str) -> set[str]:
    """Every way to mistype a word in one character, kind by kind."""
    found = set()
    for place, letter in enumerate(word):
        found.add(word[:place] + 2 * letter + word[place + 1 :])
        found.add(word[:place] + word[place + 1 :])
        found.update(
            word[:place] + (key.upper() if letter.isupper() else key) + word[place + 1 :]
            for key in NEIGHBOURS.get(letter.lower(), "")
        )
        found.add(word[:place] + word[place + 1 : place + 2] + letter + word[place + 2 :])
    return found - {word, ""}


@pytest.mark.parametrize("word", ["cat", "All", "ok", "a", "7", "é", "東京", "x.", "oo"])
def test_a_typo_is_any_of_the_possible_and_nothing_else(word: str) -> None:
    drawn = {typos(word, 1.0, Random(seed)) for seed in range(3000)}
    assert drawn == _possible(word)


def test_typos_reach_their_share_of_words_and_leave_the_spaces() -> None:
    sentence = "  ".join(WORDS)
    changed: Counter[str] = Counter()
    for seed in range(2000):
        new = typos(sentence, 0.2, Random(seed)).split("  ")
        changed.update(old for old, word in zip(WORDS, new, strict=True) if old != word)
    # 2000 draws of 0.2 have a standard deviation of 0.009
    assert all(0.16 < changed[word] / 2000 < 0.24 for word in WORDS)


def test_repetition_doubles_words_in_place() -> None:
    assert {repetition("the old  dog", 0.5, Random(seed)) for seed in range(200)} == {
        "the old dog",
        "the the old dog",
        "the old old dog",
        "the old dog dog",
        "the the old old dog",
        "the the old dog dog",
        "the old old dog dog",
    }


def _doubled(old: list[str], new: list[str]) -> list[bool]:
    """Which words of `old`, all different, stand twice in `new`; fails for anything else."""
    counts = Counter(new)
    assert new == [word for word in old for _ in range(counts[word])]
    assert set(counts.values()) <= {1, 2}
    return [counts[word] == 2 for word in old]


def test_the_number_repeated_is_uniform_up_to_the_share() -> None:
    numbers, places = Counter[int](), Counter[int]()
    for seed in range(4000):
        doubled = _doubled(WORDS, repetition(" ".join(WORDS), 0.32, Random(seed)).split())
        numbers[sum(doubled)] += 1
        places.update(place for place, twice in enumerate(doubled) if twice)
    # 13 words: 0 to 4 of them, 800 times each, give or take 25; 2 on average, so 615 a place
    assert set(numbers) == {0, 1, 2, 3, 4}
    assert all(abs(count - 800) < 125 for count in numbers.values())
    assert all(abs(count - 4000 * 2 / 13) < 125 for count in places.values())


@pytest.mark.parametrize(("sentence", "most"), [("one", 1), ("one two", 2), ("a b c d e", 2)])
def test_a_short_sentence_repeats_up_to_two_words(sentence: str, most: int) -> None:
    words = sentence.split()
    counts = {
        sum(_doubled(words, repetition(sentence, 0.32, Random(seed)).split())) for seed in range(99)
    }
    assert counts == set(range(most + 1))
