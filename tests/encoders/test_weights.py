"""Weights of an encoder's files that do not fit its configuration: refused, never drawn anew."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto
from typer.testing import CliRunner

from mtdlab.cli import app
from mtdlab.encoders.loading import ADAPTERS, HEADS, POOLER, load_encoder
from mtdlab.encoders.traits import FAMILIES
from mtdlab.errors import MtdlabError

WEIGHTS = "model.safetensors"
Change = Callable[[dict[str, Tensor]], Mapping[str, Tensor]]


@pytest.fixture
def changed(tiny_encoder: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of a small BERT with changed weights, or fields of its configuration."""

    def change(weights: Change = lambda found: found, **fields: Any) -> Path:
        folder = tmp_path / "encoder"
        shutil.copytree(tiny_encoder, folder)
        tensors = weights(load_file(folder / WEIGHTS))
        save_file(dict(tensors), folder / WEIGHTS, metadata={"format": "pt"})
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | fields))
        return folder

    return change


def renamed(prefix: str) -> Change:
    return lambda found: {prefix + name: value for name, value in found.items()}


def without(part: str) -> Change:
    return lambda found: {name: value for name, value in found.items() if part not in name}


def added(name: str) -> Change:
    return lambda found: found | {name: torch.zeros(3)}


def old_name(name: str) -> str:
    """As in the files of the first BERT."""
    name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
    return f"bert.{name.replace('LayerNorm.bias', 'LayerNorm.beta')}"


@pytest.mark.parametrize(
    ("weights", "fields", "said"),
    [
        (
            renamed("student."),
            {},
            r"missing: 37, such as e.*: 39, such as student\..* remove a prefix from the names",
        ),
        (renamed("module.bert."), {}, r"in no layer: .*such as module\.bert\..* remove a prefix"),
        (
            without("layer.0.output"),
            {},
            r"\(missing: 4, such as .*layer\.0\.output.*files are incomplete",
        ),
        (
            dict,
            {"num_hidden_layers": 3},
            r"\(missing: 16, such as .*layer\.2.*files are incomplete",
        ),
        (
            dict,
            {"num_hidden_layers": 1},
            r"\(in no layer: 16, such as encoder.*the model alone",
        ),
        (dict, {"intermediate_size": 7}, r"of another size: 6, .*\[7\].*of another model"),
        (dict, {"model_type": "distilbert"}, r"missing: .*in no layer: .*of another model"),
        (added("linear.weight"), {}, r"\(in no layer: 1, such as linear\.weight\)"),
        (
            added("encoder.layer.0.lora_A.weight"),
            {},
            r"in no layer: 1, such as enc.*lora_A",
        ),
    ],
    ids=["prefix", "prefixes", "lacking", "deeper", "shallower", "size", "family", "more", "lora"],
)
def test_weights_that_do_not_fit_are_refused(
    changed: Callable[..., Path], weights: Change, fields: dict[str, Any], said: str
) -> None:
    folder = changed(weights, **fields)
    with pytest.raises(MtdlabError, match=f"^encoder {folder}: its weights do not fit .*{said}"):
        load_encoder(str(folder), None)


@pytest.mark.parametrize(
    "weights",
    [
        renamed("bert."),
        without("pooler."),
        added("cls.seq_relationship.weight"),
        added("mlp.dense.weight"),
        added("embeddings.position_ids"),
        added("pooler.dense.weight"),
        lambda found: {old_name(name): value for name, value in found.items()},
    ],
    ids=["head", "pooler", "unused", "simcse", "buffer", "other pooler", "first BERT"],
)
def test_a_pooler_and_task_heads_are_not_needed(
    changed: Callable[..., Path], tiny_encoder: Path, weights: Change
) -> None:
    found = load_encoder(str(changed(weights)), None).model.state_dict()
    expected = load_encoder(str(tiny_encoder), None).model.state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(value, expected[name]) for name, value in found.items())


def test_commands_refuse_them_before_a_study_is_recorded(
    changed: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = changed(renamed("student."))
    study = {"study": "s", "trainer": {"encoder": str(folder), "steps": 2}, "seeds": [0]}
    Path("s.yaml").write_text(json.dumps(study | {"search": {"ema_decay": [0.5]}}))
    for command in (["sweep", "s.yaml", "--jobs", "1"], ["evaluate", str(folder)]):
        with pytest.raises(MtdlabError, match=r"such as student\..*; get both"):
            CliRunner().invoke(app, command, catch_exceptions=False)
    assert not Path("mtdlab.db").exists()


def test_a_number_of_layers_that_no_encoder_has_is_refused(changed: Callable[..., Path]) -> None:
    folder = changed(num_hidden_layers=100_000)
    with pytest.raises(MtdlabError, match=r"says 100,000 layers, at most 1,000 are loaded"):
        load_encoder(str(folder), None)


def test_adapters_are_not_added_unasked(changed: Callable[..., Path]) -> None:
    folder = changed()
    (folder / ADAPTERS).write_text("{}")
    with pytest.raises(MtdlabError, match=r"holds adapters \(adapter_config\.json\).*merge"):
        load_encoder(str(folder), None)


WITH_HEAD = [
    mapping
    for name, mapping in vars(modeling_auto).items()
    if name.startswith("MODEL_FOR_")
    and name.endswith(("PRETRAINING_MAPPING", "_LM_MAPPING", "_CLASSIFICATION_MAPPING"))
] + [
    modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING,
    modeling_auto.MODEL_FOR_MULTIPLE_CHOICE_MAPPING,
]
"""transformers' classes with a task head, by configuration."""
ANOTHER_PREFIX = {"transformer"}
"""The prefix under which decoders for question answering have the whole model."""


COMMON = ("bert", "deberta-v2", "distilbert", "modernbert", "qwen3", "xlm-roberta")


@pytest.mark.parametrize(
    "family",
    [
        *COMMON,
        *(
            pytest.param(family, marks=pytest.mark.slow)
            for family in sorted(FAMILIES.keys() - {*COMMON})
        ),
    ],
)
def test_the_heads_of_every_family_are_known(family: str) -> None:
    config = CONFIG_MAPPING[family]()
    with torch.device("meta"):
        encoder = modeling_auto.MODEL_MAPPING[type(config)](config)
        models = [kinds[type(config)](config) for kinds in WITH_HEAD if type(config) in kinds]
    own, prefix = encoder.state_dict().keys(), f"{encoder.base_model_prefix}."
    names = {name.removeprefix(prefix) for model in models for name in model.state_dict()}
    heads = {name.partition(".")[0] for name in names - own}
    assert models
    assert heads <= HEADS | {POOLER} | ANOTHER_PREFIX
    assert not heads & {name for name, _ in encoder.named_children()} - {POOLER}
