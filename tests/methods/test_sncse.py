"""SNCSE: the margin loss by hand, the loss against a slow transcription, views and settings."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mtdlab.errors import MtdlabError
from mtdlab.methods.base import View
from mtdlab.methods.sncse import PROMPT, SECOND_PROMPT, SNCSE, margin_loss
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train
from mtdlab.trial.environment import environment_of
from tests.conftest import SHORT_PROMPTS, Settings
from tests.methods.oracles import Array, cosine, info_nce


@pytest.fixture
def sncse_of(settings_of: Settings) -> Settings:
    return lambda **changed: settings_of(**{"method": "sncse", **SHORT_PROMPTS, **changed})


def at_cosine(cosine: float) -> Tensor:
    """A row that has this cosine with (1, 0), of a length that must not matter."""
    return 3 * torch.tensor([[cosine, math.sqrt(1 - cosine**2)]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("difference", "expected"),
    [(-0.05, 0.05), (-0.2, 0.0), (-0.5, 0.2), (-0.1, 0.0), (-0.3, 0.0), (0.2, 0.3)],
)
def test_the_margin_loss_by_hand(difference: float, expected: float) -> None:
    """α 0.1 and β 0.3: relu(Δ + 0.1) + relu(−Δ − 0.3)."""
    first = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    loss = margin_loss(first, at_cosine(0.7), at_cosine(0.7 + difference), low=0.1, high=0.3)
    assert float(loss) == pytest.approx(expected, abs=1e-12)


def slow_loss(z1: Array, z2: Array, z3: Array, settings: Any) -> float:
    """InfoNCE of z1 and z2, and the bidirectional margin loss, sentence by sentence."""
    margins = 0.0
    for one, two, three in zip(z1, z2, z3, strict=True):
        delta = cosine(one, three) - cosine(one, two)
        margins += max(0.0, delta + settings.margin_low) + max(0.0, -delta - settings.margin_high)
    contrast = info_nce(z1, z2, [], settings.temperature)
    return contrast + settings.margin_weight * margins / len(z1)


def test_the_loss_is_that_of_a_slow_transcription(sncse_of: Settings) -> None:
    settings = sncse_of(margin_weight=0.7, temperature=0.3)
    method = start(settings, load_inputs(settings)).method
    assert isinstance(method, SNCSE)
    random = np.random.default_rng(0)
    z1, z2, z3 = (random.standard_normal((5, 4)) for _ in range(3))
    loss = method.loss(*map(torch.from_numpy, (z1, z2, z3)))
    assert float(loss) == pytest.approx(slow_loss(z1, z2, z3, settings), rel=1e-12)


def test_training_uses_the_mask_token_of_three_prompted_views(sncse_of: Settings) -> None:
    settings = sncse_of(steps=1, dropout=0.0)
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    branch = state.method.branch
    passes = []
    for ids, mask in next(inputs.batches(8, settings.seed)):
        hidden = branch.encoder.eval()(input_ids=ids, attention_mask=mask).last_hidden_state
        at = hidden[ids == inputs.encoder.tokenizer.mask_token_id]
        passes.append(torch.tanh(at @ branch.pooler.weight.T + branch.pooler.bias))
    assert len(passes) == 3
    z1, z2, z3 = (vectors.detach().double().numpy() for vectors in passes)
    branch.train()
    trained = train(settings, inputs, state=state).curve["loss"][0]
    assert trained == pytest.approx(slow_loss(z1, z2, z3, settings), rel=1e-5)


def test_the_views_are_two_prompts_and_a_negation(sncse_of: Settings) -> None:
    settings = sncse_of(
        max_length=32, augmentation="typos:0.5", prompt=PROMPT, second_prompt=SECOND_PROMPT
    )
    assert SNCSE.views(settings) == (
        View("typos:0.5", PROMPT),
        View("none", SECOND_PROMPT),
        View("negation", SECOND_PROMPT),
    )
    plain = sncse_of()
    inputs = load_inputs(plain)
    first, second, negated = (
        inputs.encoder.tokenizer.decode(ids[0][mask[0].bool()])
        for ids, mask in next(inputs.batches(8, 0))
    )
    sentence = first.removeprefix("[CLS] a ").removesuffix(" [MASK] [SEP]")
    assert second == f"[CLS] the {sentence} [MASK] [SEP]"
    # the vocabulary of this encoder lacks "not"
    assert negated == f"[CLS] the [UNK] {sentence} [MASK] [SEP]"


def test_the_share_of_unknown_words_is_recorded(sncse_of: Settings, settings_of: Settings) -> None:
    plain = sncse_of()
    inputs = load_inputs(plain)
    recorded = environment_of(plain, inputs).corpus
    tokens = inputs.tokens.lengths.sum()
    # one "Not" in each of the 60 negations
    share = 100 * 60 / (tokens + 60)
    assert str(recorded).endswith(
        f"; [UNK] (words that the vocabulary lacks), of each view: 0.00 %, 0.00 %, {share:.2f} %"
    )
    simcse = settings_of(method="simcse")
    assert environment_of(simcse, load_inputs(simcse)).corpus.unknown == ()


def test_a_second_prompt_with_words_of_several_tokens_is_refused(sncse_of: Settings) -> None:
    prompts = {"prompt": "a {sentence} {mask} dog", "second_prompt": "the {sentence} {mask} a.b"}
    settings = sncse_of(**prompts)
    with pytest.raises(MtdlabError, match=r"each word after \{mask\} must be a single token"):
        load_inputs(settings)
