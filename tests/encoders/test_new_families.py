"""ModernBERT, DeBERTa, XLM-R, EuroBERT, Qwen3: trained, evaluated, exported, opened elsewhere."""

import copy
import json
from pathlib import Path
from typing import Any, cast, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoModel, AutoTokenizer

import mtdlab
from mtdlab.encoders.fast import is_fast
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.encoders.pooling import encode
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import load_pairs
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.testing import check_resume, check_state_round_trip
from mtdlab.training.export import save_model
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train
from mtdlab.trial.environment import environment_of
from tests.conftest import WORDS, Settings
from tests.encoders.random_encoders import DECODERS, FAMILIES, POSITIONS, write_family

SENTENCES = ["a dog runs", "the old man sleeps in the small house today", "birds", "a cat"]
Arrays = NDArray[np.float32]


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_family(tmp_path_factory.mktemp(request.param), request.param, WORDS)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Encoder, Any]:
    """The encoder as mtdlab loads it, and its model as transformers does, for tests that read."""
    encoder = load_encoder(str(folder), 0.1)
    encoder.model.eval()
    return encoder, AutoModel.from_pretrained(folder).eval()


@pytest.fixture
def run_of(settings_of: Settings) -> Settings:
    """Settings of a run of a few steps of an encoder, but for what is given."""

    def settings(encoder: Path, **changed: Any) -> TrainerSettings:
        pooling = "last-token" if encoder.name.startswith(DECODERS) else "cls"
        given = {"pooling": pooling, "steps": 6, "evaluate_every": 3} | changed
        return settings_of(encoder=str(encoder), **given)

    return settings


def plainly(model: Any, ids: list[int], pooling: Pooling) -> Tensor:
    """The vector (D,) of one sentence without padding, by transformers and the definition."""
    output = model(
        input_ids=torch.tensor([ids]),
        attention_mask=torch.ones(1, len(ids), dtype=torch.long),
        output_hidden_states=True,
    )
    layers, hidden = output.hidden_states, output.last_hidden_state[0]
    vectors = {
        "cls": lambda: hidden[0],
        "last-token": lambda: hidden[-1],
        "mean": lambda: hidden.mean(dim=0),
        "first-last": lambda: ((layers[1] + layers[-1]) / 2)[0].mean(dim=0),
        "last2": lambda: ((layers[-2] + layers[-1]) / 2)[0].mean(dim=0),
        "mask": lambda: hidden[-1],
    }
    return cast("Tensor", vectors[pooling]())


@pytest.mark.parametrize("pooling", [pooling for pooling in get_args(Pooling) if pooling != "mask"])
def test_vectors_are_those_of_the_plain_formulation(
    loaded: tuple[Encoder, Any], pooling: Pooling
) -> None:
    encoder, theirs = loaded
    model, tokenizer = encoder.model, encoder.tokenizer
    rows = [tokenizer(text)["input_ids"] for text in SENTENCES]
    batch = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with torch.no_grad():
        words = model.get_input_embeddings()(ids)
        found = encode(model, mask, Representation(pooling), inputs_embeds=words)
        expected = torch.stack([plainly(theirs, row, pooling) for row in rows])
    assert torch.allclose(found, expected, atol=1e-5)
    assert float(expected.std(dim=0).min()) > 1e-3, "the sentences' vectors are equal"


def test_positions_pass_and_padding(folder: Path) -> None:
    encoder = load_encoder(str(folder), 0.3)
    assert encoder.token_limit(512) == POSITIONS
    assert is_fast(encoder.model) == folder.name.startswith("xlm-roberta")
    assert encoder.causal == folder.name.startswith(DECODERS)
    assert encoder.tokenizer.padding_side == "right"
    assert encoder.tokenizer.pad_token == ("</s>" if encoder.causal else "<pad>")
    ids = torch.full((1, POSITIONS), 6)
    assert encoder.model(input_ids=ids).last_hidden_state.shape == (1, POSITIONS, 16)


METHODS = ({"method": "mocose", "fgsm_epsilon": 1e-3}, {"method": "simcse", "pooling": "mean"})


trained_families = pytest.mark.parametrize(
    "folder",
    [
        pytest.param(family, marks=() if family in ("modernbert", "qwen3") else pytest.mark.slow)
        for family in FAMILIES
    ],
    indirect=True,
)
"""One encoder and one decoder in the quick tests: the others differ in what other tests read."""


@trained_families
@pytest.mark.parametrize(
    "changed",
    [METHODS[0], pytest.param(METHODS[1], marks=pytest.mark.slow)],
    ids=lambda settings: str(settings["method"]),
)
def test_train_evaluate_export_and_open(
    folder: Path, run_of: Settings, tmp_path: Path, tiny_pairs: Path, changed: dict[str, Any]
) -> None:
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")
    settings = run_of(folder, **changed)
    inputs = load_inputs(settings)
    outcome = train(settings, inputs, lambda *_: None)
    assert np.isfinite(outcome.curve["loss"]).all()
    start = inputs.encoder.model.state_dict()
    assert [name for name in start if not torch.equal(start[name], outcome.weights[name])]
    save_model(tmp_path / "best", settings, inputs, outcome, {})

    pairs = load_pairs(str(tiny_pairs), "test")
    texts = sorted({*pairs.first, *pairs.second})
    ours = mtdlab.load_encoder(str(tmp_path / "best"), device="cpu").encode(texts)
    theirs = library.SentenceTransformer(str(tmp_path / "best"), device="cpu")
    assert np.allclose(theirs.encode(texts), ours, atol=1e-5)
    theirs.tokenizer.padding_side = "left"
    moved = theirs.encode(texts)
    # its absolute positions are those in the padded row
    if not folder.name.startswith("deberta-v2"):
        assert np.allclose(moved, ours, atol=1e-5)
    assert np.allclose(opened_plainly(tmp_path / "best", texts, settings.pooling), ours, atol=1e-5)
    config = json.loads((tmp_path / "best" / "1_Pooling" / "config.json").read_text())
    modes = [name for name, value in config.items() if value is True]
    names = {"cls": "cls_token", "mean": "mean_tokens", "last-token": "lasttoken"}
    assert modes == [f"pooling_mode_{names[settings.pooling]}"]


def opened_plainly(folder: Path, texts: list[str], pooling: Pooling) -> Arrays:
    """The vectors of an exported folder by AutoModel, one sentence at a time."""
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        vectors = [plainly(model, tokenizer(text)["input_ids"], pooling) for text in texts]
    return np.stack([np.asarray(vector) for vector in vectors])


def test_the_record_of_a_trial_states_family_and_dropout(folder: Path, run_of: Settings) -> None:
    settings = run_of(folder)
    recorded = environment_of(settings, load_inputs(settings)).encoder
    how = {
        "xlm-roberta": "xlm-roberta, the fast forward pass",
        "qwen3": "qwen3, transformers' own forward pass, dropout in attention_dropout",
    }
    kind = next(family for family in FAMILIES if folder.name.startswith(family))
    assert f"; {how.get(kind, kind.replace('v3', 'v2'))}" in str(recorded)


@trained_families
def test_an_interrupted_run_continues_with_the_same_weights(folder: Path, run_of: Settings) -> None:
    """Outside the fast pass dropout draws from torch's generator, which is part of the state."""
    settings = run_of(folder, ema_decay=0.5, fgsm_epsilon=1e-3)
    inputs = load_inputs(settings)
    check_state_round_trip(settings, inputs)
    check_resume(settings, inputs)


def test_the_target_branch_is_the_average_of_the_online_branch(
    folder: Path, run_of: Settings
) -> None:
    settings = run_of(folder, ema_decay=0.75, steps=1, evaluate_every=1)
    state = start(settings, load_inputs(settings))
    method: Any = state.method
    before = copy.deepcopy(dict(method.target.encoder.named_parameters()))
    train(settings, load_inputs(settings), lambda *_: None, state)
    after, online = (
        dict(branch.encoder.named_parameters()) for branch in (method.target, method.online)
    )
    # the best checkpoint was loaded at the end, that of the only step
    averaged = [name for name in after if after[name] is not online[name]]
    for name in averaged:
        assert torch.allclose(after[name], 0.75 * before[name] + 0.25 * online[name], atol=1e-6)
    assert averaged
    assert any(not torch.equal(after[name], before[name]) for name in averaged)


def test_cls_pooling_of_a_decoder_is_refused_everywhere(decoder: Path, run_of: Settings) -> None:
    for act in (load_inputs, lambda settings: mtdlab.load_encoder(settings.encoder, pooling="cls")):
        with pytest.raises(MtdlabError, match=r"is causal, .* choose pooling last-token or mean"):
            act(run_of(decoder, pooling="cls"))


def test_a_decoder_without_a_description_is_read_by_its_last_token(decoder: Path) -> None:
    encoder = mtdlab.load_encoder(str(decoder), device="cpu")
    assert encoder.representation == Representation("last-token")
    found = encoder.encode(SENTENCES)
    assert np.allclose(found, opened_plainly(decoder, SENTENCES, "last-token"), atol=1e-5)


def test_an_empty_sentence_of_a_decoder_is_an_end_token(decoder: Path) -> None:
    found = mtdlab.load_encoder(str(decoder), device="cpu").encode(["", "a dog"])
    model = AutoModel.from_pretrained(decoder).eval()
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([[2]])).last_hidden_state[0, 0]
    assert np.allclose(found[0], expected, atol=1e-5)


def test_a_tokenizer_that_cannot_pad_is_refused(decoder: Path, tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(decoder)
    tokenizer.eos_token = None
    tokenizer.save_pretrained(tmp_path)
    AutoModel.from_pretrained(decoder).save_pretrained(tmp_path)
    with pytest.raises(MtdlabError, match="neither a padding nor an end token; set pad_token in"):
        load_encoder(str(tmp_path), 0.1)


def test_position_shuffle_is_refused_with_the_last_token(run_of: Settings, decoder: Path) -> None:
    with pytest.raises(ValueError, match="position-shuffle moves the token that the pooling last-"):
        run_of(decoder, augmentation="position-shuffle")


def test_decoders_keep_no_keys_and_values(decoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder: Encoder = load_encoder(str(decoder), 0.1)
    used, layer = [], encoder.model.layers[0]
    forward = layer.forward

    def noted(*args: Any, **kwargs: Any) -> Any:
        used.append(kwargs.get("past_key_values"))
        return forward(*args, **kwargs)

    monkeypatch.setattr(layer, "forward", noted)
    words = encoder.model.get_input_embeddings()(torch.tensor([[5, 6, 7]]))
    encode(encoder.model, torch.ones(1, 3), Representation("mean"), inputs_embeds=words)
    assert used == [None]
