"""Graded pairs, and the tasks that papers report: loaded once, scored for any number of encoders.

`StsTask` is one set of pairs, with the geometry of its vectors; `Suite` is several tasks.

Letters: S distinct sentences of a set or of all tasks, P pairs, D dimension.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mtdlab.analysis.data.tasks import TRANSFER
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.geometry import (
    alignment,
    batched_uniformity,
    mean_cosine,
    normalise_rows,
    uniformity,
)
from mtdlab.encoders.embed import Distinct, Embedder, Sentences, Vectors, nothing
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import TrialError
from mtdlab.evaluation.items import Items, similarities, values_in_points
from mtdlab.evaluation.pairs import (
    Labelled,
    Pairs,
    Task,
    describe_shortfall,
    load_task,
    task_folder,
)
from mtdlab.evaluation.processing import Processing
from mtdlab.evaluation.senteval_classification import (
    Correct,
    Examples,
    nested_accuracy,
    split_accuracy,
)
from mtdlab.settings.tasks import BEIR, BUILTIN, is_external_score

NAN = float("nan")
POSITIVE_ABOVE = 4.0
"""Pairs with a gold score above this count as positives (MoCoSE, section 5)."""


@dataclass(frozen=True)
class Evaluation:
    """Spearman x 100, from `items` unless of other data, and the geometry of the vectors."""

    score: float
    alignment: float
    uniformity: float
    mean_cosine: float
    items: Items | None = field(default=None, repr=False, compare=False)


class StsTask:
    """One set of graded pairs, tokenised once; each distinct sentence is encoded once."""

    def __init__(self, pairs: Pairs, encoder: Encoder, prompt: str = "") -> None:
        self.sentences = encoder.sentences([*pairs.first, *pairs.second], prompt)
        self.gold, self.pairs = pairs.gold, pairs
        self.first = self.sentences.rows(pairs.first)
        self.second = self.sentences.rows(pairs.second)

    def embed(self, embedder: Embedder) -> Vectors:
        """Sentence vectors (S, D). Raises TrialError where one of them is not finite."""
        vectors = self.sentences.embed(embedder)
        if not np.isfinite(vectors).all():
            raise TrialError("sentence vectors are not finite", "nan_loss")
        return vectors

    def measure(self, embedder: Embedder) -> tuple[Vectors, Evaluation]:
        """The vectors (S, D) of `embed`, and their scores by `evaluate`."""
        vectors = self.embed(embedder)
        return vectors, self.evaluate(vectors)

    def evaluate(self, vectors: Vectors) -> Evaluation:
        """Spearman of cosines against gold x 100, NaN without a rank order, and the geometry."""
        unit = normalise_rows(vectors)
        first, second = unit[self.first], unit[self.second]
        cosines = (first * second).sum(axis=1)
        positive = self.gold > POSITIVE_ABOVE
        return Evaluation(
            score=spearman(cosines, self.gold),
            alignment=alignment(first[positive], second[positive]) if positive.any() else NAN,
            uniformity=uniformity(vectors),
            mean_cosine=mean_cosine(unit),
            items=similarities(cosines, self.gold, self.pairs.digest),
        )


def spearman(cosines: NDArray[np.float64], gold: NDArray[np.float64]) -> float:
    """Rank correlation x 100 of two columns (P,); NaN where either is constant."""
    if np.ptp(cosines) < 1e-6 or np.ptp(gold) == 0:
        return NAN
    return float(spearmanr(cosines, gold).statistic) * 100


Split = Literal["dev", "test"]
Advance = Callable[[str, int, int], None]


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
        """The metric's name: `accuracy` for transfer tasks, `spearman` for pairs, or another."""
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


class ExternalTask(ABC):
    """A task besides the published ones: a folder, one of MTEB, or a user's function.

    Its scores are recorded by `name`; on dev data, if it `has_dev`, a checkpoint can be selected.
    """

    name: str
    has_dev = False

    @abstractmethod
    def score(self, embedder: Embedder, split: Split) -> list[TaskScore]:
        """The scores x 100; those on dev data end in `:dev`. Raises MtdlabError where it fails."""

    def tokens(self, split: Split) -> int:  # noqa: ARG002
        """The number of tokens that are encoded for a split, 0 where it is not known."""
        return 0


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
        advance: Advance = nothing,
    ) -> None:
        """Read what `data`, a folder in SentEval's layout, holds of the tasks.

        `collect` makes a `T` of the texts of all tasks and sets, which may occur repeatedly.
        `advance` is called with what is embedded or scored, how much of it is done, and all.
        Raises MtdlabError with file and line for a damaged file.
        """
        self.tasks, self._advance = tuple(tasks), advance
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
        parts = [part for task in (*self.loaded.values(), self.spaces.values()) for part in task]
        self.sentences = collect(text for part in parts for text in (*part.first, *part.second))

    def score_all(self, vectors: Vectors, processing: Processing | None = None) -> list[TaskScore]:
        """Every task's score, in the suite's order, from the vectors of `embed`."""
        return [self.score(task, vectors, processing) for task in self.tasks]

    def score(self, task: str, vectors: Vectors, processing: Processing | None) -> TaskScore:
        """One task's score from the vectors of `embed`; None with a reason where there is none."""
        if task in self.missing:
            return TaskScore(task, None, self.missing[task])
        parts = self.loaded[task]
        scored = parts[-1]
        none = TaskScore(task, None, n=len(scored), warning=self.shortfalls.get(task, ""))
        try:
            sides = self._vectors(parts, vectors, processing)
        except ValueError as error:
            return replace(none, reason=str(error))
        if isinstance(scored, Labelled):
            score, correct = _classify(parts, sides, partial(self._advance, task))
            items = values_in_points(100 * correct, scored.digest)
            return replace(none, score=score, items=items)
        cosines = (sides[0][0] * sides[0][1]).sum(axis=1)
        correlation = spearman(cosines, scored.gold)
        if np.isnan(correlation):
            return replace(none, reason="every cosine, or every gold score, is the same")
        items = similarities(cosines, scored.gold, scored.digest)
        return replace(none, score=correlation, items=items)

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
        self, parts: Sequence[Pairs], vectors: Vectors, processing: Processing | None
    ) -> list[tuple[Floats, Floats]]:
        """Vectors of both sides by part, pairs at unit length. Raises ValueError for unfit ones."""
        texts = ([part.first for part in parts], [part.second for part in parts])
        first, second = (
            vectors[np.concatenate([self.sentences.rows(part) for part in side])].astype(np.float64)
            for side in texts
        )
        first, second = process(first, second, processing)
        if not isinstance(parts[0], Labelled):
            first, second = normalise_rows(first), normalise_rows(second)
        ends = np.cumsum([len(part) for part in parts])[:-1]
        return list(zip(np.split(first, ends), np.split(second, ends), strict=True))

    def embed(self: "Suite[Sentences]", embedder: Embedder) -> Vectors:
        """Sentence vectors (S, D) of all tasks and sets, each sentence encoded once."""
        return self.sentences.embed(embedder, partial(self._advance, "sentences"))


def process(first: Floats, second: Floats, processing: Processing | None) -> tuple[Floats, Floats]:
    """Vectors (P, D) of both sides after a processing. Raises ValueError as `check_directions`."""
    check_directions(np.concatenate([first, second]))
    return (first, second) if processing is None else processing(first, second)


def check_directions(vectors: Floats) -> None:
    """Raise ValueError for vectors without information, whose score would mean nothing."""
    if not np.isfinite(vectors).all():
        raise ValueError("sentence vectors are not finite")
    if not vectors.any(axis=1).all():
        raise ValueError("a sentence vector is all zeros")
    if np.ptp(normalise_rows(vectors), axis=0).max() < 1e-6:
        raise ValueError("collapsed: every sentence has the same vector")


def _classify(
    task: Task, sides: list[tuple[Floats, Floats]], advance: Callable[[int, int], None]
) -> tuple[float, Correct]:
    """The accuracy of a sentence's vector u, or of |u - v| beside u * v of a pair, as features."""
    features = [
        np.concatenate([np.abs(first - second), first * second], axis=1) if len(second) else first
        for first, second in sides
    ]
    parts = [Examples(inputs, part.gold) for inputs, part in zip(features, task, strict=True)]
    return split_accuracy(parts, advance) if len(parts) > 1 else nested_accuracy(parts[0], advance)
