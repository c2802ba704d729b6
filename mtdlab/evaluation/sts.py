"""The agreement of cosines of sentence vectors with people (STS), and the vectors' geometry.

Letters: S distinct sentences, P pairs, D dimension.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

from mtdlab.analysis.measures.geometry import alignment, mean_cosine, normalise_rows, uniformity
from mtdlab.encoders.embed import Embedder, Vectors
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import TrialError
from mtdlab.evaluation.items import Items, similarities
from mtdlab.evaluation.pairs import Pairs

NAN = float("nan")
POSITIVE_ABOVE = 4.0
"""Pairs with a gold score above this count as positives (MoCoSE, section 5)."""


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of an encoder: Spearman x 100, and its sentence vectors' geometry.

    The score was computed from `items`; None for a score of other data.
    """

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
        """Spearman of cosines against gold x 100 (all pairs), with alignment and uniformity.

        A constant cosine has no rank order: the score is then NaN, never 0.
        """
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
