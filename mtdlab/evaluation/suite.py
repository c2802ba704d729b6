"""The tasks that papers report, loaded once and scored for any number of encoders.

Letters: S distinct sentences over all tasks, P pairs, D dimension.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from analysis.data.tasks import TRANSFER
from analysis.measures.geometry import alignment, batched_uniformity, normalise_rows, uniformity
from mtdlab.encoders.embed import Embedder, Rows, Sentences, Vectors
from mtdlab.evaluation.items import Items, similarities, values_in_points
from mtdlab.evaluation.pairs import Pairs
from mtdlab.evaluation.processing import Processing
from mtdlab.evaluation.senteval_classification import (
    Correct,
    Examples,
    nested_accuracy,
    split_accuracy,
)
from mtdlab.evaluation.sts import POSITIVE_ABOVE, spearman
from mtdlab.evaluation.tasks import (
    Classification,
    Labelled,
    Task,
    describe_shortfall,
    load_task,
    parts_of,
    task_folder,
)
from mtdlab.settings.tasks import BEIR, BUILTIN, is_external_score

Floats = NDArray[np.float64]
Advance = Callable[[str, int, int], None]


def nothing(_what: str, _done: int, _total: int) -> None:
    """No progress is shown."""


@dataclass(frozen=True)
class TaskScore:
    """One task's score x 100, or None and the reason; `n` pairs or tested sentences.

    Attributes:
        warning: which of its files are shorter than published, with both counts; else empty.
        items: that the score was computed from; None where they are not known.
    """

    task: str
    score: float | None
    reason: str = ""
    n: int = 0
    warning: str = ""
    items: Items | None = field(default=None, repr=False, compare=False)

    @property
    def metric(self) -> str:
        """`accuracy` for transfer tasks, `spearman` for pairs, else what the task is scored by."""
        if is_external_score(self.task):
            return "ndcg_at_10" if self.task.startswith(BEIR) else "main_score"
        return "accuracy" if self.task in TRANSFER else "spearman"


@dataclass(frozen=True)
class Space:
    """Alignment over a set's positive pairs, uniformity over its distinct sentences.

    Each is None where there are no vectors to take it from; `reason` then says why.

    Attributes:
        uniformity_by_batch: as the notebook of MoCoSE's authors computes it (`batched_uniformity`),
            of the first sentences of the pairs, then the second; comparable with its published
            values, which `uniformity` is not.
    """

    name: str
    alignment: float | None
    uniformity: float | None
    uniformity_by_batch: float | None
    positives: int
    sentences: int
    reason: str = ""


class Distinct(Protocol):
    """The distinct sentences of some texts, each of which has one row in an array of vectors."""

    def rows(self, sentences: Sequence[str]) -> Rows:
        """The rows of these sentences' vectors, (P,)."""

    def __len__(self) -> int:
        """The number of rows, S."""


T = TypeVar("T", bound=Distinct)


class Suite(Generic[T]):
    """Some tasks and some sets of pairs, read, and their distinct sentences as a `T`.

    `missing` names the tasks whose data are not there, each with what was looked for; `shortfalls`
    those with files shorter than published, each with both counts.
    """

    def __init__(
        self,
        tasks: Sequence[str],
        data: Path | None,
        collect: Callable[[Iterable[str]], T],
        spaces: Mapping[str, Pairs] | None = None,
    ) -> None:
        """Read what `data`, a folder in SentEval's layout, holds of the tasks.

        Args:
            collect: makes a `T` of the texts of all tasks and sets, which may occur repeatedly:
                `collect_with` for an encoder, `WordAverages` for word vectors.

        Raises:
            MtdlabError: for an unknown task, and with file and line for a damaged file.
        """
        self.tasks = tuple(tasks)
        self.missing: dict[str, str] = {}
        self.loaded: dict[str, Task] = {}
        for name in self.tasks:
            folder = task_folder(name, data)
            if name == BUILTIN or (folder is not None and folder.is_dir()):
                self.loaded[name] = load_task(name, folder or Path())
            else:
                self.missing[name] = f"no folder {folder}" if folder else "no data folder is given"
        described = {name: describe_shortfall(name, task) for name, task in self.loaded.items()}
        self.shortfalls = {name: text for name, text in described.items() if text}
        self.spaces = dict(spaces or {})
        texts = [
            text
            for task in self.loaded.values()
            for part in parts_of(task)
            for text in (*part.first, *part.second)
        ]
        texts += [text for pairs in self.spaces.values() for text in (*pairs.first, *pairs.second)]
        self.sentences = collect(texts)

    def score_all(
        self, vectors: Vectors, processing: Processing | None, *, advance: Advance = nothing
    ) -> list[TaskScore]:
        """Every task's score, in the suite's order, from `embed_suite`'s vectors."""
        return [self.score(task, vectors, processing, advance=advance) for task in self.tasks]

    def score(
        self,
        task: str,
        vectors: Vectors,
        processing: Processing | None,
        *,
        advance: Advance = nothing,
    ) -> TaskScore:
        """One task's score from `embed_suite`'s vectors; None with a reason where there is none."""
        if task in self.missing:
            return TaskScore(task, None, self.missing[task])
        score = self._score(task, vectors, processing, advance)
        return replace(score, warning=self.shortfalls.get(task, ""))

    def _score(
        self, task: str, vectors: Vectors, processing: Processing | None, advance: Advance
    ) -> TaskScore:
        loaded = self.loaded[task]
        scored = parts_of(loaded)[-1]
        count = len(scored)
        try:
            parts = self._vectors(parts_of(loaded), vectors, processing)
        except ValueError as error:
            return TaskScore(task, None, str(error), count)
        if isinstance(loaded, Classification):
            score, correct = _classify(loaded, parts, lambda *step: advance(task, *step))
            items = values_in_points(100 * correct, scored.digest)
            return TaskScore(task, score, n=count, items=items)
        cosines = (parts[0][0] * parts[0][1]).sum(axis=1)
        correlation = spearman(cosines, loaded.gold)
        if np.isnan(correlation):
            return TaskScore(task, None, "every cosine, or every gold score, is the same", count)
        items = similarities(cosines, loaded.gold, loaded.digest)
        return TaskScore(task, correlation, n=count, items=items)

    def space(self, name: str, vectors: Vectors, processing: Processing | None) -> Space:
        """Alignment (gold above 4) and uniformity of one set of pairs, from unit vectors."""
        pairs = self.spaces[name]
        positive = pairs.gold > POSITIVE_ABOVE
        distinct = {sentence: at for at, sentence in enumerate([*pairs.first, *pairs.second])}
        counts = int(positive.sum()), len(distinct)
        try:
            [(first, second)] = self._vectors([pairs], vectors, processing)
        except ValueError as error:
            return Space(name, None, None, None, *counts, str(error))
        aligned = alignment(first[positive], second[positive]) if positive.any() else None
        every = np.concatenate([first, second])[list(distinct.values())]
        reason = "" if positive.any() else f"no pair has a gold score above {POSITIVE_ABOVE:g}"
        measured = aligned, uniformity(every), batched_uniformity(every)
        return Space(name, *measured, *counts, reason)

    def _vectors(
        self, parts: Sequence[Pairs | Labelled], vectors: Vectors, processing: Processing | None
    ) -> list[tuple[Floats, Floats]]:
        """First and second vectors of each part: of pairs at unit length, of classes as they are.

        Raises:
            ValueError: where they are not finite, zero, all alike, or span too little.
        """
        texts = ([part.first for part in parts], [part.second for part in parts])
        first, second = (
            vectors[np.concatenate([self.sentences.rows(part) for part in side])].astype(np.float64)
            for side in texts
        )
        check_directions(np.concatenate([first, second]))
        if processing is not None:
            first, second = processing(first, second)
        if isinstance(parts[0], Pairs):
            first, second = normalise_rows(first), normalise_rows(second)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return list(zip(np.split(first, ends), np.split(second, ends), strict=True))


def embed_suite(
    embedder: Embedder, suite: Suite[Sentences], *, advance: Advance = nothing
) -> Vectors:
    """Sentence vectors (S, D) of all tasks and sets of a suite, each sentence encoded once."""
    done = 0

    def count_encoded(count: int) -> None:
        nonlocal done
        done += count
        advance("sentences", done, len(suite.sentences))

    return suite.sentences.embed(embedder, advance=count_encoded)


def score_tasks(embedder: Embedder, suite: Suite[Sentences]) -> list[TaskScore]:
    """Every task of a suite, in its order."""
    return suite.score_all(suite.sentences.embed(embedder), None)


def check_directions(vectors: Floats) -> None:
    """Raise ValueError for vectors without information, whose score would mean nothing."""
    if not np.isfinite(vectors).all():
        raise ValueError("sentence vectors are not finite")
    if not vectors.any(axis=1).all():
        raise ValueError("a sentence vector is all zeros")
    if np.ptp(normalise_rows(vectors), axis=0).max() < 1e-6:
        raise ValueError("collapsed: every sentence has the same vector")


def _classify(
    task: Classification, parts: list[tuple[Floats, Floats]], advance: Callable[[int, int], None]
) -> tuple[float, Correct]:
    splits = [part for part in parts_of(task) if isinstance(part, Labelled)]
    examples = [
        Examples(_features(*sides), part.labels) for sides, part in zip(parts, splits, strict=True)
    ]
    if task.test is None:
        return nested_accuracy(examples[0], advance=advance)
    dev = None if task.dev is None else examples[1]
    return split_accuracy(examples[0], dev, examples[-1], advance=advance)


def _features(first: Floats, second: Floats) -> Floats:
    """A classifier's features: a sentence's vector, or |u - v| beside u * v of a pair."""
    if not len(second):
        return first
    return np.concatenate([np.abs(first - second), first * second], axis=1)
