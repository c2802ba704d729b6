"""The published tasks: where SentEval keeps them, their labels, and their sizes.

Published sizes are only those that are known for certain: those of CR, TREC, MRPC, STS12, STSB and
SICKR from SentEval's files, those of MR and SUBJ as published (Pang and Lee). A file that is cut
short is scored with a warning.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import (
    STS_BENCHMARK,
    SUBSETS,
    Labelled,
    Pairs,
    check_ranks,
    load_pairs,
    parse_label,
    parse_sentence,
    read_lines,
    read_table,
    read_year,
    split_columns,
)
from mtdlab.settings.tasks import BUILTIN

Task = tuple[Pairs, ...]
"""The parts of a task: graded pairs alone, or labelled sentences as train and test, or train, dev
and test. The last is scored; a single one by nested folds."""

BINARY = {
    "MR": ("rt-polarity.neg", "rt-polarity.pos"),
    "CR": ("custrev.neg", "custrev.pos"),
    "SUBJ": ("subj.subjective", "subj.objective"),
    "MPQA": ("mpqa.neg", "mpqa.pos"),
}
"""The two files of each task that has no split: class 0, class 1."""
QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
FEWEST = 10
"""The fewest sentences of a class, for ten folds."""


def read_binary(folder: Path, files: tuple[str, str]) -> Labelled:
    """MR, CR, SUBJ or MPQA: a file a class, one sentence a line, latin-1."""
    # CR as published has an empty line, which SentEval encodes as it is
    rows = [
        (label, " ".join(line.split()))
        for label, file in enumerate(files)
        for _, line in read_lines(folder / file, "latin-1")
    ]
    return _label(folder, [label for label, _ in rows], [[text for _, text in rows]], FEWEST)


Example = tuple[int, list[str]]
"""A class, and one or two sentences."""


def _of_sst(place: str, line: str) -> Example:
    sentence, label = split_columns(place, line, 2)
    return parse_label(place, label.strip(), ("0", "1")), [sentence]


def _of_trec(place: str, line: str) -> Example:
    """The class and question of a line `KIND:detail question`."""
    kind, _, rest = line.partition(":")
    return parse_label(place, kind, QUESTIONS), [rest.partition(" ")[2]]


def _of_mrpc(place: str, line: str) -> Example:
    """The class and sentences of a line with 0 or 1, two ids and two sentences."""
    label, _, _, *sentences = split_columns(place, line, 5)
    return parse_label(place, label, ("0", "1")), sentences


_MRPC = "msr_paraphrase"
SPLIT: Mapping[str, tuple[Callable[[str, str], Example], str, int, tuple[str, ...]]] = {
    "SST2": (_of_sst, "utf-8-sig", 0, ("sentiment-train", "sentiment-dev", "sentiment-test")),
    "TREC": (_of_trec, "latin-1", 0, ("train_5500.label", "TREC_10.label")),
    "MRPC": (_of_mrpc, "utf-8-sig", 1, (f"{_MRPC}_train.txt", f"{_MRPC}_test.txt")),
}
"""The reader of a line of a task's files, their encoding and lines of header, and the files."""


def read_split(path: Path, name: str, fewest: int) -> Labelled:
    """One of the files of a task in `SPLIT`, its classes of `fewest` sentences or more."""
    parse, encoding, header, _ = SPLIT[name]
    labels, texts = [], []
    for place, line in read_lines(path, encoding)[header:]:
        label, sentences = parse(place, line)
        labels.append(label)
        texts.append([parse_sentence(place, sentence) for sentence in sentences])
    return _label(path, labels, [list(side) for side in zip(*texts, strict=True)], fewest)


def _label(path: Path, labels: list[int], sides: list[list[str]], fewest: int) -> Labelled:
    """The labelled examples. Raises MtdlabError for one class only, or too few sentences of one."""
    counts = np.unique(labels, return_counts=True)[1] if labels else np.zeros(0, dtype=np.int64)
    if not len(counts) or (fewest > 1 and (len(counts) < 2 or counts.min() < fewest)):
        raise MtdlabError(
            f"evaluation {path}: {len(labels)} sentences in {len(counts)} classes; at least 2 "
            f"classes of {fewest} sentences are needed"
        )
    first, second = [*sides, []][:2]
    return Labelled(first, second, np.array(labels, dtype=np.int64))


_FOLDERS = {year: f"STS/{year}-en-test" for year in SUBSETS} | {
    "STSB": STS_BENCHMARK,
    "SICKR": "SICK",
    "SST2": "SST/binary",
}
"""The folder in which SentEval keeps a task, if that is not one of its name."""


def task_folder(name: str, data: Path | None) -> Path | None:
    """The folder of a task under a data folder; None without one."""
    return None if data is None else data / _FOLDERS.get(name, name)


def load_task(name: str, folder: Path) -> Task:
    """Read a task from its folder. Raises MtdlabError with file and line for a damaged file."""
    if name in SPLIT:
        first, *others = (folder / file for file in SPLIT[name][-1])
        train = read_split(first, name, FEWEST)
        return (train, *(read_split(path, name, 1) for path in others))
    if name in BINARY:
        return (read_binary(folder, BINARY[name]),)
    if name in SUBSETS:
        return (read_year(folder, SUBSETS[name]),)
    if name == "SICKR":
        path = folder / "SICK_test_annotated.txt"
        return (check_ranks(path, read_table(path, first=1, second=2, gold=3, header=True)),)
    return (load_pairs(BUILTIN if name == BUILTIN else str(folder), "test"),)


def sts_benchmark_pairs(data: Path) -> dict[str, Pairs]:
    """STS-B's pairs of all splits that are there, under a name that says which; else empty."""
    folder = data / _FOLDERS["STSB"]
    splits = {
        split: load_pairs(str(folder), split)
        for split in ("train", "dev", "test")
        if (folder / f"sts-{split}.csv").is_file()
    }
    if not splits:
        return {}
    together = Pairs(
        [text for pairs in splits.values() for text in pairs.first],
        [text for pairs in splits.values() for text in pairs.second],
        np.concatenate([pairs.gold for pairs in splits.values()]),
    )
    return {f"STS-B {' + '.join(splits)}": together}


PUBLISHED: Mapping[str, tuple[int, ...]] = {
    "MR": (5331, 5331),
    "CR": (1368, 2407),
    "SUBJ": (5000, 5000),
    "TREC": (5452, 500),
    "MRPC": (4076, 1725),
    "STS12": (3108,),
    "STSB": (1379,),
    "SICKR": (4927,),
}
"""The published numbers of examples: of the two files of a task in `BINARY`, else of each split."""


def describe_shortfall(name: str, task: Task) -> str:
    """The parts of a task that are shorter than published, each with both counts; else empty."""
    parts = ("its train split", "its test split")[-len(task) :]
    counts = [len(part) for part in task]
    if name in BINARY:
        parts, counts = BINARY[name], np.bincount(task[0].gold, minlength=2).tolist()
    unit = "pairs" if task[-1].second else "sentences"
    return "; ".join(
        f"{part} has {size:,} of the {published:,} published {unit}"
        for part, size, published in zip(parts, counts, PUBLISHED.get(name, ()), strict=False)
        if size < published
    )
