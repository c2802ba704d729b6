"""Encoders of each family: loading, a few training steps, evaluation."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import nn
from transformers import (
    AutoModel,
    BertConfig,
    DistilBertConfig,
    MPNetConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
)

from mtdlab.builtin import builtin_pairs
from mtdlab.config import make_settings
from mtdlab.device import Device
from mtdlab.encoders.embed import Embedder, Sentences
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.evaluation.suite import Suite, score_tasks
from mtdlab.settings import Pooling, Representation
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train

CPU = Device(torch.device("cpu"), torch.float32)
POSITIONS = 40
SIZE: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
CONFIGS: dict[str, Callable[[int], Any]] = {
    "bert": lambda size: BertConfig(vocab_size=size, max_position_embeddings=POSITIONS, **SIZE),
    "roberta": lambda size: RobertaConfig(
        vocab_size=size, max_position_embeddings=POSITIONS + 2, **SIZE
    ),
    "distilbert": lambda size: DistilBertConfig(
        vocab_size=size,
        max_position_embeddings=POSITIONS,
        dim=16,
        hidden_dim=32,
        n_layers=2,
        n_heads=2,
    ),
    "mpnet": lambda size: MPNetConfig(
        vocab_size=size, max_position_embeddings=POSITIONS + 2, **SIZE
    ),
}


@pytest.fixture(scope="module", params=CONFIGS)
def folder(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    tiny_sentences: list[str],
) -> Path:
    """A random encoder of one family; its padding has id 1, as RoBERTa's has."""
    folder = tmp_path_factory.mktemp(request.param)
    words = sorted({word for sentence in tiny_sentences for word in sentence.split()})
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    vocabulary = {word: at for at, word in enumerate([*special, *words])}
    plain = Tokenizer(WordLevel(vocabulary, "<unk>"))
    plain.pre_tokenizer = Whitespace()
    plain.post_processor = TemplateProcessing("<s> $A </s>", None, [("<s>", 0), ("</s>", 2)])
    PreTrainedTokenizerFast(
        tokenizer_object=plain,
        cls_token="<s>",
        pad_token="<pad>",
        sep_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    ).save_pretrained(folder)
    torch.manual_seed(0)
    AutoModel.from_config(CONFIGS[request.param](len(vocabulary))).save_pretrained(folder)
    return folder


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
def test_a_short_run(folder: Path, tiny_corpus: Path, tiny_pairs: Path, pooling: Pooling) -> None:
    settings = make_settings(
        encoder=str(folder),
        corpus=str(tiny_corpus),
        evaluation=str(tiny_pairs),
        batch_size=8,
        queue_size=16,
        initial_queue_size=4,
        steps=3,
        evaluate_every=3,
        learning_rate=1e-3,
        device="cpu",
        precision="float32",
        max_length=16,
        pooling=pooling,
        prompt="the {sentence} {mask}" if pooling == "mask" else "",
    )
    outcome = train(settings, load_inputs(settings), lambda _step, _evaluation: None)
    assert np.isfinite(outcome.curve["loss"]).all()
    assert outcome.after.test != outcome.before.test
    words = [name for name in outcome.weights if name.endswith("word_embeddings.weight")]
    start = load_encoder(str(folder), 0.1).model.state_dict()
    assert not torch.equal(outcome.weights[words[0]], start[words[0]])


@pytest.fixture(scope="module")
def scored(folder: Path) -> tuple[Encoder, Suite[Sentences]]:
    """The encoder and a hundred built-in pairs, tokenised once for all poolings."""
    encoder, pairs = load_encoder(str(folder), 0.1), builtin_pairs("test")[:100]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtdlab.evaluation.pairs.builtin_pairs", lambda _: pairs)
        suite = Suite(("builtin",), None, encoder.sentences)
    return encoder, suite


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_an_encoder_of_another_family_is_evaluated(
    scored: tuple[Encoder, Suite[Sentences]], pooling: Pooling
) -> None:
    encoder, suite = scored
    [score] = score_tasks(Embedder(encoder.model, Representation(pooling), CPU), suite)
    assert score.score is not None
    assert (score.n, score.metric) == (100, "spearman")
