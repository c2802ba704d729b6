"""Families that are declared, and families without dropout, checked before a study is created."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import Lfm2Config, PhiConfig

from mtdlab.config import StudySpec, TrainerSettings, make_settings, read_study
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.sweep import run as runs
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.encoders.random_encoders import ROTARY, write_encoder

DECLARED = ["attention_dropout", "embd_pdrop", "resid_pdrop"]
SHORT: dict[str, Any] = {"steps": 4, "evaluate_every": 2, "pooling": "mean"}
Write = Callable[..., StudySpec]


@pytest.fixture(scope="module")
def phi(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of a family that is not known, with three dropout rates."""
    folder = tmp_path_factory.mktemp("phi")
    sizes = {**ROTARY, "num_key_value_heads": 2}
    return write_encoder(folder, lambda size: PhiConfig(vocab_size=size, **sizes), WORDS)


@pytest.fixture(scope="module")
def lfm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of a family without dropout."""
    folder, layers = tmp_path_factory.mktemp("lfm"), ["conv", "full_attention"]
    return write_encoder(
        folder, lambda size: Lfm2Config(vocab_size=size, layer_types=layers, **ROTARY), WORDS
    )


def run(settings: TrainerSettings) -> None:
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    assert np.isfinite(outcome.curve["loss"]).all()


def test_a_declared_family_is_trained(phi: Path, settings_of: Settings) -> None:
    with pytest.raises(
        MtdlabError, match=r"family phi are not known; .*: \[attention_dropout, embd_pdrop, resid_"
    ):
        load_encoder(str(phi), 0.3)
    encoder = load_encoder(str(phi), 0.3, ",".join(DECLARED))
    rates = [getattr(encoder.model.config, field) for field in DECLARED]
    assert rates == [0.3] * 3
    assert encoder.traits.dropout_fields == tuple(DECLARED)
    settings = settings_of(
        method="simcse", encoder=str(phi), dropout_fields=DECLARED[::-1], **SHORT
    )
    assert settings.dropout_fields == ",".join(DECLARED)
    run(settings)


def test_an_encoder_is_evaluated_whatever_its_family(phi: Path) -> None:
    encoder = load_encoder(str(phi), None)
    assert encoder.traits.dropout_fields is None
    assert encoder.traits.has_dropout


@pytest.mark.parametrize("text", ["hidden dropout", "a,1b"])
def test_what_is_no_field_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no field of a configuration; write a list of names"):
        make_settings(method="simcse", dropout_fields=text)


DIFFERENT = (
    {"method": "simcse", "augmentation": "token-cutoff:0.2"},
    {"method": "mocose", "augmentation": "typos:0.2", "queue_size": 16, "initial_queue_size": 4},
    {"method": "sncse", "prompt": "a {sentence} b", "second_prompt": "the {sentence} b"},
    {"method": "esimcse"},
    {"method": "consert", "first_perturbation": "position-shuffle"},
    {"method": "contriever", "queue_size": 16, "initial_queue_size": 4},
    {"method": "hicl", "augmentation": "repetition:0.2", "segment_length": 8},
)
EQUAL = (
    {"method": "simcse"},
    {"method": "mocose", "queue_size": 16, "initial_queue_size": 4, "fgsm_epsilon": 1e-3},
    {"method": "esimcse", "repetition_rate": 0.0},
    {"method": "hicl", "segment_length": 8},
)


@pytest.mark.parametrize("changed", DIFFERENT, ids=lambda each: str(each["method"]))
def test_an_encoder_without_dropout_is_trained_where_views_differ(
    lfm: Path, settings_of: Settings, changed: dict[str, Any]
) -> None:
    run(settings_of(encoder=str(lfm), **{**SHORT, **changed}))


@pytest.mark.parametrize("changed", EQUAL, ids=lambda each: str(each["method"]))
def test_an_encoder_without_dropout_is_refused_where_views_are_equal(
    lfm: Path, settings_of: Settings, changed: dict[str, Any]
) -> None:
    with pytest.raises(
        MtdlabError, match=r"the family lfm2 has no dropout, .* an equal view .* token-cutoff:0.1"
    ):
        load_inputs(settings_of(encoder=str(lfm), **{**SHORT, **changed}))


def test_an_unknown_family_may_be_declared_to_have_no_dropout(
    phi: Path, settings_of: Settings
) -> None:
    values = {"method": "simcse", "encoder": str(phi), "dropout_fields": "none", **SHORT}
    run(settings_of(**values, augmentation="feature-cutoff:0.2"))
    with pytest.raises(MtdlabError, match="the family phi has no dropout"):
        load_inputs(settings_of(**values))


@pytest.fixture
def write(
    tmp_path: Path, tiny_corpus: Path, tiny_pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> Write:
    monkeypatch.chdir(tmp_path)
    texts = {"corpus": tiny_corpus, "evaluation": tiny_pairs, "max_length": 16}
    machine = {"batch_size": 8, "device": "cpu", "precision": "float32"}

    def study(search: str, rest: str = "", **changed: object) -> StudySpec:
        values = {**SHORT, **texts, **machine, **changed}
        lines = "\n".join(f"  {name}: {value}" for name, value in values.items() if value)
        path = tmp_path / "a.yaml"
        path.write_text(f"study: a\ntrainer:\n{lines}\nsearch: {search}\n{rest}")
        return read_study(path)

    return study


PERTURBED = "{first_perturbation: [position-shuffle, 'token-cutoff:0.2']}"


@pytest.mark.parametrize(
    ("search", "changed", "message"),
    [
        ("{pooling: [mean, cls]}", {"method": "simcse", "pooling": None}, "is causal"),
        (PERTURBED, {"method": "consert"}, "qwen3 has no embedding block .* or another pert"),
        ("{ema_decay: [0.5, 0.9]}", {"pooling": "cls", "queue_size": 16}, "is causal"),
    ],
)
@pytest.mark.parametrize("rest", ["", "sampler: random\ntrials: 2\n"], ids=["grid", "random"])
def test_what_cannot_be_trained_is_refused_before_the_study_is_created(
    write: Write,
    tmp_path: Path,
    decoder: Path,
    search: str,
    changed: dict[str, Any],
    message: str,
    rest: str,
) -> None:
    spec = write(search, rest, encoder=decoder, **changed)
    with pytest.raises(MtdlabError, match=message):
        runs.sweep(spec, f"sqlite:///{tmp_path / 'a.db'}", jobs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_searched_values_that_fit_are_accepted(
    write: Write, tmp_path: Path, decoder: Path, tiny_encoder: Path
) -> None:
    """The default pooling, which does not fit the decoder, is that of no trial."""
    search = f"{{pooling: [mean, last-token], encoder: ['{decoder}', '{tiny_encoder}']}}"
    spec = write(search, "seeds: [0]\n", method="simcse", pooling=None)
    done = runs.sweep(spec, f"sqlite:///{tmp_path / 'a.db'}", jobs=1)
    assert done is not None
