"""What trials with the same encoder and text share: loaded once per process."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch import nn

from analysis.spectrum import singular_values
from mtdlab.device import Device, choose_device
from mtdlab.evaluation.pairs import load_pairs
from mtdlab.evaluation.sts import Evaluation, StsTask
from mtdlab.spec import TrainerSettings
from mtdlab.spec.settings import Pooling, TrainerSection
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


@dataclass(frozen=True)
class Materials:
    """Encoder as loaded, corpus, tokens, evaluation tasks, and the encoder's view before."""

    encoder: Encoder
    corpus: Corpus
    tokens: TokenStore
    dev: StsTask
    test: StsTask
    before: View


def prepare(settings: TrainerSettings) -> Materials:
    """Load what settings name, or take what an earlier trial of this process loaded.

    Raises MtdlabError where encoder, corpus or evaluation files are missing or do not fit.
    """
    return _prepare(
        settings.encoder, settings.pooling, settings.corpus, settings.evaluation,
        settings.max_length, settings.dropout, choose_device(settings),
    )


@lru_cache(maxsize=1)
def _prepare(
    encoder_name: str, pooling: Pooling, corpus_name: str, evaluation: str,
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
    return Materials(encoder, corpus, tokens, dev, test, before)


def warm(settings: TrainerSection) -> None:
    """Check that texts, encoder and device are there; prepare the tokens that workers share.

    Raises MtdlabError where something is missing.
    """
    choose_device(settings)
    for split in ("dev", "test"):
        load_pairs(settings.evaluation, split)
    corpus = open_corpus(settings.corpus)
    encoder = load_encoder(settings.encoder, settings.dropout)
    tokens = tokenise(corpus, encoder.tokenizer, encoder.token_limit(settings.max_length))
    next(tokens.batches(settings.batch_size, seed=0))
