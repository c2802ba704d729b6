"""Encoders of each family: loading, a few training steps and their evaluation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, DistilBertConfig, MPNetConfig, RobertaConfig

from mtdlab.encoders.loading import load_encoder
from mtdlab.settings import Pooling
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.encoders.random_encoders import POSITIONS, SIZE, write_encoder

MORE = {"max_position_embeddings": POSITIONS + 2}
CONFIGS: dict[str, Callable[[int], Any]] = {
    "bert": lambda size: BertConfig(vocab_size=size, **SIZE),
    "roberta": lambda size: RobertaConfig(vocab_size=size, **SIZE | MORE),
    "distilbert": lambda size: DistilBertConfig(
        vocab_size=size,
        max_position_embeddings=POSITIONS,
        dim=16,
        hidden_dim=32,
        n_layers=2,
        n_heads=2,
    ),
    "mpnet": lambda size: MPNetConfig(vocab_size=size, **SIZE | MORE),
}


@pytest.fixture(scope="module", params=CONFIGS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp(request.param), CONFIGS[request.param], WORDS)


def test_dropout_and_positions(folder: Path) -> None:
    encoder = load_encoder(str(folder), 0.3)
    rates = {module.p for module in encoder.model.modules() if isinstance(module, nn.Dropout)}
    assert rates == {0.3}
    assert (encoder.pooler is None) == (encoder.model.config.model_type == "distilbert")
    assert encoder.token_limit(512) == POSITIONS
    assert encoder.token_limit(7) == 7
    ids = torch.full((1, POSITIONS), 6)
    assert encoder.model(input_ids=ids).last_hidden_state.shape == (1, POSITIONS, 16)


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_a_short_run(folder: Path, settings_of: Settings, pooling: Pooling) -> None:
    prompt = "the {sentence} {mask}" if pooling == "mask" else ""
    settings = settings_of(
        encoder=str(folder), steps=3, evaluate_every=3, pooling=pooling, prompt=prompt
    )
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    assert np.isfinite(outcome.curve["loss"]).all()
    assert outcome.after.test != outcome.before.test
    assert np.isfinite(outcome.after.test.score)
    words = [name for name in outcome.weights if name.endswith("word_embeddings.weight")]
    start = load_encoder(str(folder), 0.1).model.state_dict()
    assert not torch.equal(outcome.weights[words[0]], start[words[0]])
