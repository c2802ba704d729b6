"""Families of encoders: their dropout fields, families that are declared, short runs of some."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    DistilBertConfig,
    Lfm2Config,
    MPNetConfig,
    PhiConfig,
    RobertaConfig,
)

from mtdlab.config.reader import read_study
from mtdlab.config.study import StudySpec
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.traits import (
    FAMILIES,
    check_kind,
    check_pooling,
    dropout_fields,
    read_causality,
)
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.sweep import run as runs
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.conftest import WORDS, Settings
from tests.encoders.random_encoders import POSITIONS, ROTARY, SIZE, small_config, write_encoder

MORE = {"max_position_embeddings": POSITIONS + 2}
CONFIGS: dict[str, Callable[[int], Any]] = {
    "bert": lambda size: BertConfig(vocab_size=size, **SIZE),
    "roberta": lambda size: RobertaConfig(vocab_size=size, **SIZE | MORE),
    "distilbert": lambda size: DistilBertConfig(
        vocab_size=size,
        max_position_embeddings=POSITIONS,
        dim=16,
        hidden_dim=32,
        n_layers=2,
        n_heads=2,
    ),
    "mpnet": lambda size: MPNetConfig(vocab_size=size, **SIZE | MORE),
}


@pytest.fixture(scope="module", params=CONFIGS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_encoder(tmp_path_factory.mktemp(request.param), CONFIGS[request.param], WORDS)


def test_dropout_and_positions(folder: Path) -> None:
    encoder = load_encoder(str(folder), 0.3)
    rates = {module.p for module in encoder.model.modules() if isinstance(module, nn.Dropout)}
    assert rates == {0.3}
    assert (encoder.pooler is None) == (encoder.model.config.model_type == "distilbert")
    assert encoder.token_limit(512) == POSITIONS
    assert encoder.token_limit(7) == 7
    ids = torch.full((1, POSITIONS), 6)
    assert encoder.model(input_ids=ids).last_hidden_state.shape == (1, POSITIONS, 16)


POOLINGS = [
    pytest.param(pooling, marks=[] if pooling == "mean" else [pytest.mark.slow])
    for pooling in get_args(Pooling)
]


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_short_run(folder: Path, settings_of: Settings, pooling: Pooling) -> None:
    prompt = "the {sentence} {mask}" if pooling == "mask" else ""
    settings = settings_of(
        encoder=str(folder), steps=3, evaluate_every=3, pooling=pooling, prompt=prompt
    )
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    assert np.isfinite(outcome.curve["loss"]).all()
    assert outcome.after.test != outcome.before.test
    assert np.isfinite(outcome.after.test.score)
    words = [name for name in outcome.weights if name.endswith("word_embeddings.weight")]
    start = load_encoder(str(folder), 0.1).model.state_dict()
    assert not torch.equal(outcome.weights[words[0]], start[words[0]])


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
    assert encoder.dropout_fields == tuple(DECLARED)
    settings = settings_of(
        method="simcse", encoder=str(phi), dropout_fields=DECLARED[::-1], **SHORT
    )
    assert settings.dropout_fields == ",".join(DECLARED)
    run(settings)


def test_an_encoder_is_evaluated_whatever_its_family(phi: Path) -> None:
    encoder = load_encoder(str(phi), None)
    assert encoder.dropout_fields is None


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


@pytest.mark.parametrize("changed", DIFFERENT, ids=lambda settings: str(settings["method"]))
def test_an_encoder_without_dropout_is_trained_where_views_differ(
    lfm: Path, settings_of: Settings, changed: dict[str, Any]
) -> None:
    run(settings_of(encoder=str(lfm), **{**SHORT, **changed}))


@pytest.mark.parametrize("changed", EQUAL, ids=lambda settings: str(settings["method"]))
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
        runs.sweep(spec, f"sqlite:///{tmp_path / 'a.db'}", runs.Execution(jobs=1))
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]


def test_searched_values_that_fit_are_accepted(
    write: Write, tmp_path: Path, decoder: Path, tiny_encoder: Path
) -> None:
    """The default pooling, which does not fit the decoder, is that of no trial."""
    search = f"{{pooling: [mean, last-token], encoder: ['{decoder}', '{tiny_encoder}']}}"
    spec = write(search, "seeds: [0]\n", method="simcse", pooling=None)
    done = runs.sweep(spec, f"sqlite:///{tmp_path / 'a.db'}", runs.Execution(jobs=1))
    assert done is not None


IDS = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12] * 2])
CAUSAL = """
gemma gemma2 gemma3_text gpt2 granite llama mistral modernbert-decoder olmo2 qwen2 qwen3 smollm3
""".split()  # noqa: SIM905


def model_of(kind: str, **rates: float) -> Any:
    config = small_config(kind)
    for field, rate in rates.items():
        setattr(config, field, rate)
    torch.manual_seed(0)
    return AutoModel.from_config(config)


def vectors(model: Any) -> Tensor:
    with torch.no_grad():
        hidden: Tensor = model(input_ids=IDS, attention_mask=IDS.clamp(max=1)).last_hidden_state
    return hidden


@pytest.mark.parametrize("kind", FAMILIES)
def test_each_field_alone_makes_two_passes_differ(kind: str) -> None:
    names = FAMILIES[kind]
    for field in names:
        rates = dict.fromkeys(names, 0.0) | {field: 0.37}
        model = model_of(kind, **rates)
        read_causality(kind, model, names, 0.37)
        model.train()
        assert not torch.equal(vectors(model), vectors(model)), field
        model.eval()
        assert torch.equal(vectors(model), vectors(model)), field
    model = model_of(kind, **dict.fromkeys(names, 0.0)).train()
    assert torch.equal(vectors(model), vectors(model))


@pytest.mark.parametrize("kind", FAMILIES)
def test_causal_families_are_found_and_word_embeddings_replace_ids(kind: str) -> None:
    model = model_of(kind).eval()
    assert read_causality(kind, model, FAMILIES[kind], None) == (kind in CAUSAL)
    assert not model.training
    words = model.get_input_embeddings()(IDS)
    with torch.no_grad():
        hidden = model(inputs_embeds=words, attention_mask=IDS.clamp(max=1)).last_hidden_state
    assert torch.allclose(hidden, vectors(model), atol=1e-5)


def test_a_decoder_that_sees_both_directions_is_not_causal() -> None:
    config = small_config("gemma3_text")
    config.use_bidirectional_attention = True
    model = AutoModel.from_config(config)
    assert not read_causality("a", model, None, None)


def test_cls_pooling_of_a_causal_encoder_is_refused() -> None:
    causal = read_causality("a", model_of("qwen3"), ("attention_dropout",), 0.0)
    with pytest.raises(MtdlabError, match=r"encoder a is causal, .* choose pooling last-token or"):
        check_pooling("a", Representation("cls"), causal=causal)
    for pooling in ("mean", "last-token"):
        check_pooling("a", Representation(pooling), causal=causal)


def test_a_rate_that_no_module_has_is_refused() -> None:
    model = model_of("qwen3", attention_dropout=0.2)
    with pytest.raises(MtdlabError, match=r"no module of the family qwen3 has the dropout rate"):
        read_causality("a", model, ("classifier_dropout",), 0.1)


def test_embeddings_that_do_not_give_the_output_of_their_ids_are_refused() -> None:
    model = model_of("qwen3")
    forward = model.forward

    def scaling(attention_mask: Tensor, input_ids: Tensor | None = None, **inputs: Any) -> Any:
        if input_ids is not None:
            # not where only the embeddings are asked for, as in a model that scales them later
            inputs = {"inputs_embeds": 4 * model.get_input_embeddings()(input_ids)}
        return forward(attention_mask=attention_mask, **inputs)

    model.forward = scaling
    with pytest.raises(MtdlabError, match="gives other vectors for word embeddings than for their"):
        read_causality("a", model, None, None)


CONFIG = {"model_type": "newbert", "resid_drop": 0.1, "drop_rate": 0, "dropless": True, "width": 3}


def test_an_unknown_family_is_refused_with_what_to_declare() -> None:
    with pytest.raises(
        MtdlabError,
        match=r"family newbert are not known; .* trainer\.dropout_fields: \[drop_rate, resid_drop\]"
        ", or none; or choose BERT",
    ):
        dropout_fields("a", CONFIG, "")
    assert dropout_fields("a", CONFIG, "resid_drop") == ("resid_drop",)
    assert dropout_fields("a", CONFIG, "none") == ()
    with pytest.raises(MtdlabError, match=r"newbert has no field hidden_dropout .* drop_rate, res"):
        dropout_fields("a", CONFIG, "hidden_dropout,resid_drop")


def test_a_family_without_a_field_has_no_dropout() -> None:
    assert dropout_fields("a", {"model_type": "newbert", "width": 3}, "") == ()


def test_a_declaration_for_a_known_family_must_be_the_known_one() -> None:
    config = {"model_type": "qwen3", "attention_dropout": 0.0, "other_dropout": 0.0}
    assert dropout_fields("a", config, "attention_dropout") == ("attention_dropout",)
    with pytest.raises(MtdlabError, match=r"qwen3 are known \(attention_dropout\); remove"):
        dropout_fields("a", config, "other_dropout")


@pytest.mark.parametrize(
    ("config", "width", "message"),
    [
        (
            {"model_type": "bart", "is_encoder_decoder": True},
            True,
            "'bart' .* a decoder beside",
        ),
        ({"model_type": "gemma3"}, False, "'gemma3' .* no hidden_size, .* the text model alone"),
    ],
)
def test_what_is_no_text_encoder_is_refused(
    config: dict[str, Any], width: bool, message: str
) -> None:
    with pytest.raises(MtdlabError, match=message):
        check_kind("a", config, has_width=width)
