"""Training text: the built-in data set's, text files', a Hugging Face dataset's, or pairs.

Their names, `dataset:NAME[:CONFIG[:SPLIT]][#COLUMN]` and `pairs:FILE[#ANCHOR,POSITIVE]`, and the
files are described in docs/tutorial.md and docs/how-to/text-pairs.md.
"""

import hashlib
import itertools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from huggingface_hub import constants

from mtdlab.builtin import builtin_sentences
from mtdlab.corpus.lines import CHARACTERS, BadLines, Tally, is_blank, raw_lines, reading
from mtdlab.data_paths import find_data
from mtdlab.encoders.folders import reachable, why_missing
from mtdlab.errors import MtdlabError, nearest, require
from mtdlab.settings.trainer import PAIRS, is_pairs
from mtdlab.terminal import progress_bar

if TYPE_CHECKING:
    from datasets import Dataset


def fingerprint_of(content: str) -> str:
    """The first 16 digits of a text's SHA-256."""
    return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Corpus:
    """A source of rows, whose name is `unit`; `fingerprint` changes when any of them does."""

    name: str
    fingerprint: str
    unit: ClassVar[str] = "sentences"

    def sentences(self, tally: Tally | None = None) -> Iterator[str]:
        """The sentences, in order, never all in memory; `tally` counts what was met.

        Which lines are sentences is written in `mtdlab.corpus.lines`. Raises MtdlabError where a
        file turns out damaged.
        """
        tally = tally or Tally()
        yield from filter(None, map(tally.sentence, self._texts(tally)))

    def _texts(self, tally: Tally) -> Iterator[str]:
        """The texts of all rows as they are; a missing value of a dataset is empty."""
        if self.name == "builtin":
            yield from builtin_sentences()
        elif self.name.startswith(DATASET):
            for values in _dataset_batches(self.name, tally):
                yield from (value or "" for value in values)
        else:
            files = _files(self.name)
            tally.total = sum(path.stat().st_size for path in files)
            for path in files:
                yield from raw_lines(path, tally)

    def sides(self) -> "tuple[Corpus, ...]":
        """The corpora whose rows are single texts: this one, or the two sides of pairs."""
        return (self,)

    def write_beginning(self, folder: Path, count: int, tally: Tally) -> str:
        """Write the first `count` rows, which `tally` counts; returns the corpus that they are."""
        sides = self.sides()
        texts = (side.sentences(tally if side is self else None) for side in sides)
        rows = itertools.islice(zip(*texts, strict=True), count)
        path = folder / f"{self.unit}.txt"
        lines = ["\t".join(" ".join(text.split()) for text in row) + "\n" for row in rows]
        path.write_text("".join(lines), encoding="utf-8")
        return f"{PAIRS if len(sides) > 1 else ''}{path}"


def open_corpus(name: str) -> Corpus:
    """A corpus by name: `builtin`, a text file's path, a folder's, `dataset:...` or `pairs:...`.

    Of a folder, the files that end in .txt or .gz are read, sorted by name. A relative path may
    also be one in MTDLAB_DATA. Raises MtdlabError where nothing can be read or no sentence is.
    """
    return replace(check_corpus(name), fingerprint=_fingerprint(name))


def check_corpus(name: str) -> Corpus:
    """A corpus without its fingerprint. Raises MtdlabError where there is none, or no sentence."""
    corpus = (PairCorpus if is_pairs(name) else Corpus)(name, "")
    if next(corpus.sentences(), None) is None:
        what = "pair of two texts" if is_pairs(name) else "sentence"
        raise MtdlabError(f"corpus {name}: holds no {what}; one is expected a line")
    return corpus


def _fingerprint(name: str) -> str:
    """The digest of the values of a dataset, else of files, for pairs with the columns' names."""
    if name == "builtin":
        return fingerprint_of("\n".join(builtin_sentences()))
    digest = hashlib.sha256()
    if name.startswith(DATASET):
        for values in _dataset_batches(name, Tally()):
            digest.update(json.dumps(values).encode())
    elif is_pairs(name):
        path, columns = parse_pairs(name)
        digest = _digest(path)
        digest.update(repr(columns).encode())
    elif (path := find_data("corpus", name)).is_file():
        digest = _digest(path)
    else:
        for path in _files(name):
            digest.update(_digest(path).digest())
    return digest.hexdigest()[:16]


def _digest(path: Path) -> "hashlib._Hash":
    with reading(f"corpus {path}"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256")


def _files(name: str) -> list[Path]:
    """The file, or a folder's text files sorted by name. Raises MtdlabError for none."""
    path = find_data("corpus", name)
    with reading(f"corpus {path}"):
        if not path.is_dir():
            path.stat()
            if not path.is_file():
                raise MtdlabError(f"corpus {name}: is neither a file nor a folder")
            return [path]
        files = [
            file
            for file in sorted(path.iterdir())
            if file.suffix in (".txt", ".gz") and not file.name.startswith(".") and file.is_file()
        ]
    if not files:
        raise MtdlabError(
            f"corpus {name}: the folder holds no file that ends in .txt or .gz; a saved dataset "
            f"is spelled {DATASET}{name}#COLUMN"
        )
    return files


MAGIC = b"PAR1"
"""The first bytes of a Parquet file: the kind of file is read off its content."""
ROWS = 1024
"""How many rows of a Parquet file or dataset are in memory at once: a fixed number, as a dataset's
fingerprint is of batches."""

Row = tuple[str, str]


def parse_pairs(corpus: str) -> tuple[Path, Row | None]:
    """The file, and its two columns if named. Raises MtdlabError for another spelling, or none."""
    file, mark, named = corpus.removeprefix(PAIRS).partition("#")
    columns = [name.strip() for name in named.split(",")]
    if not file or (mark and (len(columns) != 2 or not all(columns))):
        raise MtdlabError(
            f"corpus {corpus}: not the name of a file of pairs; it is spelled {PAIRS}FILE, or "
            f"{PAIRS}FILE#ANCHOR,POSITIVE with the names of two columns"
        )
    return find_data("corpus", file), (columns[0], columns[1]) if mark else None


@dataclass(frozen=True)
class PairCorpus(Corpus):
    """The texts of one side of whole pairs: side 0 is the anchors, side 1 the positives."""

    side: int = 0
    unit: ClassVar[str] = "pairs"

    def _texts(self, tally: Tally) -> Iterator[str]:
        """The texts of the side. Raises MtdlabError with the number of a line without two texts."""
        path, columns = parse_pairs(self.name)
        with reading(f"corpus {path}"), path.open("rb") as file:
            read = _of_parquet if file.read(len(MAGIC)) == MAGIC else _of_lines
            tally.total = os.fstat(file.fileno()).st_size
        for row in read(path, columns, tally):
            if not any(blank := [is_blank(text) for text in row]):
                yield row[self.side]
                continue
            tally.lines += 1
            if all(blank):
                tally.blank += 1
            else:
                tally.halves += 1

    def sides(self) -> tuple[Corpus, ...]:
        """The anchors and the positives: row i of both is the same pair."""
        other = fingerprint_of(f"positives {self.fingerprint}")
        return self, replace(self, side=1, fingerprint=other)


def _of_lines(path: Path, named: Row | None, tally: Tally) -> Iterator[Row]:
    """The pairs up to the first line that does not fit. Raises MtdlabError with all such lines."""
    columns, wanted, bad = (0, 1), 2, BadLines(f"corpus {path}")
    for number, line in enumerate(raw_lines(path, tally), 1):
        fields = line.split("\t")
        if number == 1 and named:
            columns = _places(path, named, [field.strip() for field in fields])
            wanted = len(fields)
        elif is_blank(line):
            yield "", ""
        elif len(line) > 2 * CHARACTERS:
            bad.add(
                f"corpus {path}:{number}: the line is longer than {2 * CHARACTERS:,} characters; "
                "shorten its texts"
            )
        elif len(fields) != wanted:
            bad.add(
                f"corpus {path}:{number}: {len(fields)} columns separated by tabs, not {wanted}; a "
                f"pair is anchor and positive, or two columns of a header: {PAIRS}FILE#ANCHOR,"
                "POSITIVE"
            )
        elif not bad.count:
            yield fields[columns[0]], fields[columns[1]]
    bad.refuse()


def _places(path: Path, wanted: Row, columns: Sequence[str]) -> tuple[int, int]:
    """The indices of the wanted columns. Raises MtdlabError for one that is not there."""
    for name in wanted:
        if name not in columns:
            raise MtdlabError(
                f"corpus {path}: no column {name!r} of text; {nearest(name, columns)}; give the "
                f"two as {PAIRS}FILE#ANCHOR,POSITIVE"
            )
    return columns.index(wanted[0]), columns.index(wanted[1])


def _of_parquet(path: Path, named: Row | None, tally: Tally) -> Iterator[Row]:
    # imported here to start fast: few corpora are Parquet files
    import pyarrow
    from pyarrow import parquet

    wanted = named or ("anchor", "positive")
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            texts = [
                column.name for column in schema if str(column.type) in ("string", "large_string")
            ]
            _places(path, wanted, texts)
            tally.total = file.metadata.num_rows
            for batch in file.iter_batches(ROWS, columns=list(dict.fromkeys(wanted))):
                anchors, positives = (batch.column(name).to_pylist() for name in wanted)
                rows = zip(anchors, positives, strict=True)
                yield from ((anchor or "", positive or "") for anchor, positive in rows)
                tally.done += batch.num_rows
    except (pyarrow.ArrowException, OSError) as error:
        raise MtdlabError(
            f"corpus {path}: the Parquet file cannot be read: {str(error).splitlines()[0]}; "
            "write it again"
        ) from None


CHUNK_SENTENCES = 8192
CHUNK_CHARACTERS = 1 << 20
"""The most characters of a chunk of sentences: a tokenizer needs some 100 bytes a character."""


def chunks(corpus: Corpus, tally: Tally) -> Iterator[list[str]]:
    """The rows of `Corpus.sentences` in order, in lists, with a progress bar."""
    chunk: list[str] = []
    characters = 0
    with progress_bar(transient=True) as bar:
        task = bar.add_task(corpus.unit, total=None)
        for sentence in corpus.sentences(tally):
            chunk.append(sentence)
            characters += len(sentence)
            if len(chunk) == CHUNK_SENTENCES or characters >= CHUNK_CHARACTERS:
                yield chunk
                bar.update(task, completed=tally.done, total=tally.total or None)
                chunk, characters = [], 0
        if chunk:
            yield chunk


DATASET = "dataset:"


def parse_dataset(corpus: str) -> tuple[str, str | None, str, str]:
    """Dataset, configuration, split and column. Raises MtdlabError for another spelling."""
    where, _, column = corpus.removeprefix(DATASET).partition("#")
    parts = where.split(":")
    if not parts[0] or len(parts) > 3:
        raise MtdlabError(
            f"corpus {corpus}: not the name of a dataset's column; "
            f"it is spelled {DATASET}NAME:CONFIG:SPLIT#COLUMN, where only NAME must be given"
        )
    name, config, split = [*parts, "", ""][:3]
    return name, config or None, split or "train", column or "text"


def _dataset_batches(corpus: str, tally: Tally) -> Iterator[list[str | None]]:
    """The column's values. Raises MtdlabError without the library, dataset, split or column."""
    name, config, split, column = parse_dataset(corpus)
    data = _load_dataset(corpus, name, config, split)
    texts = [name for name, kind in data.features.items() if "string" in getattr(kind, "dtype", "")]
    if column not in texts:
        raise MtdlabError(
            f"corpus {corpus}: no column {column} of text; there is "
            f"{', '.join(texts) or 'none'}: give it as #COLUMN"
        )
    tally.total = len(data)
    for batch in data.select_columns([column]).iter(ROWS):
        yield batch[column]
        tally.done += len(batch[column])


def _load_dataset(corpus: str, name: str, config: str | None, split: str) -> "Dataset":
    require(f"corpus {corpus}", "datasets", "datasets")
    import datasets

    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    folder = Path(name)
    if not (folder.is_dir() or constants.HF_HUB_OFFLINE or reachable()):
        raise MtdlabError(
            f"corpus {corpus}: the hub cannot be reached; give a folder, or set "
            "HF_HUB_OFFLINE=1 to take it from the local cache"
        )
    try:
        if any((folder / file).is_file() for file in ("state.json", "dataset_dict.json")):
            saved = datasets.load_from_disk(folder)
            return saved if isinstance(saved, datasets.Dataset) else saved[split]
        return datasets.load_dataset(name, config, split=split)
    except (ConnectionError, datasets.exceptions.DatasetNotFoundError):
        raise MtdlabError(
            f"corpus {corpus}: {why_missing(name)}; if it is not public, log in with hf auth login"
        ) from None
    except Exception as error:
        # its builders and file readers raise many kinds, among them pyarrow's and pandas'
        lines = str(error).splitlines() or [type(error).__name__]
        raise MtdlabError(f"corpus {corpus}: cannot be loaded: {lines[0]}") from None
