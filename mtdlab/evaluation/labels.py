"""Labelled sentences of the transfer tasks, in SentEval's layout."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.files import parse_label, parse_sentence, read_lines, read_rows
from mtdlab.evaluation.items import digest_of

BINARY = {
    "MR": ("rt-polarity.neg", "rt-polarity.pos"),
    "CR": ("custrev.neg", "custrev.pos"),
    "SUBJ": ("subj.subjective", "subj.objective"),
    "MPQA": ("mpqa.neg", "mpqa.pos"),
}
"""The two files of each task that has no split: class 0, class 1."""
QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
FEWEST = 10
"""Sentences that each class needs for ten folds."""


@dataclass(frozen=True)
class Labelled:
    """Sentences, or pairs of them, and the class of each, (P,) counted from 0."""

    first: list[str]
    second: list[str]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the sentences and classes."""
        return digest_of(self.first, self.second, self.labels.tolist())


@dataclass(frozen=True)
class Transfer:
    """A classification task; without a test split its score is that of nested folds."""

    train: Labelled
    dev: Labelled | None = None
    test: Labelled | None = None


def read_binary(folder: Path, name: str) -> Transfer:
    """MR, CR, SUBJ or MPQA: a file a class, one sentence a line, latin-1.

    Raises MtdlabError with file and line where a file does not fit.
    """
    sentences: list[str] = []
    labels: list[int] = []
    for label, file in enumerate(BINARY[name]):
        # CR as published has an empty line, which SentEval encodes as it is
        lines = [" ".join(line.split()) for line in read_lines(folder / file, "latin-1")]
        sentences += lines
        labels += [label] * len(lines)
    return Transfer(_labelled(folder, sentences, [], labels, FEWEST))


def read_sst(folder: Path) -> Transfer:
    """SST with two classes, `SST/binary`: sentence, tab, 0 or 1. Raises as `read_binary`."""

    def split(name: str, fewest: int) -> Labelled:
        path = folder / f"sentiment-{name}"
        sentences, labels = [], []
        for place, (sentence, label) in read_rows(path, 2):
            sentences.append(parse_sentence(place, sentence))
            labels.append(parse_label(place, label.strip(), ("0", "1")))
        return _labelled(path, sentences, [], labels, fewest)

    return Transfer(split("train", FEWEST), split("dev", 1), split("test", 1))


def read_trec(folder: Path) -> Transfer:
    """TREC's six kinds of question, `KIND:detail question` in latin-1. Raises as `read_binary`."""

    def split(file: str, fewest: int) -> Labelled:
        path = folder / file
        sentences, labels = [], []
        for number, line in enumerate(read_lines(path, "latin-1"), 1):
            place = f"evaluation {path}:{number}"
            kind, _, rest = line.partition(":")
            labels.append(parse_label(place, kind, QUESTIONS))
            sentences.append(parse_sentence(place, rest.partition(" ")[2]))
        return _labelled(path, sentences, [], labels, fewest)

    return Transfer(split("train_5500.label", FEWEST), test=split("TREC_10.label", 1))


def read_mrpc(folder: Path) -> Transfer:
    """MRPC: 0 or 1, two ids, two sentences, under a header. Raises as `read_binary`."""

    def split(name: str, fewest: int) -> Labelled:
        path = folder / f"msr_paraphrase_{name}.txt"
        rows = read_rows(path, 5, header=True)
        first = [parse_sentence(place, row[3]) for place, row in rows]
        second = [parse_sentence(place, row[4]) for place, row in rows]
        labels = [parse_label(place, row[0], ("0", "1")) for place, row in rows]
        return _labelled(path, first, second, labels, fewest)

    return Transfer(split("train", FEWEST), test=split("test", 1))


def _labelled(
    path: Path, first: list[str], second: list[str], labels: list[int], fewest: int
) -> Labelled:
    """Raises MtdlabError where there is one class only, or a class has too few sentences."""
    counts = np.unique(labels, return_counts=True)[1] if labels else np.zeros(0, dtype=np.int64)
    if not len(counts) or (fewest > 1 and (len(counts) < 2 or counts.min() < fewest)):
        raise MtdlabError(
            f"evaluation {path}: {len(labels)} sentences in {len(counts)} classes; at least 2 "
            f"classes of {fewest} sentences are needed"
        )
    return Labelled(first, second, np.array(labels, dtype=np.int64))
