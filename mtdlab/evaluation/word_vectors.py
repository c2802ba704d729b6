"""Sentence vectors that are averages of word vectors, read from a text file.

Each line of the file is a word and its D numbers, separated by spaces (GloVe); a first line of two
whole numbers, count and dimension, is skipped (word2vec's text format).

Letters: S distinct sentences, D dimension.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtdlab.corpus.lines import reading
from mtdlab.encoders.embed import Distinct, Vectors
from mtdlab.errors import MtdlabError

PREFIX = "vectors:"
"""The prefix of `vectors:FILE` in place of an encoder's name."""
LINE_BYTES = 1 << 20
"""The most characters of a line; the limit keeps a damaged file from filling the memory."""

_NUMBER = re.compile(r" [-+]?\d*\.\d+(e[-+]?\d+)?$", re.IGNORECASE)
"""A number at the end of a word, which shows that its line has more numbers than others."""
_WORD = re.compile(r"\w+(?:'\w+)?|[^\w\s]")


def words_of(sentence: str) -> list[str]:
    """Lower-case words, numbers and punctuation marks."""
    return _WORD.findall(sentence.lower())


class WordAverages(Distinct):
    """The distinct sentences of some texts, each the mean of its known words' vectors.

    Attributes:
        vectors: (S, D); zeros for a sentence without a known word.
        remark: how many words of the distinct sentences have no vector.
    """

    def __init__(self, texts: Iterable[str], path: Path) -> None:
        """Read the vectors of the words of `texts`. Raises MtdlabError as `read_vectors`."""
        super().__init__(texts)
        split = [words_of(text) for text in self.texts]
        table = read_vectors(path, {word for words in split for word in words})
        known = [[table[word] for word in words if word in table] for words in split]
        dimension = len(next(iter(table.values()), np.zeros(1)))
        self.vectors: Vectors = np.zeros((len(self), dimension), dtype=np.float32)
        for row, vectors in enumerate(known):
            if vectors:
                self.vectors[row] = np.mean(vectors, axis=0, dtype=np.float64)
        count = sum(map(len, split))
        unknown = count - sum(map(len, known))
        self.remark = (
            f"{unknown:,} of {count:,} words ({unknown / max(count, 1):.1%}) have no vector; "
            f"{known.count([]):,} sentences have no word with one"
        )


def read_vectors(path: Path, wanted: set[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors (D,) of the wanted words that a file has; of a repeated word the first.

    One line is in memory at a time. Every line must have as many numbers as the first, but only
    those of wanted words are read as numbers. Raises MtdlabError with the line's number where one
    is damaged, and for a file that has more or fewer words than its first line says.
    """
    vectors: dict[str, NDArray[np.float32]] = {}
    dimension, count, number = 0, None, 0
    with reading(str(path), "name a text file"):
        for number, line in _lines(path):
            fields = line.split(" ")
            if number == 1 and re.fullmatch(r"[0-9]+ [0-9]+", line):
                count, dimension = map(int, fields)
                continue
            dimension = dimension or len(fields) - 1
            # a word may contain spaces, as some of GloVe's do
            word = " ".join(fields[:-dimension])
            if dimension < 1 or not word or _NUMBER.search(word):
                raise MtdlabError(
                    f"{path}: line {number} has {len(fields) - 1} numbers; it must have a word and "
                    f"{dimension or 'its'} numbers, separated by spaces"
                )
            if word in wanted and word not in vectors:
                vectors[word] = _numbers(fields[-dimension:], path, number)
    if count is not None and number - 1 != count:
        raise MtdlabError(
            f"{path}: has {number - 1:,} words, but its first line says {count:,}; it may have "
            "been cut, get it again"
        )
    if not dimension:
        raise MtdlabError(f"{path}: holds no word vector; give GloVe's or word2vec's text format")
    return vectors


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(LINE_BYTES):
            number += 1
            if len(line) == LINE_BYTES or b"\0" in line:
                raise MtdlabError(
                    f"{path}: line {number} is no text of a word and numbers; binary files are not "
                    "read, convert it to the text format"
                )
            yield number, line.decode("utf-8", errors="replace").strip(" \r\n")


def _numbers(fields: Sequence[str], path: Path, number: int) -> NDArray[np.float32]:
    try:
        values = np.array([float(field) for field in fields], dtype=np.float32)
    except ValueError:
        values = np.array([np.nan], dtype=np.float32)
    if not np.isfinite(values).all():
        raise MtdlabError(
            f"{path}: line {number} contains a value that is not a finite number; "
            f"it must have a word and {len(fields)} numbers, separated by spaces"
        )
    return values
