"""How well cosines of sentence vectors agree with people: STS, and the geometry beside it.

Letters: S distinct sentences, P pairs, B batch, L tokens, D dimension.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from analysis.geometry import alignment, mean_cosine, normalise_rows, uniformity
from mtdlab.device import Device
from mtdlab.errors import TrialError
from mtdlab.evaluation.pairs import Pairs
from mtdlab.text.encoder import pool

Vectors = NDArray[np.float32]
TOKENS_PER_BATCH = 4096
NAN = float("nan")
POSITIVE_ABOVE = 4.0
"""Pairs with a gold score above this count as positives (MoCoSE, section 5)."""


@dataclass(frozen=True)
class Evaluation:
    """One look at an encoder: Spearman x 100, and where its sentence vectors lie."""

    score: float
    alignment: float
    uniformity: float
    mean_cosine: float


class StsTask:
    """One set of graded pairs, tokenised once; each distinct sentence is encoded once."""

    def __init__(
        self, pairs: Pairs, tokenizer: PreTrainedTokenizerBase, max_length: int
    ) -> None:
        sentences = sorted({*pairs.first, *pairs.second})
        position = {sentence: index for index, sentence in enumerate(sentences)}
        self.gold = pairs.gold
        self.first = np.array([position[sentence] for sentence in pairs.first])
        self.second = np.array([position[sentence] for sentence in pairs.second])
        self.tokens = tokenizer(sentences, truncation=True, max_length=max_length)["input_ids"]
        self.padding = int(tokenizer.pad_token_id or 0)

    def embed(self, model: PreTrainedModel, pooling: str, device: Device) -> Vectors:
        """Sentence vectors (S, D) in float32, without dropout; the model's mode is kept.

        Raises TrialError where one of them is not finite.
        """
        training = model.training
        model.eval()
        lengths = [len(tokens) for tokens in self.tokens]
        order = np.argsort(lengths, kind="stable")
        vectors = np.empty((len(order), int(model.config.hidden_size)), dtype=np.float32)
        with torch.no_grad(), device.autocast():
            for rows in _batches(order, lengths):
                ids, mask = self._padded(rows, device.device)
                hidden = model(input_ids=ids, attention_mask=mask).last_hidden_state
                vectors[rows] = pool(hidden, mask, pooling).float().cpu().numpy()
        model.train(training)
        if not np.isfinite(vectors).all():
            raise TrialError("sentence vectors are not finite")
        return vectors

    def _padded(self, rows: NDArray[np.int64], device: torch.device) -> tuple[Tensor, Tensor]:
        longest = max(len(self.tokens[row]) for row in rows)
        ids = torch.full((len(rows), longest), self.padding)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for index, row in enumerate(rows):
            tokens = self.tokens[row]
            ids[index, : len(tokens)] = torch.tensor(tokens)
            mask[index, : len(tokens)] = 1
        return ids.to(device), mask.to(device)

    def evaluate(self, vectors: Vectors) -> Evaluation:
        """Spearman of cosines against gold x 100 (all pairs), with alignment and uniformity.

        A constant cosine has no rank order: the score is then NaN, never 0.
        """
        unit = normalise_rows(vectors)
        first, second = unit[self.first], unit[self.second]
        cosines = (first * second).sum(axis=1)
        positive = self.gold > POSITIVE_ABOVE
        return Evaluation(
            score=_spearman(cosines, self.gold),
            alignment=alignment(first[positive], second[positive]) if positive.any() else NAN,
            uniformity=uniformity(unit),
            mean_cosine=mean_cosine(unit),
        )


def _spearman(cosines: NDArray[np.float64], gold: NDArray[np.float64]) -> float:
    if np.ptp(cosines) < 1e-6 or np.ptp(gold) == 0:
        return NAN
    return float(spearmanr(cosines, gold).statistic) * 100


def _batches(order: NDArray[np.int64], lengths: list[int]) -> list[NDArray[np.int64]]:
    """Rows of like length, at most `TOKENS_PER_BATCH` padded tokens together."""
    batches, start = [], 0
    for end in range(1, len(order) + 1):
        full = (end - start + 1) * lengths[order[min(end, len(order) - 1)]] > TOKENS_PER_BATCH
        if full or end == len(order):
            batches.append(order[start:end])
            start = end
    return batches
