"""How augmentations are spelled."""

from pathlib import Path

import pytest

from mtdlab.config.reader import read_study
from mtdlab.errors import MtdlabError
from mtdlab.settings.augmentation import (
    EMBEDDING_LEVEL,
    TEXT_LEVEL,
    Augmentation,
    parse_augmentation,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", []),
        ("position-shuffle", [Augmentation("position-shuffle")]),
        ("token-cutoff:0.2", [Augmentation("token-cutoff", 0.2)]),
        ("repetition:.32", [Augmentation("repetition", 0.32)]),
        ("synonyms:bert-base-uncased", [Augmentation("synonyms", None, ("bert-base-uncased",))]),
        ("paraphrase:/models/a:b", [Augmentation("paraphrase", None, ("/models/a:b",))]),
        ("back-translation:a/b, c", [Augmentation("back-translation", None, ("a/b", "c"))]),
        (
            "typos:0.1 + token-cutoff:.1",
            [Augmentation("typos", 0.1), Augmentation("token-cutoff", 0.1)],
        ),
    ],
)
def test_spellings(text: str, expected: list[Augmentation]) -> None:
    assert parse_augmentation(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "unknown augmentation ''; choose none, or one"),
        ("typo:0.1", "unknown augmentation 'typo:0.1'"),
        ("none+typos:0.1", "unknown augmentation 'none'"),
        ("typos:0.1+", "unknown augmentation ''"),
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
        ("typos:0.1+repetition:0.2+typos:0.3", "typos occurs twice"),
    ],
)
def test_what_is_malformed_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("+", r"\+")):
        parse_augmentation(text)


def test_the_text_of_an_augmentation_is_canonical_and_parses_back() -> None:
    text = "token-cutoff:0.2+position-shuffle+typos:0.1+back-translation:a,b"
    assert "+".join(map(str, parse_augmentation(text))) == text
    assert [str(one) for one in parse_augmentation(" typos : 0.10")] == ["typos:0.1"]


def test_every_augmentation_has_one_level() -> None:
    assert len({*EMBEDDING_LEVEL, *TEXT_LEVEL}) == len(EMBEDDING_LEVEL) + len(TEXT_LEVEL) == 8


def test_a_study_knows_every_augmentation_of_its_trials(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    search = "search: {augmentation: [none, 'typos:0.1', 'synonyms:a/b']}\n"
    for text, expected in (
        (search, ("none", "typos:0.1", "synonyms:a/b")),
        ("trainer: {augmentation: 'typos:0.1'}\nsearch: {ema_decay: [0.1]}\n", ("typos:0.1",)),
    ):
        path.write_text(f"study: words\n{text}")
        assert read_study(path).possible_values("augmentation") == expected
    path.write_text(f"study: words\n{search.replace('typos', 'typo')}")
    with pytest.raises(MtdlabError, match=r"unknown augmentation 'typo:0\.1'"):
        read_study(path)
