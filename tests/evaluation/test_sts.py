"""Scores: against SciPy, against batches, and against a published number."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from mtdlab.encoders import embed
from mtdlab.encoders.loading import Encoder
from mtdlab.encoders.pooling import encode
from mtdlab.errors import TrialError
from mtdlab.evaluation.pairs import Pairs, load_pairs
from mtdlab.evaluation.sts import StsTask
from mtdlab.settings import Pooling, Representation
from tests.evaluation.conftest import embedder_of


@pytest.fixture
def pairs(tiny_pairs: Path) -> Pairs:
    return load_pairs(str(tiny_pairs), "dev")


@pytest.fixture
def task(pairs: Pairs, encoder: Encoder) -> StsTask:
    return StsTask(pairs, encoder)


def toy_task(encoder: Encoder) -> StsTask:
    """a-b, a-c and b-c of three sentences; vectors come in the order a, b, c."""
    gold = np.array([1.0, 5.0, 3.0])
    return StsTask(Pairs(["dog", "bird", "dog"], ["cat", "dog", "cat"], gold), encoder)


def test_each_distinct_sentence_is_encoded_once(task: StsTask, pairs: Pairs) -> None:
    distinct = {*pairs.first, *pairs.second}
    assert len(task.sentences) == len(distinct) < 2 * len(pairs.first)
    ordered = sorted(distinct)
    assert [ordered[at] for at in task.first] == pairs.first
    assert [ordered[at] for at in task.second] == pairs.second


def test_the_score_is_scipys_spearman_of_cosines(pairs: Pairs, encoder: Encoder) -> None:
    # a sentence with itself has cosine 1 but for rounding, which would break the ties
    keep = [at for at, first in enumerate(pairs.first) if first != pairs.second[at]]
    chosen = Pairs(
        [pairs.first[at] for at in keep], [pairs.second[at] for at in keep], pairs.gold[keep]
    )
    task = StsTask(chosen, encoder)
    vectors = task.embed(embedder_of(encoder)).astype(np.float64)
    cosines = [
        float(vectors[a] @ vectors[b] / np.linalg.norm(vectors[a]) / np.linalg.norm(vectors[b]))
        for a, b in zip(task.first, task.second, strict=True)
    ]
    expected = 100 * spearmanr(cosines, task.gold).statistic
    assert task.evaluate(vectors.astype(np.float32)).score == pytest.approx(expected, abs=1e-6)


def test_a_score_by_hand(encoder: Encoder) -> None:
    """Cosines .8, 0, .8 (bird-dog is 0) against gold 1, 5, 3: ranks 2.5, 1, 2.5 and 1, 3, 2."""
    vectors = np.array([[0, 2], [3, 4], [5, 0]], dtype=np.float32)  # bird, cat, dog
    task = toy_task(encoder)
    assert (task.first.tolist(), task.second.tolist()) == ([2, 0, 2], [1, 2, 1])
    evaluation = task.evaluate(vectors)
    assert evaluation.score == pytest.approx(-100 * np.sqrt(3) / 2)
    assert evaluation.alignment == pytest.approx(2)
    assert evaluation.mean_cosine == pytest.approx((0.8 + 0.6 + 0) / 3)


def test_a_constant_embedding_has_no_score(encoder: Encoder) -> None:
    task = toy_task(encoder)
    evaluation = task.evaluate(np.ones((3, 4), dtype=np.float32))
    assert np.isnan(evaluation.score)
    assert evaluation.mean_cosine == pytest.approx(1)
    nearly = 1 + 1e-5 * np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    assert np.isnan(task.evaluate(nearly.astype(np.float32)).score)


def test_a_constant_gold_has_no_score_and_no_positive_no_alignment(encoder: Encoder) -> None:
    task = toy_task(encoder)
    task.gold = np.full(3, 2.0)
    evaluation = task.evaluate(np.eye(3, dtype=np.float32) + 0.1)
    assert np.isnan(evaluation.score)
    assert np.isnan(evaluation.alignment)
    assert np.isfinite(evaluation.uniformity)


def test_vectors_that_are_not_finite_end_the_trial(task: StsTask, encoder: Encoder) -> None:
    with torch.no_grad():
        list(encoder.model.parameters())[-1][0] = float("nan")
    with pytest.raises(TrialError, match="sentence vectors are not finite"):
        task.embed(embedder_of(encoder))


@pytest.mark.parametrize("pooling", get_args(Pooling))
@pytest.mark.parametrize("tokens", [1, 40, 200])
def test_batches_do_not_change_vectors(
    task: StsTask,
    encoder: Encoder,
    pairs: Pairs,
    pooling: Pooling,
    tokens: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embed, "TOKENS_PER_BATCH", tokens)
    vectors = task.embed(embedder_of(encoder, pooling))
    encoder.model.eval()
    for row, sentence in enumerate(sorted({*pairs.first, *pairs.second})):
        batch = encoder.tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            ids, mask = batch["input_ids"], batch["attention_mask"]
            alone = encode(encoder.model, mask, Representation(pooling), input_ids=ids)[0].numpy()
        assert np.abs(vectors[row] - alone).max() < 1e-5


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_batches_hold_every_row_once_and_no_more_than_fits(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embed, "TOKENS_PER_BATCH", size)
    lengths = np.random.default_rng(0).integers(3, 30, 50).tolist()
    order = np.argsort(lengths, kind="stable")
    batches = embed.batches(order, lengths)
    assert np.concatenate(batches).tolist() == order.tolist()
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= size
    assert len(batches) < 50 or size < 64


@pytest.mark.parametrize("training", [True, False])
def test_the_models_mode_is_kept_and_dropout_is_off(
    task: StsTask, encoder: Encoder, training: bool
) -> None:
    encoder.model.train(training)
    first = task.embed(embedder_of(encoder))
    assert encoder.model.training is training
    assert np.array_equal(first, task.embed(embedder_of(encoder)))


def test_long_sentences_are_cut(pairs: Pairs, encoder: Encoder) -> None:
    sentences = embed.Sentences(pairs.first, encoder.tokenizer, 4)
    assert {len(tokens) for tokens in sentences.tokens} == {4}
