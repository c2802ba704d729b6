"""What trials with the same encoder and text share: loaded once per process."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from analysis.spectrum import singular_values
from mtdlab.corpus.augmented import augment
from mtdlab.corpus.corpus import Corpus, open_corpus
from mtdlab.corpus.tokens import Batch, TokenStore, paired_batches, tokenise
from mtdlab.device import Device, choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Vectors
from mtdlab.encoders.encoder import Encoder, load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import load_pairs
from mtdlab.evaluation.sts import Evaluation, StsTask
from mtdlab.evaluation.suite import Embedder, Suite, TaskScore, score_tasks
from mtdlab.methods.base import View as View_
from mtdlab.settings import Pooling, TrainerSettings
from mtdlab.settings.augmentation import parse_augmentation
from mtdlab.settings.tasks import BUILTIN, parse_tasks


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


Views = tuple[Batch, ...]
"""One view of a batch that both branches read, or the online branch's and the target's."""


@dataclass(frozen=True)
class Materials:
    """Encoder as loaded, corpus, tokens, graded pairs, tasks, and the encoder as it was before.

    scores_before  what the loaded encoder scores on each of the suite's tasks.
    augmented      tokens of the corpus with its text augmented, row by row those of the same
                   sentences as `tokens`; None where the text stays as it is.
    """

    encoder: Encoder
    corpus: Corpus
    tokens: TokenStore
    dev: StsTask
    test: StsTask
    suite: Suite
    before: View
    scores_before: tuple[TaskScore, ...]
    augmented: TokenStore | None = None

    def batches(self, views: tuple[View_, ...], size: int, seed: int) -> Iterator[Views]:
        """Endless batches of the corpus. Raises MtdlabError where it holds less than one."""
        if self.augmented is not None and len(views) > 1:
            return paired_batches(self.augmented, self.tokens, size, seed)
        return ((batch,) for batch in self.tokens.batches(size, seed))


class _Named(NamedTuple):
    """The settings that say what is loaded."""

    encoder: str
    pooling: Pooling
    corpus: str
    evaluation: str
    tasks: str
    max_length: int
    dropout: float
    device: Device


def prepare(settings: TrainerSettings) -> Materials:
    """Load what settings name, or take what an earlier trial of this process loaded.

    Raises MtdlabError where encoder, corpus, evaluation files or the models of an augmentation
    are missing or do not fit.
    """
    named = _Named(
        settings.encoder,
        settings.pooling,
        settings.corpus,
        settings.evaluation,
        settings.tasks,
        settings.max_length,
        settings.dropout,
        choose_device(settings),
    )
    materials, augmented = _prepare(named), _augmented(settings.augmentation, named)
    return materials if augmented is None else replace(materials, augmented=augmented)


@lru_cache(maxsize=8)
def _augmented(augmentation: str, named: _Named) -> TokenStore | None:
    """Beside `_prepare`, so that a study of augmentations loads its encoder once."""
    materials = _prepare(named)
    corpus = augment(materials.corpus, parse_augmentation(augmentation), named.device)
    return None if corpus is None else _tokens(corpus, materials.encoder, named.max_length)


def _tokens(corpus: Corpus, encoder: Encoder, max_length: int) -> TokenStore:
    return tokenise(corpus, encoder.tokenizer, encoder.token_limit(max_length))


@lru_cache(maxsize=1)
def _prepare(named: _Named) -> Materials:
    pooling, device = named.pooling, named.device
    pairs = {split: load_pairs(named.evaluation, split) for split in ("dev", "test")}
    corpus = open_corpus(named.corpus)
    encoder = load_encoder(named.encoder, named.dropout)
    limit = encoder.token_limit(MAX_LENGTH)
    dev, test = (StsTask(pairs[split], encoder.tokenizer, limit) for split in ("dev", "test"))
    tokens = _tokens(corpus, encoder, named.max_length)
    nn.Module.to(encoder.model, device.device)
    dev_vectors, test_vectors = (task.embed(encoder.model, pooling, device) for task in (dev, test))
    before = View.of(dev, dev_vectors, test, test_vectors)
    suite = open_suite(named.tasks, named.evaluation, encoder)
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


def warm(settings: TrainerSettings, augmentations: Iterable[str] = (), batch_size: int = 0) -> None:
    """Check that texts, encoder and device are there; prepare the tokens that workers share.

    augmentations  all that runs will use, where not only the settings' own; the models that they
                   name run here over the corpus.
    batch_size     the smallest that runs will use, where not the settings' own.

    Raises MtdlabError where something is missing.
    """
    device = choose_device(settings)
    for split in ("dev", "test"):
        load_pairs(settings.evaluation, split)
    corpus = open_corpus(settings.corpus)
    encoder = load_encoder(settings.encoder, settings.dropout)
    open_suite(settings.tasks, settings.evaluation, encoder)
    tokens = _tokens(corpus, encoder, settings.max_length)
    next(tokens.batches(batch_size or settings.batch_size, seed=0))
    for augmentation in augmentations or (settings.augmentation,):
        if augmented := augment(corpus, parse_augmentation(augmentation), device):
            _tokens(augmented, encoder, settings.max_length)
