"""`select_on: sts_average`: checkpoints selected on the average of the STS test sets.

Letters: S distinct sentences, D dimension.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from analysis.tasks import STS
from mtdlab.device import Device
from mtdlab.encoders.embed import MAX_LENGTH, Sentences, Vectors, tokenised
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import TrialError
from mtdlab.evaluation.embedder import Embedder
from mtdlab.evaluation.pairs import evaluation_folder, load_pairs
from mtdlab.evaluation.sts import NAN, Evaluation, StsTask
from mtdlab.evaluation.suite import Suite, embed_suite
from mtdlab.evaluation.tasks import task_folder
from mtdlab.settings import Representation

_PAIRS = "test"


@dataclass(frozen=True)
class AveragedSets:
    """The STS sets in a folder in SentEval's layout; none for pairs in another layout."""

    found: tuple[str, ...]
    missing: tuple[str, ...]

    def describe(self) -> str:
        """Which sets the average is over, such as `STS12 and STSB (STS13 is missing)`."""
        if not self.found:
            return "the test pairs of `evaluation`, which holds none of the seven STS sets"
        lacking = f" ({', '.join(self.missing)} missing)" if self.missing else ""
        return f"{', '.join(self.found)}{lacking}"


def averaged_sets(evaluation: str) -> AveragedSets:
    """The sets that `sts_average` averages for a value of `evaluation`.

    Raises MtdlabError for a folder that is not there.
    """
    folder = evaluation_folder(evaluation)
    found = tuple(name for name in STS if _has(name, folder))
    return AveragedSets(found, tuple(name for name in STS if name not in found))


def warn_of_missing_sets(evaluation: str) -> str:
    """A sentence that names the sets that the average lacks; empty where all seven are there."""
    sets = averaged_sets(evaluation)
    if not sets.missing:
        return ""
    return (
        f"select_on: sts_average with evaluation {evaluation}: checkpoints are selected on "
        f"{sets.describe()}; published programs average all seven"
    )


class StsAverage:
    """The pairs of several STS sets, each sentence encoded once; the score is their mean.

    Alignment, uniformity and mean cosine are those of the test pairs of `evaluation`. Without any
    STS set the score is that of these pairs too.
    """

    def __init__(self, evaluation: str, encoder: Encoder, test: StsTask, prompt: str = "") -> None:
        """`test`: the test pairs of `evaluation`, read before; `prompt`: around each sentence.

        Raises MtdlabError for a damaged file.
        """
        limit = encoder.token_limit(MAX_LENGTH)
        folder = evaluation_folder(evaluation)
        self._suite = _suite(evaluation, folder, encoder.tokenizer, limit, prompt)
        self._test = test
        self._test_rows = self._suite.sentences.rows(test.sentences.texts)

    def embed(
        self, model: PreTrainedModel, representation: Representation, device: Device
    ) -> Vectors:
        """Sentence vectors (S, D) of all sets. Raises TrialError where one is not finite."""
        vectors = embed_suite(Embedder(model, representation, device), self._suite)
        if not np.isfinite(vectors).all():
            raise TrialError("sentence vectors are not finite", "nan_loss")
        return vectors

    def measure(self, embedder: Embedder) -> tuple[Vectors, Evaluation]:
        """`embed` and `evaluate`: the vectors (S, D) and what they score."""
        vectors = self.embed(embedder.model, embedder.representation, embedder.device)
        return vectors, self.evaluate(vectors)

    def evaluate(self, vectors: Vectors) -> Evaluation:
        """The mean of the sets' Spearman correlations x 100; NaN where one has none."""
        geometry = self._test.evaluate(vectors[self._test_rows])
        if not self._suite.tasks:
            return geometry
        scores = [each.score for each in self._suite.score_all(vectors, None)]
        mean = float(np.mean([NAN if score is None else score for score in scores]))
        return replace(geometry, score=mean, items=None)

    @property
    def sentences(self) -> Sentences:
        """The sentences of all sets, (S,)."""
        return self._suite.sentences


def _has(name: str, folder: Path | None) -> bool:
    path = task_folder(name, folder)
    return path is not None and path.is_dir()


@lru_cache(maxsize=1)
def _suite(
    evaluation: str,
    folder: Path | None,
    tokenizer: PreTrainedTokenizerBase,
    limit: int,
    prompt: str,
) -> Suite[Sentences]:
    """Cached, since every trial of a study reads the same sets."""
    found = [name for name in STS if _has(name, folder)]
    pairs = {_PAIRS: load_pairs(evaluation, "test")}
    return Suite(found, folder, tokenised(tokenizer, limit, prompt), pairs)
