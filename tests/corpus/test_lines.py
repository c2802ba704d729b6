"""What of a text file becomes a sentence, and what is counted instead."""

import gzip
import tracemalloc
from pathlib import Path

import pytest

from mtdlab.corpus import lines as module
from mtdlab.corpus.lines import CHARACTERS, Tally, raw_lines
from mtdlab.errors import MtdlabError


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
    monkeypatch.setattr(module, "CHARACTERS", 8)
    packed = pack(data)
    found, tally = read(tmp_path / "x", packed)
    assert found == sentences
    expected.done = len(packed)
    assert tally == expected


def test_reading_says_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REFRESH", 2)
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
