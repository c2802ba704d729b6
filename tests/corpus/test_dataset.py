"""A Hugging Face dataset's column as a corpus."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mtdlab.corpus import corpus as module
from mtdlab.corpus.corpus import open_corpus, parse_dataset
from mtdlab.corpus.lines import Tally
from mtdlab.errors import MtdlabError


@pytest.fixture
def datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The library, with a cache of the test's own."""
    library = pytest.importorskip("datasets", reason="the extra datasets is not installed")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return library


def test_a_name_says_where_and_which() -> None:
    assert parse_dataset("dataset:me/it") == ("me/it", None, "train", "text")
    assert parse_dataset("dataset:it:en:test#body") == ("it", "en", "test", "body")
    assert parse_dataset("dataset:./it::test") == ("./it", None, "test", "text")
    for name in ("dataset:", "dataset:#text", "dataset:a:b:c:d"):
        with pytest.raises(MtdlabError, match="it is spelled dataset:NAME:CONFIG:SPLIT#COLUMN"):
            parse_dataset(name)


ROWS = {"body": [" one", None, "two\0", "", "three\nlines"], "label": [0, 1, 0, 1, 0]}


def test_a_saved_dataset_is_its_columns_rows(
    datasets: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "DATASET_ROWS", 2)
    saved = datasets.Dataset.from_dict(ROWS)
    saved.save_to_disk(tmp_path / "one")
    datasets.DatasetDict({"dev": saved}).save_to_disk(tmp_path / "splits")
    for name in (f"dataset:{tmp_path / 'one'}#body", f"dataset:{tmp_path / 'splits'}::dev#body"):
        tally = Tally()
        assert list(open_corpus(name).sentences(tally)) == ["one", "two", "three\nlines"]
        assert tally == Tally(lines=5, blank=2, nuls=1, done=5, total=5)
    with pytest.raises(MtdlabError, match=r"cannot be loaded: .*train"):
        open_corpus(f"dataset:{tmp_path / 'splits'}#body")


def test_a_folder_of_json_or_parquet_is_a_dataset(datasets: Any, tmp_path: Path) -> None:
    saved = datasets.Dataset.from_dict({"text": ["one", "two"]})
    for kind in ("json", "parquet"):
        folder = tmp_path / kind
        folder.mkdir()
        getattr(saved, f"to_{kind}")(folder / f"train.{kind}")
        assert list(open_corpus(f"dataset:{folder}").sentences()) == ["one", "two"]


def test_the_fingerprint_is_that_of_the_values(datasets: Any, tmp_path: Path) -> None:
    def fingerprint(*values: str | None) -> str:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        datasets.Dataset.from_dict({"text": values}).save_to_disk(folder)
        return open_corpus(f"dataset:{folder}").fingerprint

    columns: list[tuple[str | None, ...]] = [("a", "b"), ("b", "a"), ("ab",), ("a", "b", None)]
    assert len({fingerprint(*values) for values in columns}) == len(columns)
    assert fingerprint("a", "b") == fingerprint("a", "b")


def test_what_is_not_there_is_one_sentence(datasets: Any, tmp_path: Path) -> None:
    datasets.Dataset.from_dict(ROWS).save_to_disk(tmp_path / "one")
    with pytest.raises(MtdlabError, match=r"no column label of text; there is body: give it as #"):
        open_corpus(f"dataset:{tmp_path / 'one'}#label")
    datasets.Dataset.from_dict({"text": ["", None]}).save_to_disk(tmp_path / "empty")
    with pytest.raises(MtdlabError, match="holds no sentence"):
        open_corpus(f"dataset:{tmp_path / 'empty'}")
    (tmp_path / "none").mkdir()
    with pytest.raises(MtdlabError, match=r"corpus dataset:.*none: cannot be loaded: "):
        open_corpus(f"dataset:{tmp_path / 'none'}")
    with pytest.raises(MtdlabError, match="neither a folder here nor in the local cache; give"):
        open_corpus("dataset:no/such")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MtdlabError, match=r"install the extra: pip install 'mtdlab\[datasets\]'"):
        open_corpus("dataset:no/such")


@pytest.mark.usefixtures("datasets")
def test_a_hub_out_of_reach_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(module.hub, "reachable", lambda: False)
    with pytest.raises(MtdlabError, match="the hub cannot be reached; give a folder, or set HF_H"):
        open_corpus("dataset:no/such")
