"""The first layers of an encoder (`encoder_layers`): kept, recorded, exported, refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModel
from typer.testing import CliRunner

from mtdlab.cli import app
from mtdlab.encoders.fast import first_tokens_of_ids
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.pooling import encode
from mtdlab.encoders.saved import load_encoder as load_saved
from mtdlab.encoders.traits import FAMILIES as KNOWN
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.evaluate import evaluate
from mtdlab.settings import Representation
from mtdlab.testing import check_resume
from mtdlab.training.export import save_model
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.encoders.random_encoders import small_config, write_encoder

IDS = torch.arange(5, 25).view(2, 10)
MASK = torch.ones_like(IDS)


@torch.no_grad()
def vectors(model: Any, pooling: Any) -> Tensor:
    words = model.eval().get_input_embeddings()(IDS)
    return encode(model, MASK, Representation(pooling), inputs_embeds=words)


QUICK = ("albert", "bert", "gemma2", "modernbert", "xlm")


@pytest.mark.parametrize(
    "kind",
    # LayoutLM is not loaded: it does not run without its pooler
    [
        pytest.param(kind, marks=[] if kind in QUICK else [pytest.mark.slow])
        for kind in sorted(KNOWN.keys() - {"layoutlm"})
    ],
)
def test_the_kept_layers_of_every_family_compute_what_they_did(kind: str, tmp_path: Path) -> None:
    folder = str(write_encoder(tmp_path, lambda _: small_config(kind), WORDS))
    whole, kept = (load_encoder(folder, None, kept=count).model.eval() for count in (None, 1))
    assert int(kept.config.num_hidden_layers) == 1
    state = whole.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in kept.state_dict().items())
    with torch.no_grad():
        inner, outer = (
            model(input_ids=IDS, attention_mask=MASK, output_hidden_states=True)
            for model in (whole, kept)
        )
    assert len(outer.hidden_states) == 2
    # a family with a normalisation after its last layer has it here too
    norm = next(
        (part for name, part in whole.named_children() if name in ("norm", "ln_f", "final_norm")),
        lambda hidden: hidden,
    )
    if kind not in ("roberta-prelayernorm", "megatron-bert", "xlm-roberta-xl"):
        expected = norm(inner.hidden_states[1]).detach()
        assert torch.allclose(outer.last_hidden_state, expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean", "first-last", "last2"])
def test_the_fast_forward_pass_agrees_with_that_of_transformers(pooling: Any) -> None:
    model: Any = load_encoder("builtin", None, kept=1).model
    with torch.no_grad():
        hidden = model.eval()(input_ids=IDS, attention_mask=MASK, output_hidden_states=True)
    first, last = hidden.hidden_states
    mean = {"mean": last, "first-last": last, "last2": (first + last) / 2}
    expected = last[:, 0] if pooling == "cls" else mean[pooling].mean(dim=1)
    assert torch.allclose(vectors(model, pooling), expected, atol=1e-4)
    if pooling == "cls":
        with torch.no_grad():
            assert torch.allclose(first_tokens_of_ids(model, IDS, MASK), expected, atol=1e-4)


def test_loading_draws_no_random_number() -> None:
    state = torch.get_rng_state()
    load_encoder("builtin", 0.1, kept=1)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("count", [3, 0])
def test_a_number_that_the_encoder_does_not_have_is_refused(count: int) -> None:
    with pytest.raises(MtdlabError, match=f"encoder_layers {count}: it has 2 layers; choose 1 to"):
        load_saved("builtin", encoder_layers=count)


def test_a_trained_model_is_saved_with_its_layers(
    settings_of: Settings, tiny_encoder: Path, tmp_path: Path
) -> None:
    settings = settings_of(steps=6, evaluate_every=3, encoder_layers=1, pooling="mean")
    inputs = load_inputs(settings)
    check_resume(settings, inputs)
    outcome = train(settings, inputs, lambda *_: None)
    save_model(tmp_path / "model", settings, inputs, outcome, {})
    run = json.loads((tmp_path / "model" / "mtdlab" / "run.json").read_text())
    assert run["settings"]["encoder_layers"] == 1
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    whole = json.loads((tiny_encoder / "config.json").read_text())
    assert (config["num_hidden_layers"], whole["num_hidden_layers"]) == (1, 2)
    theirs = AutoModel.from_pretrained(tmp_path / "model")
    ours = load_saved(str(tmp_path / "model"), precision="float32")
    assert torch.allclose(vectors(theirs, "mean"), vectors(ours.encoder.model, "mean"), atol=1e-5)


def test_evaluate_says_how_many_layers_and_names_them_in_mtebs_tree(tmp_path: Path) -> None:
    printed = CliRunner().invoke(
        app, ["evaluate", "builtin", "--encoder-layers", "1", "--mteb", str(tmp_path)]
    )
    assert printed.exit_code == 0, printed.output
    assert "builtin, layers 1 to 1, cls pooling" in printed.output
    [model] = (tmp_path / "results").iterdir()
    assert model.name == "mtdlab__builtin-layers-1-to-1"
    with pytest.raises(MtdlabError, match=r"word vectors have no .*--encoder-layers"):
        evaluate("vectors:words.txt", encoder_layers=1)
