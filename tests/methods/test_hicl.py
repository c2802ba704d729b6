"""HiCL: segments and negatives by hand, losses against slow transcriptions, its backbones."""

import math

import numpy as np
import pytest
import torch

from mtdlab.methods.hicl import HiCL, Pass, entailment_loss, local_loss, record_passes
from mtdlab.methods.registry import make_settings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train
from tests.conftest import SHORT_PROMPTS, Settings
from tests.methods.oracles import Array, info_nce
from tests.training.conftest import run

TEMPERATURE = 0.3


def pass_of(segments: list[list[Array]]) -> Pass:
    """A pass whose sentences have these segment vectors; their means are not weighted."""
    sentence = [row for row, vectors in enumerate(segments) for _ in vectors]
    return Pass(
        torch.from_numpy(np.stack([vector for vectors in segments for vector in vectors])),
        torch.tensor(sentence),
        torch.from_numpy(np.stack([np.mean(vectors, axis=0) for vectors in segments])),
    )


def drawn(counts: list[int], seed: int) -> list[list[Array]]:
    random = np.random.default_rng(seed)
    return [[random.standard_normal(4) for _ in range(count)] for count in counts]


def slow_local(first: list[list[Array]], second: list[list[Array]]) -> float:
    """Per segment: its twin against the twin and the segments of all other sentences; summed."""
    total = 0.0
    for row, segments in enumerate(first):
        others = [vector for at, every in enumerate(second) if at != row for vector in every]
        for segment, twin in zip(segments, second[row], strict=False):
            total += info_nce([segment], [twin], others, TEMPERATURE)
    return total / len(first)


def slow_entailment(first: list[list[Array]], sentences: list[Array]) -> float:
    """Per segment: its own sentence against all sentences; summed."""
    total = 0.0
    for row, segments in enumerate(first):
        others = [vector for at, vector in enumerate(sentences) if at != row]
        for segment in segments:
            total += info_nce([segment], [sentences[row]], others, TEMPERATURE)
    return total / len(first)


@pytest.mark.parametrize(
    ("first", "second"),
    [([3, 1, 2], [3, 1, 2]), ([1, 1], [1, 1]), ([2, 1, 1], [3, 1, 2]), ([3, 2], [1, 2])],
)
def test_the_losses_are_those_of_slow_transcriptions(first: list[int], second: list[int]) -> None:
    one, other = drawn(first, 0), drawn(second, 1)
    local = local_loss(pass_of(one), pass_of(other), TEMPERATURE)
    assert float(local) == pytest.approx(slow_local(one, other), rel=1e-12)
    entailment = entailment_loss(pass_of(one), pass_of(other), TEMPERATURE)
    means = [np.mean(vectors, axis=0) for vectors in other]
    assert float(entailment) == pytest.approx(slow_entailment(one, means), rel=1e-12)


def test_segments_of_the_same_sentence_are_no_negatives() -> None:
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    first, second = [[x, y], [y]], [[x, x], [y]]
    # x: twin x, of the other sentence y; y: twin x, negative y; y: twin y, negatives x and x
    near, far = math.exp(1 / TEMPERATURE), 1.0
    by_hand = [near / (near + far), far / (far + near), near / (near + 2 * far)]
    expected = -sum(map(math.log, by_hand)) / 2
    loss = local_loss(pass_of(first), pass_of(second), TEMPERATURE)
    assert float(loss) == pytest.approx(expected, rel=1e-12)
    # another vector of the same sentence changes only its own row
    moved = local_loss(pass_of(first), pass_of([[x, -x], [y]]), TEMPERATURE)
    by_hand[1:] = [far / (far + near), near / (near + 2 * far)]
    assert float(moved) == pytest.approx(-sum(map(math.log, by_hand)) / 2, rel=1e-12)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_the_loss_of_a_step_is_that_of_a_slow_transcription(
    pooling: str, settings_of: Settings
) -> None:
    """SimCSE's loss on means of segments, each encoded alone by transformers' own forward pass."""
    weights = {"local_weight": 0.3, "entailment_weight": 0.2, "temperature": TEMPERATURE}
    settings = settings_of(
        method="hicl", segment_length=4, steps=1, dropout=0.0, pooling=pooling, **weights
    )
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    branch = state.method.backbone.branch
    [(ids, mask)] = next(inputs.batches(8, settings.seed))
    segments, sentences = [], []
    for row, length in zip(ids, mask.sum(dim=1).tolist(), strict=True):
        parts = [row[at : min(at + 4, length)] for at in range(0, length, 4)]
        vectors = []
        for part in parts:
            hidden = branch.encoder.eval()(input_ids=part.unsqueeze(0)).last_hidden_state[0]
            pooled = hidden[0] if pooling == "cls" else hidden.mean(dim=0)
            head = torch.tanh(branch.pooler.weight @ pooled + branch.pooler.bias)
            vectors.append(head.detach().double().numpy())
        segments.append(vectors)
        weights = [len(part) / length for part in parts]
        sentences.append(sum(w * v for w, v in zip(weights, vectors, strict=True)))
    expected = 0.3 * slow_local(segments, segments)
    expected += 0.7 * info_nce(sentences, sentences, [], TEMPERATURE)
    expected += 0.2 * slow_entailment(segments, sentences)
    branch.train()
    assert max(map(len, segments)) >= 3
    loss = train(settings, inputs, state=state).curve["loss"][0]
    assert loss == pytest.approx(expected, rel=1e-5)


def test_with_one_segment_a_sentence_the_loss_is_that_of_the_backbone(
    settings_of: Settings,
) -> None:
    whole, wrapped = (
        run(settings_of(dropout=0.0, steps=3, **given)).curve["loss"].tolist()
        for given in ({"method": "simcse"}, {"method": "hicl", "segment_length": 16})
    )
    assert wrapped == pytest.approx(whole, rel=1e-5)


@pytest.mark.parametrize(
    ("backbone", "passes", "given"),
    [
        ("simcse", 2, {}),
        ("esimcse", 3, {}),
        ("mocose", 2, {}),
        ("sncse", 3, SHORT_PROMPTS),
    ],
)
def test_the_first_two_passes_of_a_step_are_the_positive_pair(
    backbone: str, passes: int, given: dict[str, str], settings_of: Settings
) -> None:
    settings = settings_of(method="hicl", backbone=backbone, segment_length=7, **given)
    state = start(settings, load_inputs(settings))
    method = state.method
    assert isinstance(method, HiCL)
    views = next(state.batches)
    with record_passes(method.backbone) as found:
        method.backbone(0, views)
    assert len(found) == passes
    assert found[0].segments.requires_grad
    assert found[1].segments.requires_grad == (backbone != "mocose")
    for made in found:
        assert made.sentence.tolist() == sorted(made.sentence.tolist())
        assert len(made.sentences) == 8
    method.backbone(0, views)
    assert len(found) == passes, "a hook remained"


def test_settings_are_those_of_the_backbone() -> None:
    simcse, esimcse, mocose, sncse = (
        make_settings(method="hicl", backbone=name)
        for name in ("simcse", "esimcse", "mocose", "sncse")
    )
    assert (simcse.mtd, simcse.encoder_copies, simcse.evaluate_every) == (None, 1, 125)
    assert esimcse.mtd == pytest.approx(202.5)
    assert (esimcse.queue_size, esimcse.ema_decay, esimcse.encoder_copies) == (160, 0.995, 2)
    assert mocose.mtd == pytest.approx(14.67, abs=0.01)
    assert (sncse.batch_size, sncse.pooling) == (256, "mask")
    assert {settings.segment_length for settings in (simcse, esimcse, mocose, sncse)} == {32}
    assert "queue_size" not in simcse.model_dump()
    assert {"queue_size", "repetition_rate"} < set(esimcse.model_dump())
    for settings in (simcse, esimcse, mocose, sncse):
        assert make_settings(**settings.model_dump()) == settings
