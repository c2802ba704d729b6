"""What trials with the same encoder and text share: loaded once per process."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from analysis.spectrum import singular_values
from mtdlab.device import Device, choose_device
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import load_pairs
from mtdlab.evaluation.sts import Evaluation, StsTask
from mtdlab.evaluation.suite import Embedder, Suite, TaskScore, score_tasks
from mtdlab.spec import TrainerSettings
from mtdlab.spec.settings import Pooling, TrainerSection
from mtdlab.spec.tasks import BUILTIN, parse_tasks
from mtdlab.text.corpus import Corpus, open_corpus
from mtdlab.text.embed import MAX_LENGTH, Vectors
from mtdlab.text.encoder import Encoder, load_encoder
from mtdlab.text.tokens import TokenStore, tokenise


@dataclass(frozen=True)
class View:
    """An encoder as the evaluation sentences see it: dev, test, and singular values (D,)."""

    dev: Evaluation
    test: Evaluation
    spectrum: NDArray[np.float64]

    @classmethod
    def of(cls, dev: StsTask, dev_vectors: Vectors, test: StsTask, test_vectors: Vectors) -> Self:
        """Score both splits' sentence vectors.

        The singular values are those of the unnormalised vectors of all sentences of both.
        """
        return cls(
            dev.evaluate(dev_vectors),
            test.evaluate(test_vectors),
            singular_values(np.concatenate([dev_vectors, test_vectors])),
        )


Views = tuple[tuple[Tensor, Tensor], ...]
"""A batch's token ids and attention mask, both (N, L): one view that both branches read, or the
online branch's and the target's."""


@dataclass(frozen=True)
class Materials:
    """Encoder as loaded, corpus, tokens, graded pairs, tasks, and the encoder as it was before.

    scores_before  what the loaded encoder scores on each of the suite's tasks.
    """

    encoder: Encoder
    corpus: Corpus
    tokens: TokenStore
    dev: StsTask
    test: StsTask
    suite: Suite
    before: View
    scores_before: tuple[TaskScore, ...]

    def batches(self, size: int, seed: int) -> Iterator[Views]:
        """Endless batches of the corpus. Raises MtdlabError where it holds less than one."""
        return ((batch,) for batch in self.tokens.batches(size, seed))


def prepare(settings: TrainerSettings) -> Materials:
    """Load what settings name, or take what an earlier trial of this process loaded.

    Raises MtdlabError where encoder, corpus or evaluation files are missing or do not fit.
    """
    return _prepare(
        settings.encoder, settings.pooling, settings.corpus, settings.evaluation, settings.tasks,
        settings.max_length, settings.dropout, choose_device(settings),
    )


@lru_cache(maxsize=1)
def _prepare(
    encoder_name: str, pooling: Pooling, corpus_name: str, evaluation: str, tasks: str,
    max_length: int, dropout: float, device: Device,
) -> Materials:
    pairs = {split: load_pairs(evaluation, split) for split in ("dev", "test")}
    corpus = open_corpus(corpus_name)
    encoder = load_encoder(encoder_name, dropout)
    limit = encoder.token_limit(MAX_LENGTH)
    dev, test = (StsTask(pairs[split], encoder.tokenizer, limit) for split in ("dev", "test"))
    tokens = tokenise(corpus, encoder.tokenizer, encoder.token_limit(max_length))
    nn.Module.to(encoder.model, device.device)
    dev_vectors, test_vectors = (task.embed(encoder.model, pooling, device) for task in (dev, test))
    before = View.of(dev, dev_vectors, test, test_vectors)
    suite = open_suite(tasks, evaluation, encoder)
    scores = score_tasks(Embedder(encoder.model, pooling, device), suite)
    return Materials(encoder, corpus, tokens, dev, test, suite, before, tuple(scores))


def open_suite(tasks: str, evaluation: str, encoder: Encoder) -> Suite:
    """The tasks of a trial. Raises MtdlabError where the data of one are not there."""
    data = None if evaluation == BUILTIN else Path(evaluation)
    limit = encoder.token_limit(MAX_LENGTH)
    suite = Suite(parse_tasks(tasks), data, encoder.tokenizer, limit)
    if suite.missing:
        lacking = "; ".join(f"{task}: {reason}" for task, reason in suite.missing.items())
        raise MtdlabError(
            f"evaluation {evaluation}: lacks data of trainer.tasks ({lacking}); give SentEval's "
            "folder, or take these tasks out"
        )
    return suite


def warm(settings: TrainerSection) -> None:
    """Check that texts, encoder and device are there; prepare the tokens that workers share.

    Raises MtdlabError where something is missing.
    """
    choose_device(settings)
    for split in ("dev", "test"):
        load_pairs(settings.evaluation, split)
    corpus = open_corpus(settings.corpus)
    encoder = load_encoder(settings.encoder, settings.dropout)
    open_suite(settings.tasks, settings.evaluation, encoder)
    tokens = tokenise(corpus, encoder.tokenizer, encoder.token_limit(settings.max_length))
    next(tokens.batches(settings.batch_size, seed=0))
