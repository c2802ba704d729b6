"""Python code in an encoder's folder is never run, and nobody is asked whether to run it."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mtdlab.corpus.language import Synonyms
from mtdlab.device import Device
from mtdlab.encoders.loading import load_encoder, load_tokenizer
from mtdlab.errors import MtdlabError

CODE = """\
import os
from transformers import BertConfig, BertModel, BertTokenizer

os.mkdir({mark!r})

class OwnConfig(BertConfig):
    model_type = "own"

class OwnModel(BertModel):
    config_class = OwnConfig

class OwnTokenizer(BertTokenizer):
    pass
"""
MODEL = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
TOKENIZER = {"AutoTokenizer": ["own.OwnTokenizer", None]}


@pytest.fixture
def folder(tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An encoder with a module beside it, and a user who would answer yes."""
    copied = Path(shutil.copytree(tiny_encoder, tmp_path / "encoder"))
    (copied / "own.py").write_text(CODE.format(mark=str(tmp_path / "run")))
    monkeypatch.setattr("builtins.input", lambda _question: "y")
    return copied


def change(path: Path, **changed: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def load_synonyms(name: str) -> Any:
    return Synonyms.load(name, Device(torch.device("cpu"), torch.float32))


@pytest.mark.parametrize(
    ("act", "file", "changed", "what"),
    [
        (load_encoder, "config.json", {"model_type": "own", "auto_map": MODEL}, "encoder"),
        (
            load_tokenizer,
            "tokenizer_config.json",
            {"tokenizer_class": "OwnTokenizer", "auto_map": TOKENIZER},
            "encoder",
        ),
        (load_synonyms, "config.json", {"model_type": "own", "auto_map": MODEL}, "synonyms model"),
    ],
)
def test_what_needs_its_own_code_is_refused(
    folder: Path, act: Callable[..., Any], file: str, changed: dict[str, Any], what: str
) -> None:
    change(folder / file, **changed)
    more = [None] if act is load_encoder else []
    said = rf"^{what} .*encoder: needs Python code of its own \({re.escape(file)} has auto_map\)"
    with pytest.raises(MtdlabError, match=said):
        act(str(folder), *more)
    assert not (folder.parent / "run").exists()


def test_what_transformers_has_too_is_loaded_without_the_folders_code(folder: Path) -> None:
    change(folder / "config.json", auto_map=MODEL)
    change(folder / "tokenizer_config.json", auto_map=TOKENIZER)
    assert type(load_encoder(str(folder), dropout=None).model).__name__ == "BertModel"
    assert not (folder.parent / "run").exists()
