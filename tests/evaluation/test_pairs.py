"""STS-B's files as people have them."""

from pathlib import Path

import pytest

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import load_pairs

GOOD = "g\tf\ty\t0001\t5.000\ta dog .\ta dog runs .\n"
OTHER = "g\tf\ty\t0002\t1.000\ta cat .\ta dog runs .\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sts-dev.csv"


def test_columns_5_to_7_are_score_and_sentences(file: Path) -> None:
    row = 'g\tf\ty\t2\t0.25\tHe said "no .\tna\u00efve\u2028\x85 one\textra\n'
    file.write_text(GOOD + row + GOOD)
    pairs = load_pairs(str(file.parent), "dev")
    assert pairs.first == ["a dog .", 'He said "no .', "a dog ."]
    assert pairs.second == ["a dog runs .", "na\u00efve one", "a dog runs ."]
    assert pairs.gold.tolist() == [5, 0.25, 5]


def test_windows_line_ends_and_no_end_at_all(file: Path) -> None:
    file.write_bytes((GOOD + OTHER + GOOD).replace("\n", "\r\n").encode().rstrip())
    assert load_pairs(str(file.parent), "dev").second[::2] == ["a dog runs ."] * 2


def test_a_pair_without_a_score_is_left_out(file: Path) -> None:
    file.write_text(GOOD + GOOD.replace("5.000", "") + OTHER + GOOD)
    assert load_pairs(str(file.parent), "dev").gold.tolist() == [5, 1, 5]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (GOOD + "g\tf\ty\t1\t5\tone\n" + GOOD, r"sts-dev.csv:2: 6 columns; 7 are needed"),
        (GOOD + "\n" + GOOD, r"sts-dev.csv:2: 1 columns; 7 are needed"),
        (GOOD * 2 + GOOD.replace("5.000", "high"), r"sts-dev.csv:3: 'high' is no score"),
        (GOOD * 2 + GOOD.replace("5.000", "nan"), r"sts-dev.csv:3: 'nan' is no score"),
        (GOOD * 2 + GOOD.replace("5.000", "inf"), r"sts-dev.csv:3: 'inf' is no score"),
        (GOOD, "1 scored pairs; at least 2 are needed"),
        ("", r"sts-dev.csv: is empty; fetch it again"),
        (GOOD.replace("5.000", ""), "0 scored pairs; at least 2 are needed"),
        (GOOD * 2 + GOOD.replace("a dog .", " "), r"sts-dev.csv:3: holds an empty sentence"),
    ],
)
def test_what_does_not_fit_is_pointed_at(file: Path, rows: str, message: str) -> None:
    file.write_text(rows)
    with pytest.raises(MtdlabError, match=message):
        load_pairs(str(file.parent), "dev")


def test_missing_and_unreadable_files(file: Path) -> None:
    with pytest.raises(MtdlabError, match=r"sts-dev.csv: cannot be read: .*give a folder"):
        load_pairs(str(file.parent), "dev")
    with pytest.raises(MtdlabError, match=r"sts-test.csv: cannot be read: "):
        load_pairs(str(file.parent), "test")
    with pytest.raises(MtdlabError, match="cannot be read: "):
        load_pairs("a\0b", "dev")
    file.write_bytes(GOOD.encode() + b"\xff\n")
    with pytest.raises(MtdlabError, match=r"sts-dev.csv:2: byte 0xff is not UTF-8"):
        load_pairs(str(file.parent), "dev")


def test_the_builtin_pairs_are_another_for_each_split() -> None:
    dev, test = load_pairs("builtin", "dev"), load_pairs("builtin", "test")
    assert not set(dev.first + dev.second) & set(test.first + test.second)
    assert len(dev.first) == len(dev.second) == len(dev.gold)
