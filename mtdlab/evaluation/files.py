"""Text files of published data sets, read line by line; errors name the file and the line."""

import math
from pathlib import Path

from mtdlab.corpus.lines import reading
from mtdlab.errors import MtdlabError
from mtdlab.settings.limits import FURTHEST


def read_lines(path: Path, encoding: str = "utf-8-sig") -> list[tuple[str, str]]:
    """Each line as (place, line without its end), place being `evaluation FILE:LINE`.

    A line ends at LF or CR LF and nowhere else: `str.splitlines` would also break at characters
    inside published sentences. Raises MtdlabError, with the line, for a file that cannot be read,
    is empty, or holds bytes that are not in `encoding` or a NUL, as UTF-16 does.
    """
    hint = (
        "give a folder in SentEval's layout, or one with dev.tsv and test.tsv (first sentence, "
        "second, score)"
    )
    with reading(f"evaluation {path}", hint):
        content = path.read_bytes()
    plain = encoding.removesuffix("-sig").upper()
    if (at := content.find(b"\0")) >= 0:
        raise MtdlabError(
            f"{_place(path, content, at)}: holds a NUL byte; the file must be {plain}"
        )
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise MtdlabError(
            f"{_place(path, content, error.start)}: byte 0x{content[error.start]:02x} is not "
            f"{plain}; save the file as {plain}"
        ) from None
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise MtdlabError(f"evaluation {path}: is empty; fetch it again")
    return [
        (f"evaluation {path}:{number}", line.removesuffix("\r"))
        for number, line in enumerate(lines, 1)
    ]


def read_rows(path: Path, columns: int, *, header: bool = False) -> list[tuple[str, list[str]]]:
    """Each line as (place, its first `columns` tab-separated columns).

    Raises MtdlabError as `read_lines` does, and for a line with fewer.
    """
    rows = [(place, split_columns(place, line, columns)) for place, line in read_lines(path)]
    return rows[1:] if header else rows


def split_columns(place: str, line: str, columns: int) -> list[str]:
    """The first columns of a line, separated by tabs. Raises MtdlabError where they are fewer."""
    row = line.split("\t")
    if len(row) < columns:
        raise MtdlabError(f"{place}: {len(row)} columns; {columns} are needed, separated by tabs")
    return row[:columns]


def parse_score(place: str, text: str) -> float:
    """A number that can be recorded. Raises MtdlabError for anything else."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not abs(score) <= FURTHEST:
        header = "; a header line is not allowed" if place.endswith(":1") else ""
        needed = f"a number within {FURTHEST:g} of 0 is needed{header}"
        raise MtdlabError(f"{place}: {_short(text)} is no score; {needed}")
    return score


def parse_label(place: str, text: str, labels: tuple[str, ...]) -> int:
    """The index of a text among the labels, from 0. Raises MtdlabError for any other text."""
    if text not in labels:
        raise MtdlabError(f"{place}: {_short(text)} is no label; {', '.join(labels)} are")
    return labels.index(text)


def parse_sentence(place: str, text: str) -> str:
    """A sentence with single spaces between its words. Raises MtdlabError for none."""
    if not (words := text.split()):
        raise MtdlabError(f"{place}: holds an empty sentence; the line is damaged")
    return " ".join(words)


def _place(path: Path, content: bytes, at: int) -> str:
    line = content.count(b"\n", 0, at) + 1
    return f"evaluation {path}:{line}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
