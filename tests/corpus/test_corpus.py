"""Text files as they come."""

import gzip
from pathlib import Path
from tempfile import mkdtemp

import pytest

from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.lines import Tally
from mtdlab.errors import MtdlabError
from tests.corpus.conftest import Write


@pytest.mark.parametrize("data", [b"", b"\n \n\t\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_a_sentence_is_refused(write: Write, data: bytes) -> None:
    with pytest.raises(MtdlabError, match="holds no sentence; one is expected a line"):
        open_corpus(write(data))


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MtdlabError, match="no such file or directory; give a text file"):
        open_corpus(str(tmp_path / "nowhere.txt"))
    with pytest.raises(MtdlabError, match="null byte; give a text file"):
        open_corpus(str(tmp_path / "a\0b"))
    with pytest.raises(MtdlabError, match=r"^corpus a/\w+: cannot be read: no such file or folder"):
        open_corpus("a/" + "b" * 300)
    with pytest.raises(MtdlabError, match="is neither a file nor a folder"):
        open_corpus("/dev/null")


def test_a_folder_is_its_text_files_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("three\n")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n\ntwo"))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(b"four\n"))
    for other in ("README.md", ".hidden.txt", "text"):
        (tmp_path / other).write_text("not this\n")
    (tmp_path / "folder.txt").mkdir()
    tally = Tally()
    corpus = open_corpus(str(tmp_path))
    assert list(corpus.sentences(tally)) == ["one", "two", "three", "four"]
    assert (tally.lines, tally.blank) == (5, 1)
    assert tally.done == tally.total > 50


def test_a_folder_without_text_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(MtdlabError, match=r"no file that ends in .txt or .gz; a saved dataset is"):
        open_corpus(str(tmp_path))


def test_any_change_in_a_folder_changes_its_fingerprint(tmp_path: Path) -> None:
    def fingerprint(**files: str) -> str:
        folder = Path(mkdtemp(dir=tmp_path))
        for name, text in files.items():
            (folder / f"{name}.txt").write_text(text)
        return open_corpus(str(folder)).fingerprint

    folders = [
        {"a": "one\n", "b": "two\n"},
        {"a": "two\n", "b": "one\n"},
        {"a": "one\ntwo\n"},
        {"a": "one", "b": "two\n"},
        {"a": "one\n", "b": "two\n", "c": "two\n"},
        {"a": "onetwo\n"},
    ]
    assert len({fingerprint(**files) for files in folders}) == len(folders)
    assert fingerprint(a="one\n", b="two\n") == fingerprint(c="one\n", d="two\n")


def test_the_fingerprint_is_that_of_the_content(write: Write) -> None:
    texts = {"a.txt": "one\ntwo\n", "b.txt": "one\ntwo\n", "c.txt": "one\ntwo!\n"}
    first, same, other = (open_corpus(write(text, name)) for name, text in texts.items())
    assert first.fingerprint == same.fingerprint != other.fingerprint


def test_the_builtin_corpus() -> None:
    corpus = open_corpus("builtin")
    assert corpus == open_corpus("builtin")
    assert len(list(corpus.sentences())) > 1000
