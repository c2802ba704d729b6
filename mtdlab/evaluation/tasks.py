"""Which published tasks there are, where SentEval keeps them, their labels, and how large they are.

Published sizes are only those that are known for certain: those of CR, TREC, MRPC, STS12, STSB and
SICKR from SentEval's files, those of MR and SUBJ as published (Pang and Lee). A file that is cut
short is scored with a warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.files import parse_label, parse_sentence, read_lines, read_rows
from mtdlab.evaluation.items import digest_of
from mtdlab.evaluation.pairs import STS_BENCHMARK, SUBSETS, Pairs, load_pairs, read_sick, read_year
from mtdlab.settings.tasks import BUILTIN

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
class Classification:
    """A classification task; without a test split its score is that of nested folds."""

    train: Labelled
    dev: Labelled | None = None
    test: Labelled | None = None


def read_binary(folder: Path, name: str) -> Classification:
    """MR, CR, SUBJ or MPQA: a file a class, one sentence a line, latin-1.

    Raises:
        MtdlabError: with file and line where a file does not fit.
    """
    sentences: list[str] = []
    labels: list[int] = []
    for label, file in enumerate(BINARY[name]):
        # CR as published has an empty line, which SentEval encodes as it is
        lines = [" ".join(line.split()) for line in read_lines(folder / file, "latin-1")]
        sentences += lines
        labels += [label] * len(lines)
    return Classification(_label(folder, sentences, [], labels, FEWEST))


def read_sst(folder: Path) -> Classification:
    """SST with two classes, `SST/binary`: sentence, tab, 0 or 1. Raises as `read_binary`."""

    def split(name: str, fewest: int) -> Labelled:
        path = folder / f"sentiment-{name}"
        sentences, labels = [], []
        for place, (sentence, label) in read_rows(path, 2):
            sentences.append(parse_sentence(place, sentence))
            labels.append(parse_label(place, label.strip(), ("0", "1")))
        return _label(path, sentences, [], labels, fewest)

    return Classification(split("train", FEWEST), split("dev", 1), split("test", 1))


def read_trec(folder: Path) -> Classification:
    """TREC's six kinds of question, `KIND:detail question` in latin-1. Raises as `read_binary`."""

    def split(file: str, fewest: int) -> Labelled:
        path = folder / file
        sentences, labels = [], []
        for number, line in enumerate(read_lines(path, "latin-1"), 1):
            place = f"evaluation {path}:{number}"
            kind, _, rest = line.partition(":")
            labels.append(parse_label(place, kind, QUESTIONS))
            sentences.append(parse_sentence(place, rest.partition(" ")[2]))
        return _label(path, sentences, [], labels, fewest)

    return Classification(split("train_5500.label", FEWEST), test=split("TREC_10.label", 1))


def read_mrpc(folder: Path) -> Classification:
    """MRPC: 0 or 1, two ids, two sentences, under a header. Raises as `read_binary`."""

    def split(name: str, fewest: int) -> Labelled:
        path = folder / f"msr_paraphrase_{name}.txt"
        rows = read_rows(path, 5, header=True)
        first = [parse_sentence(place, row[3]) for place, row in rows]
        second = [parse_sentence(place, row[4]) for place, row in rows]
        labels = [parse_label(place, row[0], ("0", "1")) for place, row in rows]
        return _label(path, first, second, labels, fewest)

    return Classification(split("train", FEWEST), test=split("test", 1))


def _label(
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


Task = Pairs | Classification
_FOLDERS = {year: f"STS/{year}-en-test" for year in SUBSETS} | {
    "STSB": STS_BENCHMARK,
    "SICKR": "SICK",
    "SST2": "SST/binary",
}
"""Where SentEval keeps a task, if not in a folder of its name."""


def task_folder(name: str, data: Path | None) -> Path | None:
    """The folder of a task under a data folder; None without one."""
    return None if data is None else data / _FOLDERS.get(name, name)


def load_task(name: str, folder: Path) -> Task:
    """Read a task from its folder. Raises MtdlabError with file and line for a damaged file."""
    if name == BUILTIN:
        return load_pairs(BUILTIN, "test")
    if name in SUBSETS:
        return read_year(folder, SUBSETS[name])
    if name in BINARY:
        return read_binary(folder, name)
    if name == "STSB":
        return load_pairs(str(folder), "test")
    if name == "SICKR":
        return read_sick(folder)
    return {"SST2": read_sst, "TREC": read_trec, "MRPC": read_mrpc}[name](folder)


def parts_of(task: Task) -> Sequence[Pairs | Labelled]:
    """The splits of a task, the one that is scored last."""
    if isinstance(task, Pairs):
        return [task]
    return [part for part in (task.train, task.dev, task.test) if part is not None]


def sts_benchmark_pairs(data: Path) -> dict[str, Pairs]:
    """STS-B's pairs of all splits that are there, together, under a name that says which.

    Empty where none is there. Raises MtdlabError with file and line for a damaged file.
    """
    folder = data / _FOLDERS["STSB"]
    found = {
        split: load_pairs(str(folder), split)
        for split in ("train", "dev", "test")
        if (folder / f"sts-{split}.csv").is_file()
    }
    if not found:
        return {}
    together = Pairs(
        [text for pairs in found.values() for text in pairs.first],
        [text for pairs in found.values() for text in pairs.second],
        np.concatenate([pairs.gold for pairs in found.values()]),
    )
    return {f"STS-B {' + '.join(found)}": together}


BY_CLASS: Mapping[str, tuple[int, int]] = {
    "MR": (5331, 5331),
    "CR": (1368, 2407),
    "SUBJ": (5000, 5000),
}
"""Sentences of the two files of a task without a split, in the order of `BINARY`."""
BY_SPLIT: Mapping[str, tuple[int, int]] = {"TREC": (5452, 500), "MRPC": (4076, 1725)}
"""Sentences, or pairs of them, of train and test."""
PUBLISHED_PAIRS: Mapping[str, int] = {"STS12": 3108, "STSB": 1379, "SICKR": 4927}
"""Graded pairs of the test split."""


def describe_shortfall(name: str, task: Task) -> str:
    """The parts of a task that are shorter than published, each with both counts; else empty."""
    counts = [
        f"{part} has {found:,} of the {published:,} published {unit}"
        for part, found, published, unit in _count_parts(name, task)
        if found < published
    ]
    return "; ".join(counts)


def _count_parts(name: str, task: Task) -> list[tuple[str, int, int, str]]:
    """Each part with its count, the published one and their unit; none if not known."""
    if isinstance(task, Pairs):
        return (
            [("its test split", len(task), PUBLISHED_PAIRS[name], "pairs")]
            if name in PUBLISHED_PAIRS
            else []
        )
    if name in BY_CLASS:
        found = np.bincount(task.train.labels, minlength=2).tolist()
        files = zip(BINARY[name], found, BY_CLASS[name], strict=True)
        return [(file, count, published, "sentences") for file, count, published in files]
    if name in BY_SPLIT and task.test is not None:
        train, test = BY_SPLIT[name]
        unit = "pairs" if name == "MRPC" else "sentences"
        return [
            ("its train split", len(task.train), train, unit),
            ("its test split", len(task.test), test, unit),
        ]
    return []
