"""Losses of sentence-transformers by their trainer, beside mtdlab's own methods and by hand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import nn

from mtdlab.api.given import Given
from mtdlab.config.method_study import MethodSpec
from mtdlab.errors import MtdlabError
from mtdlab.methods import registry
from mtdlab.methods.losses import info_nce
from mtdlab.methods.simcse import SimCSE
from mtdlab.settings import TrainerSettings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import Outcome, start, train
from mtdlab.trial.environment import environment_of
from tests.conftest import Written

pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")

Settings = Callable[..., TrainerSettings]
NAME = "sentence-transformers"
CACHED = "CachedMultipleNegativesRankingLoss"


@pytest.fixture
def theirs(settings_of: Settings) -> Settings:
    """Settings of a short run by their trainer, but for what is given."""

    def settings(**changed: Any) -> TrainerSettings:
        # the vectors of the tiny encoder's [CLS] are almost equal
        short = {"method": NAME, "pooling": "mean", "steps": 6, "evaluate_every": 3}
        return settings_of(**short | changed)

    return settings


def run(settings: TrainerSettings) -> Outcome:
    return train(settings, load_inputs(settings))


def assert_same(first: Outcome, second: Outcome) -> None:
    """Both runs have the same losses, weights and scores, to the precision of float32."""
    np.testing.assert_allclose(first.curve["loss"], second.curve["loss"], rtol=1e-3, atol=1e-4)
    # two cosines that are almost equal may change places
    np.testing.assert_allclose(first.curve["score"], second.curve["score"], atol=0.2)
    for name, weights in first.weights.items():
        torch.testing.assert_close(weights, second.weights[name], rtol=1e-3, atol=1e-4)


class Headless(SimCSE):
    """SimCSE as their loss has it: without a head in training."""

    name = "headless"

    def __init__(self, encoder: Any, settings: Any, device: Any) -> None:
        super().__init__(encoder, settings, device)
        self.branch.pooler = nn.Identity()  # type: ignore[assignment]
        self.branch.activation = nn.Identity()

    def use_pooler(self, pooler: nn.Module | None) -> None:
        """It has none."""


@pytest.mark.parametrize(
    "changed",
    [
        {"warmup_steps": 3, "temperature": 0.1, "weight_decay": 0.1},
        {
            "max_gradient_norm": 0.5,
            "loss_weight": 3.0,
            "weight_decay": 0.1,
            "weight_decay_exceptions": "biases-and-norms",
            "adam_formula": "transformers",
        },
    ],
    ids=["schedule", "gradients"],
)
def test_their_loss_of_a_sentence_with_itself_is_simcse(
    theirs: Settings, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    monkeypatch.setitem(registry._imported, Headless.name, Headless)
    values = {"dropout": 0.0, "steps": 8, "select_on": "last", **changed}
    ours = run(theirs(**values, method=Headless.name))
    assert np.ptp(ours.curve["loss"]) > 0.01
    assert_same(ours, run(theirs(**values)))


def test_a_cached_loss_is_the_loss(theirs: Settings) -> None:
    in_parts = {"loss": CACHED, "loss_arguments": {"mini_batch_size": 3}}
    assert_same(run(theirs(dropout=0.0)), run(theirs(dropout=0.0, **in_parts)))


@pytest.mark.parametrize("is_fast", [pytest.param(True, marks=pytest.mark.slow), False])
def test_a_cached_loss_repeats_the_dropout_of_its_first_pass(
    theirs: Settings, monkeypatch: pytest.MonkeyPatch, is_fast: bool
) -> None:
    if not is_fast:
        monkeypatch.setattr("mtdlab.encoders.pooling.is_fast", lambda _: False)
    plain = run(theirs(dropout=0.3))
    assert_same(plain, run(theirs(dropout=0.3, loss=CACHED)))
    assert abs(plain.curve["loss"] - run(theirs(dropout=0.0)).curve["loss"]).max() > 0.01


def test_the_views_are_the_texts_of_pairs(theirs: Settings, tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("".join(f"a dog {n} runs\tthe cat {n}\n" for n in range(20)))
    settings = theirs(corpus=f"pairs:{file}", dropout=0.0, temperature=0.2)
    state = start(settings, load_inputs(settings))
    views = next(state.batches)
    first, second = (
        state.method.vectors(
            state.method.encoder, state.method.encoder.get_input_embeddings()(ids), mask
        )
        for ids, mask in views
    )
    assert not torch.allclose(first, second)
    expected = info_nce(first, second, None, 0.2)
    torch.testing.assert_close(state.method(0, views).loss, expected)


def test_a_guide_is_read_and_neither_trained_nor_saved(theirs: Settings) -> None:
    guided = theirs(loss="GISTEmbedLoss", loss_arguments={"guide": "builtin", "margin": 0.1})
    inputs = load_inputs(guided)
    state = start(guided, inputs)
    guide = state.method._theirs[1].guide
    before = {name: value.clone() for name, value in guide.state_dict().items()}
    outcome = train(guided, inputs, state=state)
    assert np.isfinite(outcome.curve["loss"]).all()
    torch.testing.assert_close(dict(guide.state_dict()), before, rtol=0, atol=0)
    sizes = [
        sum(
            value.numel()
            for value in start(settings, load_inputs(settings)).method.state_dict().values()
        )
        for settings in (guided, theirs())
    ]
    assert sizes[0] == sizes[1]


def test_nothing_is_printed_or_left_behind(
    theirs: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    settings = theirs(
        loss="MatryoshkaLoss",
        loss_arguments={"loss": CACHED, "matryoshka_dims": [8], "mini_batch_size": 4},
    )
    monkeypatch.chdir(tmp_path)
    run(settings)
    assert "".join(capfd.readouterr()) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"loss": "MultipleNegativeRankingLoss"}, "did you mean MultipleNegativesRankingLoss?"),
        ({"loss_arguments": {"margin": 1}}, "has no argument 'margin'; choose from directions"),
        ({"loss": "GISTEmbedLoss"}, "GISTEmbedLoss needs loss_arguments with guide"),
        (
            {"loss": "GISTEmbedLoss", "loss_arguments": {"guide": "nowhere/at-all"}},
            "guide nowhere/at-all: neither a folder here nor",
        ),
        ({"loss_arguments": {"similarity_fct": "dot"}}, "'dot' is no function of sentence_trans"),
        ({"loss_arguments": {"directions": ["up"]}}, "cannot be made: ValueError: Invalid direc"),
        ({"loss": CACHED, "loss_arguments": {"mini_batch_size": 0}}, "correct loss_arguments"),
        ({"loss": "CosineSimilarityLoss"}, "cannot be computed of pairs of texts without labels"),
        ({"loss": "TripletLoss"}, "without labels .*expected 3, got 2.*; correct"),
        ({"loss": "ContrastiveTensionLoss"}, "trains weights beside those of the encoder"),
        (
            {"loss": "AdaptiveLayerLoss", "loss_arguments": {"loss": CACHED}},
            "AdaptiveLayerLoss reads the layers of an encoder",
        ),
    ],
)
def test_a_loss_that_does_not_fit_is_refused_before_a_run(
    theirs: Settings, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(MtdlabError, match=message) as error:
        load_inputs(theirs(**changed))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"loss_arguments": "mini_batch_size"}, "write the arguments of the loss by name"),
        ({"loss_arguments": {"margin": float("nan")}}, "write the arguments of the loss by name"),
        ({"loss_arguments": {"scale": 10}}, "write the temperature, 1 / scale, as trainer.temp"),
        ({"loss_arguments": {"temperature": 0.1}}, "give the loss a scale or a temperature; take"),
        ({"batch_size": 1}, "leaves no negatives"),
        ({"augmentation": "token-cutoff:0.1"}, "token-cutoff changes embeddings"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    theirs: Settings, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        theirs(**changed)


def test_arguments_are_the_same_by_name_and_as_text(theirs: Settings) -> None:
    by_text = theirs(loss_arguments="{mini_batch_size: 4}")
    assert by_text == theirs(loss_arguments={"mini_batch_size": 4})
    assert by_text.arguments == {"mini_batch_size": 4}


def test_a_missing_library_is_one_sentence(
    theirs: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtdlab.errors.find_spec", lambda _: None)
    message = (
        r"method sentence-transformers needs the package sentence-transformers; install the extra: "
        r"pip install 'mtdlab\[sentence-transformers\]'"
    )
    with pytest.raises(MtdlabError, match=message):
        load_inputs(theirs())


def test_the_version_of_the_library_is_recorded(theirs: Settings, settings_of: Settings) -> None:
    versions = [
        environment_of(settings, load_inputs(settings)).versions
        for settings in (theirs(), settings_of(method="simcse"))
    ]
    assert NAME in versions[0]
    assert NAME not in versions[1]


STUDY = """
study: losses
metric: sts_test
trainer: {steps: 40, evaluate_every: 20, learning_rate: 1e-3}
search:
  loss: [MultipleNegativesRankingLoss, CachedMultipleNegativesRankingLoss]
  temperature: [0.05, 0.1]
seeds: [0, 1]
"""


def test_objective_takes_the_name_of_the_method(tmp_path: Path) -> None:
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    by_option = Given(file, objective=NAME)
    spec = by_option.read()
    assert spec.methods == (NAME,)
    assert len(spec.search_trials()) == 8
    assert spec.identity() == Given(file, set_=[f"trainer.method={NAME}"]).read().identity()
    assert by_option.invocation().options["objective"] == (NAME,)
    values = {"study": "s", "metric": "sts_test", "search": {"temperature": [0.1]}, "seeds": [0]}
    assert Given(values, objective=NAME).read().methods == (NAME,)
    message = "--objective simcse: mtdlab's trainer trains this method; leave the option out"
    with pytest.raises(MtdlabError, match=message):
        Given(file, objective="simcse").read()
    with pytest.raises(MtdlabError, match=r"write MODULE:FUNCTION, .*, or sentence-transformers"):
        Given(file, objective="sentence-transformer").read()


def test_their_loss_is_searched_beside_a_momentum_method(written: Written) -> None:
    text = """
        study: both
        metric: sts_test
        trainer: {loss_arguments: {mini_batch_size: 8}, loss: CachedMultipleNegativesRankingLoss}
        search: {method: [mocose, sentence-transformers], ema_decay: [0.5, 0.9]}
        seeds: [0]
    """
    spec = written(text)
    assert isinstance(spec, MethodSpec)
    trials = [spec.settings(unit.parameters or {}, unit.seed) for unit in spec.search_trials()]
    assert [trial.mtd is None for trial in trials] == [False, False, True]
    assert trials[-1].model_dump()["loss_arguments"] == '{"mini_batch_size": 8}'


def test_a_searched_temperature_needs_a_loss_that_has_one(written: Written) -> None:
    written(STUDY, f"trainer.method={NAME}")
    with pytest.raises(MtdlabError, match="temperature: has no effect with loss: MegaBatchMarg"):
        written(STUDY, f"trainer.method={NAME}", "search.loss=[MegaBatchMarginLoss]")
