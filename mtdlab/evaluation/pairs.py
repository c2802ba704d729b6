"""Graded pairs and labelled sentences: built-in, a user's, and the tasks in SentEval's layout.

Files of published data sets are read line by line, and errors name the file and the line. Published
sizes are only those that are known for certain: those of CR, TREC, MRPC, STS12, STSB and SICKR from
SentEval's files, those of MR and SUBJ as published (Pang and Lee). A file that is cut short is
scored with a warning.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from mtdlab.builtin import builtin_pairs
from mtdlab.corpus.lines import BadLines, is_blank, normalise, reading
from mtdlab.data_paths import find_data
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.items import digest_of
from mtdlab.settings.limits import FURTHEST
from mtdlab.settings.tasks import BUILTIN


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
    try:
        text = content.decode(encoding)
        at = content.find(b"\0")
    except UnicodeDecodeError as error:
        at = error.start
    if at >= 0:
        line = content.count(b"\n", 0, at) + 1
        raise MtdlabError(
            f"evaluation {path}:{line}: holds byte 0x{content[at]:02x}; save it as "
            f"{encoding.removesuffix('-sig').upper()}"
        )
    lines = text.removesuffix("\n").split("\n")
    if lines == [""]:
        raise MtdlabError(f"evaluation {path}: is empty; fetch it again")
    return [
        (f"evaluation {path}:{number}", line.removesuffix("\r"))
        for number, line in enumerate(lines, 1)
    ]


Read = TypeVar("Read")


def read_each(
    path: Path, lines: Iterable[tuple[str, str]], read: Callable[[str, str], Read]
) -> list[Read]:
    """What `read` makes of each place and line. Raises MtdlabError with all that do not fit."""
    found, bad = [], BadLines(f"evaluation {path}")
    for place, line in lines:
        try:
            found.append(read(place, line))
        except MtdlabError as error:
            bad.add(str(error))
    bad.refuse()
    return found


def split_columns(place: str, line: str, columns: int) -> list[str]:
    """The first columns of a line, separated by tabs. Raises MtdlabError where they are fewer."""
    row = line.split("\t")
    if len(row) < columns:
        raise MtdlabError(f"{place}: {len(row)} columns; {columns} are needed, separated by tabs")
    return row[:columns]


def parse_score(place: str, text: str, *, is_header: bool = False) -> float:
    """A number that can be recorded. Raises MtdlabError for anything else."""
    try:
        score = float(text)
    except ValueError:
        score = math.nan
    if not abs(score) <= FURTHEST:
        hint = "; a header line is not allowed" if is_header else ""
        hint += "; write a decimal point" if "," in text else ""
        needed = f"a number within {FURTHEST:g} of 0 is needed{hint}"
        raise MtdlabError(f"{place}: {_short(text)} is no score; {needed}")
    return score


def parse_label(place: str, text: str, labels: tuple[str, ...]) -> int:
    """The index of a text among the labels, from 0. Raises MtdlabError for any other text."""
    if text not in labels:
        raise MtdlabError(f"{place}: {_short(text)} is no label; {', '.join(labels)} are")
    return labels.index(text)


def parse_sentence(place: str, text: str) -> str:
    """A sentence with single spaces between its words. Raises MtdlabError for none."""
    if is_blank(text):
        raise MtdlabError(f"{place}: holds an empty sentence; the line is damaged")
    return " ".join(text.split())


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


Split = Literal["train", "dev", "test"]
STS_BENCHMARK = "STS/STSBenchmark"

LEAST = 3
"""The fewest pairs: of two, the rank correlation is 1 or -1, whatever the encoder."""
SUBSETS = {
    "STS12": ("MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"),
    "STS13": ("FNWN", "headlines", "OnWN"),
    "STS14": ("deft-forum", "deft-news", "headlines", "images", "OnWN", "tweet-news"),
    "STS15": ("answers-forums", "answers-students", "belief", "headlines", "images"),
    "STS16": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
"""The subsets that SentEval scores of each year; STS13 is without SMT for its licence."""


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs with a similarity (P,): judged by people, or computed from meaning.

    0 to 5, unless they are a user's own. Alignment is that of pairs above 4 (`POSITIVE_ABOVE`).
    `left_out` says how many lines of a file are not among them, and why; empty for none.
    """

    first: list[str]
    second: list[str]
    gold: NDArray[Any]
    left_out: str = ""

    def __len__(self) -> int:
        return len(self.gold)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the sentences and scores."""
        return digest_of(self.first, self.second, self.gold.tolist())


class Labelled(Pairs):
    """Labelled sentences (no `second`), or pairs of them; `gold` (P,) has the classes, from 0."""


def load_pairs(source: str, split: Split) -> Pairs:
    """Load a split of `builtin`, or of a folder with SPLIT.tsv or STS-B's sts-SPLIT.csv.

    docs/tutorial.md has the layouts; `read_table` reads a file. Raises MtdlabError with
    file and line where a file does not fit, and where its pairs are fewer than three, alike, or of
    one score: no encoder has a correlation then.
    """
    if (folder := evaluation_folder(source)) is not None:
        if any((folder / f"{name}.tsv").is_file() for name in ("dev", "test")):
            return check_ranks(own := folder / f"{split}.tsv", read_table(own))
        if (inside := folder / STS_BENCHMARK).is_dir():
            folder = inside
        path = folder / f"sts-{split}.csv"
        return check_ranks(path, read_table(path, STS_B))
    if split == "train":
        raise MtdlabError("evaluation builtin: has no train pairs; dev and test are there")
    return _pairs(builtin_pairs(split))


def load_splits(source: str) -> tuple[Pairs, Pairs]:
    """The dev and the test pairs. Raises MtdlabError as `load_pairs`, and where they are equal."""
    dev, test = load_pairs(source, "dev"), load_pairs(source, "test")
    if count_shared(dev, test) == len(test):
        raise MtdlabError(
            f"evaluation {source}: each of its {len(test):,} test pairs is a dev pair too, so that "
            "what chooses a checkpoint would be reported; put other pairs in one of the two"
        )
    return dev, test


def digest_splits(splits: Iterable[Pairs]) -> str:
    """SHA-256 of the sentences and scores of splits: a study's digest of its evaluation."""
    return digest_of(*([split.first, split.second, split.gold.tolist()] for split in splits))


def count_shared(dev: Pairs, test: Pairs) -> int:
    """How many test pairs are dev pairs too, in either order, without case and punctuation."""
    known, asked = (
        [frozenset(map(normalise, pair)) for pair in zip(split.first, split.second, strict=True)]
        for split in (dev, test)
    )
    return sum(map({*known}.__contains__, asked))


def describe_pairs(source: str) -> list[str]:
    """A sentence for the lines that each split leaves out, and for pairs that are in both."""
    dev, test = load_splits(source)
    texts = {"dev": dev.left_out, "test": test.left_out}
    found = [f"evaluation {source}: {name} pairs: {text}" for name, text in texts.items() if text]
    if shared := count_shared(dev, test):
        found.append(
            f"evaluation {source}: {shared:,} of {len(test):,} test pairs are dev pairs too, on "
            "which checkpoints are chosen, so that sts_test is too high"
        )
    return found


def evaluation_folder(source: str) -> Path | None:
    """The folder of `trainer.evaluation`, None for the built-in pairs; errors as `find_data`."""
    return None if source == BUILTIN else find_data("evaluation", source)


Columns = tuple[int, int, int]
"""The columns of the first sentence, the second and the score, from 0."""
OWN: Columns = (0, 1, 2)
STS_B: Columns = (5, 6, 4)
SICK: Columns = (1, 2, 3)
_HEADERS = (
    ("sentence1", "sentence_a"),
    ("sentence2", "sentence_b"),
    ("score", "relatedness_score"),
)
"""The names of these columns in the headers of GLUE's STS-B, sentence-transformers' and SICK."""
_GENRE = "main-"
"""How the genre in the first column of STS-B's own files begins."""
_UNGRADED = frozenset({"", "na", "n/a", "nan", "null", "none"})


def read_table(path: Path, columns: Columns = OWN, *, header: bool = False) -> Pairs:
    """Pairs of a tab-separated file in these columns, or in those that its first line tells.

    A header of GLUE, SICK or sentence-transformers does, and a genre of STS-B; with `header` the
    first line tells nothing and is skipped. Blank lines, and pairs without a score or one of the
    sentences, are left out and counted. Raises MtdlabError with all lines that do not fit, and for
    fewer than two pairs.
    """
    lines = read_lines(path)
    if not header:
        columns, header = _find_columns(*lines[0], columns)
    if header:
        split_columns(*lines[0], max(columns) + 1)
    left_out = Counter[str]()
    names = lines[0][0] if _has_names(lines, columns) else ""

    def read(place: str, line: str) -> tuple[str, str, float] | None:
        if is_blank(line):
            left_out["blank"] += 1
            return None
        row = split_columns(place, line, max(columns) + 1)
        first, second, score = (row[column] for column in columns)
        if score.strip().casefold() in _UNGRADED:
            left_out["without a score"] += 1
        elif is_blank(first) or is_blank(second):
            left_out["without one of the sentences"] += 1
        else:
            value = parse_score(place, score, is_header=place == names)
            return " ".join(first.split()), " ".join(second.split()), value
        return None

    rows = _enough(path, list(filter(None, read_each(path, lines[header:], read))))
    why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items())
    of = f"{left_out.total():,} of {len(lines) - header:,} lines left out: {why}"
    return replace(_pairs(rows), left_out=of if why else "")


def _has_names(lines: Sequence[tuple[str, str]], columns: Columns) -> bool:
    """Whether the first line has single words alone, or a word as a score above none."""
    rows, score = [line.split("\t") for _, line in lines[:2]], columns[2]
    is_word = [row[score].strip()[:1].isalpha() for row in rows if len(row) > score]
    return is_word == [True, False] or all(cell.strip().isidentifier() for cell in rows[0])


def _find_columns(place: str, line: str, expected: Columns) -> tuple[Columns, bool]:
    """The columns that a first line tells, else the expected ones; whether it is a header."""
    cells = [cell.strip() for cell in line.rstrip().split("\t")]
    names = [cell.casefold() for cell in cells]
    found = [next((names.index(name) for name in known if name in names), -1) for known in _HEADERS]
    if min(found) >= 0:
        return (found[0], found[1], found[2]), True
    if cells[0].startswith(_GENRE) and len(cells) > max(STS_B):
        return STS_B, False
    is_named = max(found[:2]) >= 0
    if not is_named and (expected != OWN or len(cells) <= len(OWN)):
        return expected, False
    raise MtdlabError(
        f"{place}: {len(cells)} columns ({', '.join(map(_short, cells))}) are no first sentence, "
        f"second sentence and score{'; there is no score' if is_named else ''}; keep these three, "
        f"or a header that names them {', '.join(known[0] for known in _HEADERS)}"
    )


def read_year(folder: Path, subsets: Sequence[str]) -> Pairs:
    """One year's subsets, one after the other, from STS.input.X.txt and STS.gs.X.txt.

    Pairs whose line in the gold file is empty are left out. Raises MtdlabError with file and
    line where a file does not fit, or the two of a subset have not as many lines.
    """
    rows: list[tuple[str, str, float]] = []
    for subset in subsets:
        texts, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        lines = read_lines(texts)
        pairs = read_each(texts, lines, partial(split_columns, columns=2))
        gold = read_lines(scores)
        if len(pairs) != len(gold):
            line = min(len(pairs), len(gold)) + 1
            raise MtdlabError(
                f"evaluation {scores}:{line}: {len(gold)} scores for the {len(pairs)} pairs of "
                f"{texts.name}; one of the two files is cut short"
            )
        graded = [at for at, (_, score) in enumerate(gold) if score.strip()]
        values = read_each(scores, [gold[at] for at in graded], parse_score)
        for at, value in zip(graded, values, strict=True):
            first, second = (parse_sentence(lines[at][0], text) for text in pairs[at])
            rows.append((first, second, value))
    return check_ranks(folder, _pairs(_enough(folder, rows)))


def _enough(path: Path, rows: list[tuple[str, str, float]]) -> list[tuple[str, str, float]]:
    if len(rows) < 2:
        raise MtdlabError(f"evaluation {path}: {len(rows)} scored pairs; at least 2 are needed")
    return rows


def check_ranks(path: Path, pairs: Pairs) -> Pairs:
    """The pairs. Raises MtdlabError where no encoder has a rank correlation on them."""
    distinct = {frozenset(pair) for pair in zip(pairs.first, pairs.second, strict=True)}
    cosines_differ = len(distinct) > 1 and any(len(pair) == 2 for pair in distinct)
    if len(pairs) < LEAST or np.ptp(pairs.gold) == 0 or not cosines_differ:
        raise MtdlabError(
            f"evaluation {path}: no encoder has a rank correlation on its {len(pairs)} pairs; at "
            f"least {LEAST} are needed, whose scores and sentences differ, not a sentence with "
            "itself in each"
        )
    return pairs


def _pairs(rows: Sequence[tuple[str, str, float]]) -> Pairs:
    first, second, gold = zip(*rows, strict=True)
    return Pairs([*first], [*second], np.array(gold))


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

    def read(place: str, line: str) -> Example:
        label, sentences = parse(place, line)
        return label, [parse_sentence(place, sentence) for sentence in sentences]

    examples = read_each(path, read_lines(path, encoding)[header:], read)
    labels, texts = [label for label, _ in examples], [sentences for _, sentences in examples]
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
        return (check_ranks(path, read_table(path, SICK, header=True)),)
    return (load_pairs(BUILTIN if name == BUILTIN else str(folder), "test"),)


def load_scored(score: str, source: str) -> Pairs:
    """What a score of a study with this `evaluation` is computed from; errors as `load_task`."""
    splits: Mapping[str, Split] = {"sts_dev": "dev", "sts_test": "test"}
    if score in splits:
        return load_pairs(source, splits[score])
    return load_task(score, task_folder(score, evaluation_folder(source)) or Path())[-1]


def sts_benchmark_pairs(data: Path, among: Sequence[Split]) -> dict[str, Pairs]:
    """STS-B's pairs of the splits that are there, under a name that says which; else empty."""
    folder = data / _FOLDERS["STSB"]
    splits = {
        split: load_pairs(str(folder), split)
        for split in among
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
