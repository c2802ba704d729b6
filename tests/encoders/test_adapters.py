"""LoRA: frozen weights are shared, adapters are trained, averaged, saved and merged on export."""

import copy
import re
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

import mtdlab
from mtdlab.cost.measure import measure
from mtdlab.cost.sample import take_sample
from mtdlab.encoders.adapters import add_adapters, copy_to_train, load_own_state, own_state
from mtdlab.encoders.fast import is_fast
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.pooling import encode
from mtdlab.encoders.traits import describe_encoder
from mtdlab.errors import MtdlabError
from mtdlab.settings import Representation
from mtdlab.testing import check_resume, check_state_round_trip
from mtdlab.training.export import save_model
from mtdlab.training.inputs import check_encoder, load_inputs
from mtdlab.training.loop import start, train
from mtdlab.trial.signals import StopRequest
from tests.conftest import Settings

# found, not imported: that takes seconds, in each process that collects the tests
pytestmark = pytest.mark.skipif(find_spec("peft") is None, reason="the extra peft is not installed")


@pytest.fixture(params=["decoder", "tiny_encoder"])
def folder(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


long_on_the_decoder = pytest.mark.parametrize(
    "folder", [pytest.param("decoder", marks=pytest.mark.slow), "tiny_encoder"], indirect=True
)


@pytest.fixture
def run_of(folder: Path, settings_of: Settings) -> Settings:
    values = {"learning_rate": 1e-2, "pooling": "mean", "lora_rank": 4}
    return partial(settings_of, encoder=str(folder), steps=6, evaluate_every=3, **values)


def adapters(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    return {name: weights for name, weights in module.named_parameters() if ".lora_" in name}


def test_adapters_change_no_vector_before_training(folder: Path, run_of: Settings) -> None:
    plain, adapted = (load_encoder(str(folder), 0.1).model.eval() for _ in range(2))
    state = torch.get_rng_state()
    add_adapters(adapted, run_of())
    assert torch.equal(torch.get_rng_state(), state)
    assert not is_fast(adapted)
    ids, mask = torch.arange(5, 25).view(2, 10), torch.ones(2, 10, dtype=torch.long)
    words = plain.get_input_embeddings()(ids)
    with torch.no_grad():
        one, two = (
            encode(model, mask, Representation("mean"), inputs_embeds=words)
            for model in (plain, adapted)
        )
    assert torch.allclose(one, two, atol=1e-5)
    trained = {name for name, weights in adapted.named_parameters() if weights.requires_grad}
    assert trained == adapters(adapted).keys()
    assert "adapters of " in describe_encoder(adapted, ())


def test_the_sum_of_an_adapted_layer_is_that_of_the_definition(
    folder: Path, run_of: Settings
) -> None:
    model = load_encoder(str(folder), 0.1).model
    add_adapters(model, run_of(lora_alpha=12))
    layer: Any = next(module for module in model.modules() if hasattr(module, "lora_A"))
    first, second = (getattr(layer, name)["default"].weight for name in ("lora_A", "lora_B"))
    torch.nn.init.normal_(second)
    rows = torch.randn(3, first.shape[1])
    expected = layer.get_base_layer()(rows) + 12 / 4 * rows @ first.T @ second.T
    assert torch.allclose(layer(rows), expected, atol=1e-5)


def test_the_frozen_weights_exist_once(run_of: Settings) -> None:
    settings = run_of(ema_decay=0.5, steps=1, evaluate_every=1)
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    method: Any = state.method
    models = [inputs.encoder.model, method.online.encoder, method.target.encoder]
    named = [dict(model.named_parameters()) for model in models]
    for name in named[0].keys() - adapters(models[0]).keys():
        assert named[0][name] is named[1][name] is named[2][name], name
        assert not named[0][name].requires_grad
    for name in adapters(models[0]):
        assert len({id(weights[name]) for weights in named}) == 3, name
    heads = [weights for name, weights in method.named_parameters() if "encoder" not in name]
    trained = {id(weights) for weights in method.trained()}
    assert trained >= {id(weights) for weights in adapters(models[1]).values()}
    assert len(trained) <= len(adapters(models[1])) + len(heads)


def test_the_average_is_over_the_adapters(run_of: Settings) -> None:
    settings = run_of(ema_decay=0.75, steps=1, evaluate_every=1)
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    method: Any = state.method
    before = copy.deepcopy(adapters(method.target.encoder))
    frozen = {name: weights.clone() for name, weights in inputs.encoder.model.state_dict().items()}
    train(settings, inputs, lambda *_: None, state)
    after, online = adapters(method.target.encoder), adapters(method.online.encoder)
    for name, value in after.items():
        assert torch.allclose(value, 0.75 * before[name] + 0.25 * online[name], atol=1e-6)
    assert any(not torch.equal(after[name], before[name]) for name in after)
    found = inputs.encoder.model.state_dict()
    assert all(torch.equal(found[name], value) for name, value in frozen.items())


@long_on_the_decoder
def test_a_state_has_the_adapters_alone_and_resumes(run_of: Settings) -> None:
    settings = run_of(ema_decay=0.5, fgsm_epsilon=1e-3)
    inputs = load_inputs(settings)
    method = start(settings, inputs).method
    names = [name for name in own_state(method) if "encoder." in name]
    assert names
    assert all(".lora_" in name for name in names)
    with pytest.raises(RuntimeError, match="missing or unexpected in a state: "):
        load_own_state(method, {"online.other": torch.zeros(1)})
    check_state_round_trip(settings, inputs)
    check_resume(settings, inputs)


@long_on_the_decoder
@pytest.mark.parametrize("gradient", ["previous", "current"])
def test_fgsm_perturbs_frozen_word_embeddings(run_of: Settings, gradient: str) -> None:
    settings = run_of(fgsm_epsilon=1e-2, fgsm_gradient=gradient)
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    assert outcome.curve["fgsm_changed"][1:].min() > 0


def test_seeds_draw_other_adapters(run_of: Settings) -> None:
    drawn = []
    for seed in (0, 0, 1):
        settings = run_of(method="simcse", seed=seed)
        drawn.append(own_state(start(settings, load_inputs(settings)).method.encoder))
    assert all(torch.equal(drawn[0][name], drawn[1][name]) for name in drawn[0])
    assert any(not torch.equal(drawn[0][name], drawn[2][name]) for name in drawn[0])


@pytest.mark.parametrize(
    "method",
    [
        "mocose",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("simcse", "esimcse", "contriever")
        ),
    ],
)
def test_an_exported_model_has_the_layers_of_its_family(
    folder: Path, run_of: Settings, tmp_path: Path, method: str
) -> None:
    queue = {"queue_size": 16, "initial_queue_size": 4} if method == "contriever" else {}
    settings = run_of(method=method, **queue)
    inputs = load_inputs(settings)
    outcome = train(settings, inputs, lambda *_: None)
    # the score is of ranks of a few pairs, which may stay as they are
    assert outcome.after.dev.uniformity != pytest.approx(outcome.before.dev.uniformity)
    before = {name: weights.clone() for name, weights in inputs.encoder.model.state_dict().items()}
    save_model(tmp_path / "best", settings, inputs, outcome, {})
    after = inputs.encoder.model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)

    model, report = AutoModel.from_pretrained(tmp_path / "best", output_loading_info=True)
    start = AutoModel.from_pretrained(folder).state_dict()
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert model.state_dict().keys() == start.keys()
    changed = [k for k, v in model.state_dict().items() if not torch.equal(v, start[k])]
    assert changed
    assert all(start[name].dim() == 2 for name in changed)
    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")
    texts = ["a dog runs", "the old man sleeps in the house", "birds"]
    theirs = library.SentenceTransformer(str(tmp_path / "best"), device="cpu").encode(texts)
    ours = mtdlab.load_encoder(str(tmp_path / "best"), device="cpu").encode(texts)
    assert np.allclose(theirs, ours, atol=1e-5)
    if method != "simcse":
        target = load_file(tmp_path / "best" / "mtdlab" / "target.safetensors")
        encoder = [name for name in target if "lora" not in name and "layers" in name]
        assert encoder == []


def test_a_copy_without_adapters_draws_nothing(folder: Path) -> None:
    model = load_encoder(str(folder), 0.1).model
    state = torch.get_rng_state()
    copied = copy_to_train(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert not {id(weights) for weights in copied.parameters()} & {
        id(weights) for weights in model.parameters()
    }


def test_layers_that_do_not_exist_are_refused(folder: Path, run_of: Settings) -> None:
    model = load_encoder(str(folder), 0.1).model
    with pytest.raises(MtdlabError, match=r"lora_targets nope: .*; choose all-linear, or among "):
        add_adapters(model, run_of(lora_targets=["nope"]))


def test_the_missing_package_is_named(
    folder: Path, run_of: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtdlab.errors.find_spec", lambda _: None)
    model = load_encoder(str(folder), 0.1).model
    add_adapters(model, run_of(lora_rank=0))
    encoder = load_encoder(str(folder), 0.1)
    for act in (lambda: add_adapters(model, run_of()), lambda: check_encoder(encoder, run_of())):
        with pytest.raises(MtdlabError, match=r"lora_rank 4 needs the package peft; install the"):
            act()


@long_on_the_decoder
def test_the_plan_counts_the_trained_weights(
    run_of: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints have the adapters, a saved model has all weights."""
    monkeypatch.setattr("mtdlab.cost.measure.STEADY_SECONDS", 0.0)
    settings = run_of()
    sample = take_sample([settings], tmp_path)
    measured = measure((), [settings.model_dump()], sample, StopRequest())
    parameters = list(load_inputs(settings).encoder.model.parameters())
    trained = [weights for weights in parameters if weights.requires_grad]
    assert measured.weights == 4 * sum(weights.numel() for weights in parameters)
    assert measured.trained == 4 * sum(weights.numel() for weights in trained)
    assert 0 < measured.trained < measured.weights / 2
    assert re.search(r"adapters of \d+ % of its parameters", measured.encoders[settings.encoder])
    assert settings.encoder_copies == 2
