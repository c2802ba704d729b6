"""Text files as they come."""

from pathlib import Path

import pytest

from mtdlab.errors import MtdlabError
from mtdlab.text.corpus import open_corpus


@pytest.mark.parametrize(
    ("data", "sentences"),
    [
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\ntwo", ["one", "two"]),
        (b"\n  \n\tone \n\n\xc2\xa0\ntwo\n\n", ["one", "two"]),
        (b"\xef\xbb\xbfone\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo\r\n\r\n", ["one", "two"]),
        (b"a \xff b\ntwo\n", ["a \ufffd b", "two"]),
        ("na\u00efve \u05e9\u05dc\u05d5\u05dd\na\u2028b\n".encode(),
         ["na\u00efve \u05e9\u05dc\u05d5\u05dd", "a\u2028b"]),
    ],
    ids=["plain", "no end", "blank", "mark", "windows", "invalid", "unicode"],
)  # fmt: skip
def test_lines_become_sentences(tmp_path: Path, data: bytes, sentences: list[str]) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes(data)
    corpus = open_corpus(str(path))
    assert list(corpus.sentences()) == sentences
    assert list(corpus.sentences()) == sentences


@pytest.mark.parametrize("data", [b"", b"\n \n\t\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_a_sentence_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "corpus.txt"
    path.write_bytes(data)
    with pytest.raises(MtdlabError, match="holds no sentence; one is expected a line"):
        open_corpus(str(path))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MtdlabError, match="no such file or directory; give a text file"):
        open_corpus(str(tmp_path / "nowhere.txt"))
    with pytest.raises(MtdlabError, match="is a directory; give a text file"):
        open_corpus(str(tmp_path))
    with pytest.raises(MtdlabError, match="null byte; give a text file"):
        open_corpus("a\0b")


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text("one\ntwo\n")
    second.write_text("one\ntwo\n")
    assert open_corpus(str(first)).fingerprint == open_corpus(str(second)).fingerprint
    second.write_text("one\ntwo!\n")
    assert open_corpus(str(first)).fingerprint != open_corpus(str(second)).fingerprint


def test_the_builtin_corpus() -> None:
    corpus = open_corpus("builtin")
    assert corpus == open_corpus("builtin")
    assert len(list(corpus.sentences())) > 1000
