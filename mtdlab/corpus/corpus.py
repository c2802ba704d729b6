"""Training text: the built-in data set's, text files', a Hugging Face dataset's, or pairs."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mtdlab.builtin import builtin_sentences
from mtdlab.corpus import dataset
from mtdlab.corpus.lines import Tally, read_file, reading
from mtdlab.data_paths import find_data
from mtdlab.errors import MtdlabError
from mtdlab.settings.texts import is_pairs

SUFFIXES = (".txt", ".gz")
"""The files of a folder that are read."""


@dataclass(frozen=True)
class Corpus:
    """Where sentences come from; `fingerprint` changes when any of them does."""

    name: str
    fingerprint: str
    unit: ClassVar[str] = "sentences"
    """What a row of it is, in words."""

    @property
    def doing(self) -> str:
        """The progress bar's text while its tokens are prepared."""
        return "tokens"

    def sentences(self, tally: Tally | None = None) -> Iterator[str]:
        """The sentences, in order, never all in memory; `tally` counts what was met.

        Which lines are sentences is written in `mtdlab.corpus.lines`. Raises MtdlabError where a
        file turns out damaged.
        """
        tally = tally or Tally()
        if self.name == "builtin":
            yield from filter(None, map(tally.sentence, builtin_sentences()))
        elif self.name.startswith(dataset.PREFIX):
            yield from dataset.sentences(self.name, tally)
        else:
            files = _files(self.name)
            tally.total = sum(path.stat().st_size for path in files)
            for path in files:
                yield from read_file(path, tally)

    def sides(self) -> "tuple[Corpus, ...]":
        """The corpora of which each row is one text: this one; of pairs, anchors and positives."""
        return (self,)

    def write_beginning(self, folder: Path, count: int, tally: Tally) -> str:
        """Write the first `count` rows to a file in a folder; returns the corpus that it is."""
        beginning = itertools.islice(self.sentences(tally), count)
        path = folder / "sentences.txt"
        path.write_text("\n".join(beginning) + "\n", encoding="utf-8")
        return str(path)


def open_corpus(name: str) -> Corpus:
    """A corpus by name: `builtin`, a text file's path, a folder's, or `dataset:NAME#COLUMN`.

    `pairs:FILE` is one of text pairs, see `mtdlab.corpus.text_pairs`.

    A file has one sentence a line, in gzip or not; of a folder, the files that end in .txt or
    .gz are read, sorted by name. A relative path may also be one in the folder MTDLAB_DATA.
    Raises MtdlabError where nothing can be read or there is no sentence.
    """
    check_corpus(name)
    return _corpus(name, _fingerprint(name))


def check_corpus(name: str) -> None:
    """Raise MtdlabError where a corpus is missing or has no sentence; reads its beginning alone."""
    if next(_corpus(name, "").sentences(), None) is None:
        what = "pair of two texts" if is_pairs(name) else "sentence"
        raise MtdlabError(f"corpus {name}: holds no {what}; one is expected a line")


def _corpus(name: str, fingerprint: str) -> Corpus:
    if is_pairs(name):
        # imported here, since its class is a subclass of Corpus
        from mtdlab.corpus import text_pairs

        return text_pairs.PairCorpus(name, fingerprint)
    return Corpus(name, fingerprint)


def _fingerprint(name: str) -> str:
    """Of a file's bytes, a folder's files one by one, a dataset's column, or the built-in text."""
    if name == "builtin":
        return hashlib.sha256("\n".join(builtin_sentences()).encode()).hexdigest()[:16]
    if name.startswith(dataset.PREFIX):
        return dataset.fingerprint(name)
    if is_pairs(name):
        from mtdlab.corpus import text_pairs

        return text_pairs.fingerprint(name)
    digests = [_digest(path) for path in _files(name)]
    whole = digests[0] if find_data("corpus", name).is_file() else _joint(digests)
    return whole.hex()[:16]


def _joint(digests: Iterable[bytes]) -> bytes:
    return hashlib.sha256(b"".join(digests)).digest()


def _digest(path: Path) -> bytes:
    with reading(path), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _files(name: str) -> list[Path]:
    """A file by itself, or a folder's text files, sorted by name.

    Raises MtdlabError where there is none.
    """
    path = find_data("corpus", name)
    with reading(path):
        if not path.is_dir():
            path.stat()
            if not path.is_file():
                raise MtdlabError(f"corpus {name}: is neither a file nor a folder")
            return [path]
        files = [
            file
            for file in sorted(path.iterdir())
            if file.suffix in SUFFIXES and not file.name.startswith(".") and file.is_file()
        ]
    if not files:
        raise MtdlabError(
            f"corpus {name}: the folder holds no file that ends in .txt or .gz; a saved dataset "
            f"is spelled {dataset.PREFIX}{name}#COLUMN"
        )
    return files
