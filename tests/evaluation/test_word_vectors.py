"""Averages of word vectors, the formats of their files, and damaged lines."""

from pathlib import Path

import numpy as np
import pytest

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.evaluate import as_fields, as_text, evaluate
from mtdlab.evaluation.word_vectors import WordAverages, read_vectors, words_of

GLOVE = "dog 1 0 2\nthe 0 1 0\n. . . 9 9 9\ncat -1 0.5 1e-1\ndog 7 7 7\n"


def file_of(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_words_are_lower_case_and_punctuation_is_apart() -> None:
    assert words_of("The dog's 2 cats, here!") == ["the", "dog's", "2", "cats", ",", "here", "!"]


@pytest.mark.parametrize("header", ["", "5 3\n"], ids=["glove", "word2vec"])
def test_a_sentence_is_the_mean_of_its_known_words(tmp_path: Path, header: str) -> None:
    path = file_of(tmp_path, header + GLOVE)
    found = WordAverages(["The dog dog", "a cat", "zebra", "a cat"], path)
    vectors = found.vectors[found.rows(["The dog dog", "a cat", "zebra"])]
    expected = [[2 / 3, 1 / 3, 4 / 3], [-1, 0.5, 0.1], [0, 0, 0]]
    assert vectors == pytest.approx(np.array(expected))
    assert len(found) == 3
    assert found.remark == (
        "2 of 6 words (33.3%) have no vector; 1 sentences have no word with one"
    )


def test_only_wanted_words_are_kept(tmp_path: Path) -> None:
    found = read_vectors(file_of(tmp_path, GLOVE), {"dog", ". . .", "mouse"})
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "dog": [1, 0, 2],
        ". . .": [9, 9, 9],
    }
    # the dimension is that of the first line, so words may contain spaces later on
    spaced = read_vectors(file_of(tmp_path, "a 1 2\nx y 3 4\n"), {"x y"})
    assert spaced["x y"].tolist() == [3, 4]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("dog 1 2 3\ncat 1 2\n", "line 2 has 2 numbers; it must have a word and 3 numbers"),
        ("2 3\ndog 1 2\n", "line 2 has 2 numbers; it must have a word and 3"),
        ("cat 1 2 3\ndog 1 x 3\n", "line 2 contains a value that is not a finite number"),
        ("dog 1 nan 3\n", "line 1 contains a value that is not a finite number"),
        ("dog\n", "line 1 has 0 numbers"),
        ("cat 1 2\n\ndog 1 2\n", "line 2 has 0 numbers"),
        ("dog 1 2\ncat 0.5 2 3\n", "line 2 has 3 numbers; it must have a word and 2"),
        ("3 2\ncat 1 2\ndog 1 2\n", "has 2 words, but its first line says 3; it may have been cut"),
        ("1 2\ncat 1 2\ndog 1 2\n", "has 2 words, but its first line says 1"),
        ("", "holds no word vector"),
        (b"300 3\ndog \x00\x01\x02", "line 2 is no text of a word and numbers"),
        (b"a 1 2\n" + b"1 " * 600_000, "line 2 is no text"),
    ],
    ids="short header letters nan word blank longer cut more empty binary long".split(),  # noqa: SIM905,
)
def test_damaged_files_are_refused(tmp_path: Path, text: str | bytes, reason: str) -> None:
    with pytest.raises(MtdlabError, match=reason):
        read_vectors(file_of(tmp_path, text), {"dog"})


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MtdlabError, match="cannot be read: no such file or directory"):
        read_vectors(tmp_path / "absent.txt", {"dog"})


@pytest.mark.slow
def test_word_vectors_are_evaluated_like_an_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MTDLAB_DATA", raising=False)
    random = np.random.default_rng(0)
    words = "the a that by of who in woman man boy girl ran dog cat slept was is at".split()  # noqa: SIM905
    lines = [f"{word} {' '.join(f'{x:.4f}' for x in random.normal(size=6))}" for word in words]
    path = file_of(tmp_path, "\n".join(lines))
    plain, flowed, again = (
        evaluate(f"vectors:{path}", tasks="builtin", flow=seed) for seed in (None, 1, 1)
    )
    assert plain.scores[0].score is not None
    assert flowed.scores[0].score is not None
    assert abs(plain.scores[0].score - flowed.scores[0].score) > 0.01
    assert again.scores == flowed.scores
    assert "have no vector" in as_text(plain)[1]
    assert "mapped by a flow (seed 1)" in as_text(flowed)[0]
    described = as_fields(flowed)
    assert (described["flow"]["seed"], described["whiten"]) == (1, None)
    with pytest.raises(MtdlabError, match="whitening and a flow cannot be combined"):
        evaluate("builtin", tasks="builtin", whiten=3, flow=0)
    with pytest.raises(MtdlabError, match="word vectors have no --pooling, --precision, --enc"):
        evaluate(f"vectors:{path}", tasks="builtin", pooling="mean")
