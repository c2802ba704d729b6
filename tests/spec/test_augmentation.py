"""How augmentations are spelled."""

import pytest

from mtdlab.spec.augmentation import (
    EMBEDDING_LEVEL,
    TEXT_LEVEL,
    Augmentation,
    parse_augmentation,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", []),
        ("position-shuffle", [Augmentation("position-shuffle", None, ())]),
        ("token-cutoff:0.2", [Augmentation("token-cutoff", 0.2, ())]),
        ("repetition:.32", [Augmentation("repetition", 0.32, ())]),
        ("synonyms:bert-base-uncased",
         [Augmentation("synonyms", None, ("bert-base-uncased",))]),
        ("paraphrase:/models/a:b", [Augmentation("paraphrase", None, ("/models/a:b",))]),
        ("back-translation:a/en-de, a/de-en",
         [Augmentation("back-translation", None, ("a/en-de", "a/de-en"))]),
        ("typos:0.1 + feature-cutoff:0.01",
         [Augmentation("typos", 0.1, ()), Augmentation("feature-cutoff", 0.01, ())]),
    ],
)  # fmt: skip
def test_spellings(text: str, expected: list[Augmentation]) -> None:
    assert parse_augmentation(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "'': not known; write none, or one"),
        ("typo:0.1", "'typo:0.1': not known"),
        ("none+typos:0.1", "'none': not known"),
        ("typos:0.1+", "'': not known"),
        ("typos", "'typos': needs a share above 0 and below 1, as in typos:0.1"),
        ("typos:much", "needs a share"),
        ("typos:0", "needs a share"),
        ("repetition:1", "needs a share"),
        ("token-cutoff:-0.1", "needs a share"),
        ("feature-cutoff:nan", "needs a share"),
        ("position-shuffle:0.1", "takes no argument; write position-shuffle"),
        ("position-shuffle:", "takes no argument"),
        ("synonyms", "write synonyms:MODEL, each"),
        ("synonyms:a,b", "write synonyms:MODEL, each"),
        ("back-translation:a", "write back-translation:MODEL,MODEL, each"),
        ("back-translation:a,", "write back-translation:MODEL,MODEL, each"),
        ("typos:0.1+repetition:0.2+typos:0.3", "names typos twice"),
    ],
)
def test_what_is_malformed_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("+", r"\+")):
        parse_augmentation(text)


def test_text_of_an_augmentation_reads_back_and_is_one_for_all_that_mean_the_same() -> None:
    text = "token-cutoff:0.2+position-shuffle+typos:0.1+back-translation:a,b"
    assert "+".join(map(str, parse_augmentation(text))) == text
    assert [str(one) for one in parse_augmentation(" typos : 0.10")] == ["typos:0.1"]


def test_every_augmentation_has_one_level() -> None:
    assert len({*EMBEDDING_LEVEL, *TEXT_LEVEL}) == len(EMBEDDING_LEVEL) + len(TEXT_LEVEL) == 8
