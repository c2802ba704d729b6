"""Texts named by relative paths: in the working folder, else under MTDLAB_DATA."""

from pathlib import Path

import pytest

from mtdlab.corpus.corpus import open_corpus
from mtdlab.data_paths import find_data
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.evaluate import senteval_folder
from mtdlab.evaluation.pairs import evaluation_folder, load_pairs


@pytest.fixture
def data(tmp_path: Path, tiny_pairs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with wiki/ and senteval/ that MTDLAB_DATA names; the working folder is another."""
    data = tmp_path / "data"
    (data / "wiki").mkdir(parents=True)
    (data / "wiki" / "a.txt").write_text("one sentence\n")
    (data / "senteval" / "STS").mkdir(parents=True)
    (data / "senteval" / "STS" / "STSBenchmark").symlink_to(tiny_pairs)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("MTDLAB_DATA", str(data))
    return data


def test_a_relative_path_is_here_or_under_the_variable(data: Path) -> None:
    assert find_data("corpus", "wiki/a.txt") == data / "wiki" / "a.txt"
    assert list(open_corpus("wiki/a.txt").sentences()) == ["one sentence"]
    under = open_corpus("wiki/a.txt")
    Path("wiki").mkdir()
    Path("wiki/a.txt").write_text("another sentence\n")
    assert find_data("corpus", "wiki/a.txt") == Path("wiki/a.txt")
    here = open_corpus("wiki/a.txt")
    assert list(here.sentences()) == ["another sentence"]
    # a study keeps the name that its file gives; the content is known by the fingerprint
    assert under.name == here.name == "wiki/a.txt"
    assert under.fingerprint != here.fingerprint


def test_an_absolute_path_is_taken_as_it_is(data: Path) -> None:
    assert find_data("corpus", str(data / "wiki")) == data / "wiki"
    assert find_data("corpus", "/no/such/file") == Path("/no/such/file")


@pytest.mark.parametrize("setting", ["corpus", "evaluation"])
def test_what_is_in_neither_is_one_sentence(
    data: Path, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = open_corpus if setting == "corpus" else evaluation_folder
    end = rf"set MTDLAB_DATA to .*: --set trainer\.{setting}=PATH$"
    with pytest.raises(
        MtdlabError, match=rf"^{setting} no/a: cannot .*MTDLAB_DATA \({data}\); {end}"
    ):
        act("no/a")
    monkeypatch.delenv("MTDLAB_DATA")
    with pytest.raises(MtdlabError, match=f"^{setting} wiki/a.txt: .*or the working folder; {end}"):
        act("wiki/a.txt")


def test_pairs_are_found_there_too(data: Path) -> None:
    assert evaluation_folder("builtin") is None
    assert len(load_pairs("senteval", "dev")) == len(load_pairs(str(data / "senteval"), "dev"))


def test_the_variable_names_senteval_or_the_folder_that_holds_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert senteval_folder(None) == data / "senteval"
    assert senteval_folder(data) == data
    monkeypatch.setenv("MTDLAB_DATA", str(data / "senteval"))
    assert senteval_folder(None) == data / "senteval"
    monkeypatch.delenv("MTDLAB_DATA")
    assert senteval_folder(None) is None
