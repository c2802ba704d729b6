"""Texts as they come: where they are found, what becomes a sentence, what is counted instead."""

import gzip
import sys
import tracemalloc
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from mtdlab.corpus import corpus as module
from mtdlab.corpus import lines
from mtdlab.corpus.corpus import open_corpus, parse_dataset
from mtdlab.corpus.lines import CHARACTERS, Tally, raw_lines
from mtdlab.data_paths import find_data
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.evaluate import senteval_folder
from mtdlab.evaluation.pairs import evaluation_folder, load_pairs
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


def sentences_of(path: Path, tally: Tally) -> list[str]:
    return list(filter(None, map(tally.sentence, raw_lines(path, tally))))


def read(path: Path, data: bytes) -> tuple[list[str], Tally]:
    path.write_bytes(data)
    tally = Tally()
    return sentences_of(path, tally), tally


@pytest.mark.parametrize(
    ("data", "sentences", "expected"),
    [
        (b"one\n\n \t\r\ntwo", ["one", "two"], Tally(lines=4, blank=2)),
        (
            b"a \xff\xfe b\n\xe2\x82\n",
            ["a \ufffd\ufffd b", "\ufffd\ufffd"],
            Tally(lines=2, bad_bytes=4),
        ),
        ("\u20ac \ufffd\n".encode(), ["\u20ac \ufffd"], Tally(lines=1)),
        (b"\xed\xb2\x80\n", ["\ufffd" * 3], Tally(lines=1, bad_bytes=3)),
        (
            "\xa0\n \xef\u05dd\na\u2028b".encode(),
            ["\xef\u05dd", "a\u2028b"],
            Tally(lines=3, blank=1),
        ),
        (b"a\0b\0\n\0\n", ["ab"], Tally(lines=2, blank=1, nuls=3)),
        (b"\xef\xbb\xbfone\n\xef\xbb\xbftwo\n", ["one", "\ufefftwo"], Tally(lines=2)),
        (b"123456789", ["12345678"], Tally(lines=1, cut=1)),
        (b"12345678\n1234567\n", ["12345678", "1234567"], Tally(lines=2)),
        (b"12345678\r\n123456789\r\nx\n", ["12345678", "12345678", "x"], Tally(lines=3, cut=1)),
        (b"1" * 100 + b"\nx\n" + b" " * 9, ["11111111", "x"], Tally(lines=3, cut=2, blank=1)),
    ],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_is_left_out_or_replaced_is_counted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: bytes,
    sentences: list[str],
    expected: Tally,
    pack,
) -> None:
    monkeypatch.setattr(lines, "CHARACTERS", 8)
    packed = pack(data)
    found, tally = read(tmp_path / "x", packed)
    assert found == sentences
    expected.done = len(packed)
    assert tally == expected


def test_reading_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "REFRESH", 2)
    path = tmp_path / "x"
    path.write_bytes(b"a line\n" * 100_000)
    tally, seen = Tally(done=5), []
    for _ in raw_lines(path, tally):
        seen.append(tally.done)
    assert seen == sorted(seen)
    assert 5 < seen[50_000] < tally.done == 700_005


def test_the_remarks_are_the_counts_that_are_not_zero() -> None:
    assert Tally(lines=7).remarks() == []
    assert Tally(lines=7000, blank=3, cut=1, bad_bytes=1200, nuls=2).remarks() == [
        "blank lines left out: 3 of 7,000",
        "lines cut after 100,000 characters: 1",
        "bytes not UTF-8, now U+FFFD: 1,200",
        "NUL characters removed: 2",
    ]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_utf_16_is_refused(tmp_path: Path, encoding: str, pack) -> None:
    with pytest.raises(MtdlabError, match=r"x: is UTF-16 or UTF-32, not UTF-8; convert it"):
        read(tmp_path / "x", pack("\ufeffone\n".encode(encoding)))


PACKED = gzip.compress(b"".join(b"line %d\n" % number for number in range(20_000)))


@pytest.mark.parametrize(
    "data",
    [
        PACKED[:-1],
        PACKED[: len(PACKED) // 2],
        PACKED[:5],
        PACKED + b"more",
        PACKED[:5000] + b"????" + PACKED[5004:],
    ],
    ids=["end", "half", "head", "tail", "middle"],
)
def test_damaged_gzip_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(MtdlabError, match=r"x: the gzip file is damaged or cut short"):
        read(tmp_path / "x", data)


def test_a_line_of_ten_megabytes_is_cut_in_bounded_memory(tmp_path: Path) -> None:
    path, tally = tmp_path / "long.txt", Tally()
    path.write_bytes(b"x" * 10_000_000 + b"\ntwo\n")
    tracemalloc.start()
    sentences = sentences_of(path, tally)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len(sentence) for sentence in sentences] == [CHARACTERS, 3]
    assert (tally.lines, tally.cut) == (2, 1)
    assert peak < 2e6


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
    monkeypatch.setattr(module, "ROWS", 2)
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
    with pytest.raises(MtdlabError, match="neither a folder here nor in the local hub cache; give"):
        open_corpus("dataset:no/such")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MtdlabError, match=r"install the extra: pip install 'mtdlab\[datasets\]'"):
        open_corpus("dataset:no/such")


@pytest.mark.usefixtures("datasets")
def test_a_hub_out_of_reach_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(module, "reachable", lambda: False)
    with pytest.raises(MtdlabError, match="the hub cannot be reached; give a folder, or set HF_H"):
        open_corpus("dataset:no/such")


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
    end = rf"set MTDLAB_DATA to .*: --set trainer\.{setting}=PATH\)$"
    where = "or beside the study file, if any"
    with pytest.raises(
        MtdlabError, match=rf"^{setting} no/a: cannot .*MTDLAB_DATA \({data}\) {where}; {end}"
    ):
        act("no/a")
    monkeypatch.delenv("MTDLAB_DATA")
    with pytest.raises(
        MtdlabError, match=f"^{setting} wiki/a.txt: .*in the working folder {where}; {end}"
    ):
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
