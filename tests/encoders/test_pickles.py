"""Pickles and Python code planted in files that are loaded are never executed."""

import hashlib
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import mtdlab
from mtdlab import analysis
from mtdlab.analysis.data.cells import TableError
from mtdlab.analysis.data.defaults import Reading
from mtdlab.analysis.data.stored_frames import StoredFramesError, from_parquet
from mtdlab.analysis.notebook import open_table
from mtdlab.config.reader import read_study
from mtdlab.config.source import SpecError
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.language import Synonyms
from mtdlab.corpus.tokens import token_folder, tokenise
from mtdlab.device import Device
from mtdlab.encoders.loading import load_encoder, load_tokenizer
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.evaluation.pairs import read_lines
from mtdlab.store.progress import list_studies
from mtdlab.training.checkpoint import (
    MANIFEST,
    TENSORS,
    VALUES,
    find_checkpoint,
    save_checkpoint,
)


class Mark:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.path),)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What an executed pickle would make."""
    return tmp_path / "executed"


def plant(path: Path, mark: Path, *, by_torch: bool) -> None:
    """Replace a file by a pickle: as torch.save writes it, or plain."""
    if by_torch:
        torch.save({"weight": Mark(mark)}, path)
    else:
        path.write_bytes(pickle.dumps(Mark(mark)))


def test_the_planted_pickle_would_be_executed(tmp_path: Path, mark: Path) -> None:
    plant(tmp_path / "a", mark, by_torch=False)
    pickle.loads((tmp_path / "a").read_bytes())
    assert mark.is_dir()


@pytest.mark.parametrize("by_torch", [True, False])
def test_pickled_weights_are_refused_without_advice_to_execute_them(
    tiny_encoder: Path, tmp_path: Path, mark: Path, by_torch: bool
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    (folder / "model.safetensors").unlink()
    plant(folder / "pytorch_model.bin", mark, by_torch=by_torch)
    with pytest.raises(MtdlabError, match="is a pickle with more in it than tensors") as caught:
        load_encoder(str(folder), dropout=0.1)
    assert "weights_only" not in str(caught.value)
    assert "model.safetensors" in str(caught.value)
    assert not mark.exists()


@pytest.mark.parametrize("by_torch", [True, False])
@pytest.mark.parametrize(
    "name", ["model.safetensors", "tokenizer.json", "config.json", "tokenizer_config.json"]
)
def test_a_pickle_in_place_of_a_file_of_an_encoder_is_not_executed(
    tiny_encoder: Path, tmp_path: Path, mark: Path, name: str, by_torch: bool
) -> None:
    folder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, folder)
    plant(folder / name, mark, by_torch=by_torch)
    with pytest.raises(MtdlabError, match=r"encoder .*encoder: "):
        load_encoder(str(folder), dropout=0.1)
    assert not mark.exists()


@pytest.mark.parametrize("by_torch", [True, False])
@pytest.mark.parametrize("name", ["ids", "lengths"])
def test_a_pickle_in_the_token_cache_is_not_executed(
    tiny_encoder: Path,
    tiny_corpus: Path,
    tmp_path: Path,
    mark: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    by_torch: bool,
) -> None:
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path / "cache"))
    corpus, tokenizer = open_corpus(str(tiny_corpus)), load_tokenizer(str(tiny_encoder))
    tokenise(corpus, tokenizer, 16)
    plant(token_folder(corpus, tokenizer, 16) / name, mark, by_torch=by_torch)
    with pytest.raises(MtdlabError, match=r"the kept tokens in .* are damaged; delete that folder"):
        tokenise(corpus, tokenizer, 16)
    assert not mark.exists()


@pytest.mark.parametrize("by_torch", [True, False])
@pytest.mark.parametrize("name", [TENSORS, VALUES, MANIFEST])
def test_a_pickle_in_a_checkpoint_is_not_executed(
    tmp_path: Path, mark: Path, name: str, by_torch: bool
) -> None:
    """Also where the manifest holds its sum, as whoever can write the one can write the other."""
    save_checkpoint(tmp_path / "run", 5, {"weight": torch.zeros(3)}, {})
    folder = tmp_path / "run" / "step-0000000005"
    plant(folder / name, mark, by_torch=by_torch)
    if name != MANIFEST:
        manifest = json.loads((folder / MANIFEST).read_text())
        content = (folder / name).read_bytes()
        sums = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        manifest["files"][name] = sums
        (folder / MANIFEST).write_text(json.dumps(manifest))
    found = find_checkpoint(tmp_path / "run")
    assert found.checkpoint is None
    assert len(found.damaged) == 1
    assert not mark.exists()


@pytest.mark.parametrize("by_torch", [True, False])
def test_a_pickle_in_place_of_other_files_is_not_executed(
    tmp_path: Path, mark: Path, by_torch: bool
) -> None:
    """A study file, a database, a table of runs, stored frames, and evaluation data."""
    path = tmp_path / "planted"
    plant(path, mark, by_torch=by_torch)
    with pytest.raises(SpecError, match=f"{path}"):
        read_study(path)
    with pytest.raises(StorageError, match="is not a SQLite database"):
        list_studies(f"sqlite:///{path}")
    with pytest.raises(TableError, match="planted"):
        open_table(path, Reading())
    with pytest.raises(StoredFramesError, match="planted"):
        from_parquet(path)
    with pytest.raises(MtdlabError, match="planted"):
        read_lines(path)
    assert not mark.exists()


def test_no_module_can_execute_a_file() -> None:
    """Of the functions that do, none is called: by name, as a review would look for them."""
    forbidden = re.compile(
        r"pickle\.loads?\(|torch\.load\(|(?<![.\w])(?:eval|exec)\(|shell=True|yaml\.load\("
        r"|trust_remote_code(?!\": False)|allow_pickle=True"
        r"|weights_only=False|joblib\.load|os\.system|marshal|dill"
    )
    sources = [
        *Path(mtdlab.__file__).parent.rglob("*.py"),
        *Path(analysis.__file__).parent.rglob("*.py"),
    ]
    found = {
        f"{path.name}: {line.strip()}"
        for path in sources
        for line in path.read_text(encoding="utf-8").splitlines()
        if forbidden.search(line)
    }
    assert len(sources) > 200
    assert found == set()


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
