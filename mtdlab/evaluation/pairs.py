"""Graded sentence pairs: the built-in data set's, and the STS tasks' in SentEval's layout.

Files of published data sets are read line by line, and errors name the file and the line.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtdlab.builtin import builtin_pairs
from mtdlab.corpus.lines import reading
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


def read_rows(path: Path, columns: int) -> list[tuple[str, list[str]]]:
    """Each line as (place, its first columns), by `read_lines` and `split_columns`."""
    return [(place, split_columns(place, line, columns)) for place, line in read_lines(path)]


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
    """

    first: list[str]
    second: list[str]
    gold: NDArray[Any]

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

    dev.tsv and test.tsv are tab-separated without a header: first sentence, second, score, in any
    language and on any scale that rises with similarity. The folder may also be SentEval's, which
    has STS-B's inside; a relative path may also be one in the folder MTDLAB_DATA.

    STS-B is tab-separated: column 5 the score, 6 and 7 the sentences (from 1). Pairs without
    a score are left out. Raises MtdlabError with file and line where a file does not fit, and where
    its pairs are fewer than three, alike, or of one score: no encoder has a correlation then.
    """
    if (folder := evaluation_folder(source)) is not None:
        if any((folder / f"{name}.tsv").is_file() for name in ("dev", "test")):
            return check_ranks(own := folder / f"{split}.tsv", read_table(own))
        if (inside := folder / STS_BENCHMARK).is_dir():
            folder = inside
        path = folder / f"sts-{split}.csv"
        return check_ranks(path, read_table(path, first=5, second=6, gold=4))
    if split == "train":
        raise MtdlabError("evaluation builtin: has no train pairs; dev and test are there")
    return _pairs(builtin_pairs(split))


def evaluation_folder(source: str) -> Path | None:
    """The folder of `trainer.evaluation`, None for the built-in pairs; errors as `find_data`."""
    return None if source == BUILTIN else find_data("evaluation", source)


def read_table(
    path: Path, *, first: int = 0, second: int = 1, gold: int = 2, header: bool = False
) -> Pairs:
    """Pairs of a tab-separated file, columns counted from 0; those without a score are left out.

    Raises MtdlabError with file and line where the file does not fit, or has fewer than two scored
    pairs.
    """
    rows = read_rows(path, max(first, second, gold) + 1)[header:]
    return _grade(path, [(place, row[first], row[second], place, row[gold]) for place, row in rows])


def read_year(folder: Path, subsets: Sequence[str]) -> Pairs:
    """One year's subsets, one after the other, from STS.input.X.txt and STS.gs.X.txt.

    Pairs whose line in the gold file is empty are left out. Raises MtdlabError with file and
    line where a file does not fit, or the two of a subset have not as many lines.
    """
    lines: list[GradedLine] = []
    for subset in subsets:
        texts, scores = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        pairs, gold = read_rows(texts, 2), read_lines(scores)
        if len(pairs) != len(gold):
            line = min(len(pairs), len(gold)) + 1
            raise MtdlabError(
                f"evaluation {scores}:{line}: {len(gold)} scores for the {len(pairs)} pairs of "
                f"{texts.name}; one of the two files is cut short"
            )
        lines += [
            (place, row[0], row[1], *scored)
            for (place, row), scored in zip(pairs, gold, strict=True)
        ]
    return check_ranks(folder, _grade(folder, lines))


GradedLine = tuple[str, str, str, str, str]
"""Two sentences and a score as text, each with its file and line."""


def _grade(path: Path, lines: Sequence[GradedLine]) -> Pairs:
    rows = [
        (parse_sentence(place, first), parse_sentence(place, second), parse_score(scored, text))
        for place, first, second, scored, text in lines
        if text.strip()
    ]
    if len(rows) < 2:
        raise MtdlabError(f"evaluation {path}: {len(rows)} scored pairs; at least 2 are needed")
    return _pairs(rows)


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
