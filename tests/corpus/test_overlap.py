"""Evaluation sentences that stand in the training text, by their words."""

from pathlib import Path

import pytest

from mtdlab.corpus.survey import Overlap, normalise, overlap, survey


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, World!", "hello world"),
        ("  A dog   runs. ", "a dog runs"),
        ("ﬁne — STRASSE", "fine Straße"),
        ("it's 3.5", "it s 3 5"),
    ],
)
def test_case_punctuation_and_space_do_not_count(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert normalise("a dog runs") != normalise("a dog ran")


def test_an_overlap_counts_different_sentences() -> None:
    texts = ["A dog runs.", "a dog runs", "No cat.", "?!"]
    found = overlap("dev", texts, {"a dog runs", "something else", ""})
    assert found == Overlap("dev", 2, 1, ("a dog runs",))


def test_a_survey_looks_for_the_evaluation_in_the_text(tmp_path: Path, tiny_encoder: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("A dog runs!\nthe cat\n" + "more text\n" * 9000 + "the last one\n")
    evaluated = {"dev": ["the cat", "no such"], "test": ["The last one.", "a dog runs", "none"]}
    found = survey(str(path), str(tiny_encoder), 8, evaluated).overlaps
    assert found == (
        Overlap("dev", 2, 1, ("the cat",)),
        Overlap("test", 3, 2, ("a dog runs", "The last one.")),
    )
    assert survey(str(path), str(tiny_encoder), 8).overlaps == ()
