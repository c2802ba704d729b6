"""A corpus of text pairs, `pairs:FILE[#ANCHOR,POSITIVE]`: both views of a sentence are given.

FILE is tab-separated text (gzip or not) or Parquet. A tab-separated file has two columns, anchor
and positive, and no header; with `#ANCHOR,POSITIVE` its first line is a header, and these are the
names of the two columns among any number. Without them a Parquet file has the columns `anchor` and
`positive`. Nothing is quoted: a quotation mark is part of the text.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Self

import pyarrow
import pyarrow.parquet as parquet

from mtdlab.corpus.corpus import Corpus
from mtdlab.corpus.lines import CHARACTERS, Tally, raw_lines, reading
from mtdlab.data_paths import find_data
from mtdlab.errors import MtdlabError, nearest
from mtdlab.settings.texts import PAIRS as PREFIX

COLUMNS = ("anchor", "positive")
MAGIC = b"PAR1"
"""The first bytes of a Parquet file: the kind of file is read off its content."""
ROWS = 1024
"""Rows of a Parquet file in memory at once."""

Row = tuple[str, str]


@dataclass(frozen=True)
class Source:
    """The parts of a corpus' name; no `columns` where the name gives none."""

    file: str
    columns: tuple[str, str] | None

    @classmethod
    def of(cls, corpus: str) -> Self:
        """Read a name. Raises MtdlabError where it is spelled otherwise."""
        file, mark, named = corpus.removeprefix(PREFIX).partition("#")
        columns = [name.strip() for name in named.split(",")]
        if not file or (mark and (len(columns) != 2 or not all(columns))):
            raise MtdlabError(
                f"corpus {corpus}: not the name of a file of pairs; it is spelled {PREFIX}FILE, or "
                f"{PREFIX}FILE#ANCHOR,POSITIVE with the names of two columns"
            )
        return cls(file, (columns[0], columns[1]) if mark else None)


@dataclass(frozen=True)
class PairCorpus(Corpus):
    """The texts of one side of the pairs: 0 the anchors, 1 the positives."""

    side: int = 0
    unit: ClassVar[str] = "pairs"

    def sentences(self, tally: Tally | None = None) -> Iterator[str]:
        """One text of each pair, in order; a pair of which one text is empty is left out.

        Raises MtdlabError with the line's number where a line has no two texts.
        """
        tally = tally or Tally()
        for row in _rows(self.name, tally):
            if all(map(_has_text, row)):
                yield tally.sentence(row[self.side])
            else:
                tally.lines += 1
                tally.halves += 1

    def sides(self) -> tuple[Corpus, ...]:
        """The anchors and the positives: row i of both is the same pair."""
        content = f"positives {self.fingerprint}"
        other = hashlib.sha256(content.encode()).hexdigest()[:16]
        return self, replace(self, side=1, fingerprint=other)

    def write_beginning(self, folder: Path, count: int, tally: Tally) -> str:
        """The first `count` pairs as a tab-separated file; see `Corpus.write_beginning`."""
        rows = (row for row in _rows(self.name, tally) if all(map(_has_text, row)))
        kept = itertools.islice(rows, count)
        path = folder / "pairs.tsv"
        lines = ["\t".join(" ".join(text.split()) for text in row) + "\n" for row in kept]
        path.write_text("".join(lines), encoding="utf-8", errors="replace")
        return f"{PREFIX}{path}"


def fingerprint(corpus: str) -> str:
    """Of the file's bytes and the names of the columns."""
    source = Source.of(corpus)
    path = find_data("corpus", source.file)
    with reading(path), path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(repr(source.columns).encode())
    return digest.hexdigest()[:16]


def _has_text(text: str) -> bool:
    return bool(text.replace("\0", "").strip())


def _rows(corpus: str, tally: Tally) -> Iterator[Row]:
    """The pairs of a file, empty texts included; a blank line is none.

    Raises MtdlabError where the file cannot be read or lacks a column.
    """
    source = Source.of(corpus)
    path = find_data("corpus", source.file)
    tally.total = tally.done + _size(path)
    tally.files += 1
    with reading(path), path.open("rb") as file:
        packed = file.read(len(MAGIC)) == MAGIC
    yield from (_of_parquet if packed else _of_lines)(path, source, tally)


def _size(path: Path) -> int:
    with reading(path):
        return path.stat().st_size


def _of_lines(path: Path, source: Source, tally: Tally) -> Iterator[Row]:
    columns, wanted = (0, 1), 2
    for number, line in enumerate(raw_lines(path, tally, 2 * CHARACTERS), 1):
        fields = line.split("\t")
        if number == 1 and source.columns:
            columns = _places(path, source.columns, [field.strip() for field in fields])
            wanted = len(fields)
        elif not line.strip():
            tally.sentence("")
        elif len(line) > 2 * CHARACTERS:
            raise MtdlabError(
                f"corpus {path}:{number}: the line is longer than {2 * CHARACTERS:,} characters; "
                "shorten its texts"
            )
        elif len(fields) != wanted:
            raise MtdlabError(
                f"corpus {path}:{number}: {len(fields)} column{'s' * (len(fields) != 1)}; "
                + _expected(wanted, named=source.columns is not None)
            )
        else:
            yield fields[columns[0]], fields[columns[1]]


def _expected(wanted: int, *, named: bool) -> str:
    if named:
        return f"every line must have the {wanted} columns of the header, separated by tabs"
    return (
        "a pair is two texts separated by a tab, anchor and positive; of more columns name two, "
        f"{PREFIX}FILE#ANCHOR,POSITIVE, after a header line"
    )


def _places(path: Path, wanted: Row, found: Sequence[str]) -> tuple[int, int]:
    """The indices of the wanted columns. Raises MtdlabError for one that is not there."""
    for name in wanted:
        if name not in found:
            raise MtdlabError(
                f"corpus {path}: no column {name!r} of text; {nearest(name, found)}; give the two "
                f"as {PREFIX}FILE#ANCHOR,POSITIVE"
            )
    return found.index(wanted[0]), found.index(wanted[1])


def _of_parquet(path: Path, source: Source, tally: Tally) -> Iterator[Row]:
    wanted = source.columns or COLUMNS
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            kinds = (pyarrow.types.is_string, pyarrow.types.is_large_string)
            texts = [each.name for each in schema if any(kind(each.type) for kind in kinds)]
            _places(path, wanted, texts)
            tally.total += file.metadata.num_rows - _size(path)
            for batch in file.iter_batches(ROWS, columns=list(dict.fromkeys(wanted))):
                sides: list[Iterable[str | None]] = [
                    batch.column(name).to_pylist() for name in wanted
                ]
                yield from ((one or "", other or "") for one, other in zip(*sides, strict=True))
                tally.done += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise MtdlabError(
            f"corpus {path}: the Parquet file cannot be read: {str(error).splitlines()[0]}; "
            "write it again"
        ) from None
