"""What sentence-transformers' files declare of an encoder: applied as there, or refused by name."""

import json
import re
import shutil
from collections.abc import Callable
from logging import WARNING, getLogger
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from transformers import AutoModel, AutoTokenizer, BertConfig, XLNetConfig
from typer.testing import CliRunner

import mtdlab
from mtdlab.api.run import run_once
from mtdlab.cli import app
from mtdlab.config.reader import read_settings
from mtdlab.encoders.embed import MAX_LENGTH
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.evaluation.evaluate import as_fields, as_text, evaluate
from mtdlab.terminal import following_phases
from mtdlab.training.inputs import load_inputs, open_inputs
from tests.conftest import Settings
from tests.encoders.random_encoders import SIZE, write_encoder

TEXTS = ["the cat sat", "a dog", "the dog sat on the cat and the cat on the dog"]
Declaring = Callable[..., Path]


@pytest.fixture
def declaring(tiny_encoder: Path, tmp_path: Path) -> Declaring:
    """An encoder with files as sentence-transformers writes them: modules and fields by file."""

    def declare(
        *modules: str,
        pooling: dict[str, Any] | None = None,
        place: str = "1_Pooling",
        package: str = "sentence_transformers.models",
        **fields: dict[str, Any],
    ) -> Path:
        folder = tmp_path / "declaring"
        shutil.copytree(tiny_encoder, folder)
        kinds = {"Transformer": "", "Pooling": place}
        kinds |= {kind: f"{at}_{kind}" for at, kind in enumerate(modules, start=2)}
        listed = [
            {"idx": at, "name": str(at), "path": path, "type": f"{package}.{kind}"}
            for at, (kind, path) in enumerate(kinds.items())
        ]
        (folder / "modules.json").write_text(json.dumps(listed))
        (folder / place).mkdir(parents=True)
        size = {"word_embedding_dimension": AutoModel.from_pretrained(folder).config.hidden_size}
        declared = pooling or {"pooling_mode_mean_tokens": True}
        (folder / place / "config.json").write_text(json.dumps(size | declared))
        for file, values in fields.items():
            (folder / f"{file}.json").write_text(json.dumps(values))
        return folder

    return declare


def same_as_theirs(folder: Path, pooling: str | None = None) -> None:
    """The vectors of mtdlab are those of sentence-transformers, where it is installed."""
    theirs = pytest.importorskip("sentence_transformers").SentenceTransformer(
        str(folder), device="cpu"
    )
    expected = theirs.encode(TEXTS)
    ours = mtdlab.load_encoder(str(folder), pooling=pooling, device="cpu").encode(TEXTS)
    ours /= np.linalg.norm(ours, axis=1, keepdims=True)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert np.allclose(ours, expected, atol=1e-5)


def test_a_prompt_is_applied_in_evaluation_and_wanted_in_training(
    declaring: Declaring, settings_of: Settings
) -> None:
    prompts = {"prompts": {"q": "the dog "}, "default_prompt_name": "q"}
    folder = declaring(config_sentence_transformers=prompts)
    loaded = mtdlab.load_encoder(str(folder))
    assert loaded.representation.prompt == "the dog {sentence}"
    assert mtdlab.load_encoder(str(folder), pooling="cls").representation.prompt
    same_as_theirs(folder)
    with pytest.raises(MtdlabError, match=r"set trainer.prompt to 'the dog {sentence}', or take"):
        load_inputs(settings_of(encoder=str(folder)))
    load_inputs(settings_of(encoder=str(folder), prompt="the dog {sentence}"))


@pytest.mark.parametrize(
    ("prompts", "name"),
    [({}, "q"), ({"q": "{a}"}, "q"), ({"q": 1}, "q"), (["q"], "q"), ({"q": "a "}, ["q"])],
)
def test_a_prompt_that_is_not_there_is_named(declaring: Declaring, prompts: Any, name: Any) -> None:
    declared = {"prompts": prompts, "default_prompt_name": name}
    folder = declaring(config_sentence_transformers=declared)
    told = rf"its prompt {re.escape(repr(name))} .* correct default_prompt_name"
    with pytest.raises(MtdlabError, match=told):
        mtdlab.load_encoder(str(folder))


def test_a_text_is_read_up_to_the_declared_number_of_tokens(declaring: Declaring) -> None:
    folder = declaring("Normalize", sentence_bert_config={"max_seq_length": 5})
    same_as_theirs(folder)
    report = evaluate(str(folder), tasks="builtin")
    assert "mean pooling, up to 5 tokens, cpu" in as_text(report)[0]
    assert as_fields(report)["max_length"] == 5


def of_tokenizer(folder: Path, most: Any) -> Path:
    """The folder, whose tokenizer declares the most tokens."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": most}))
    return folder


@pytest.mark.parametrize(
    ("fields", "most", "read"),
    [
        ({}, 5, 5),
        ({"max_seq_length": None}, 5, 5),
        # that of the encoder's positions
        ({}, None, 64),
        ({}, 1e30, 64),
        ({}, 99, 64),
        # its own file is above the tokenizer's
        ({"max_seq_length": 7}, 5, 7),
        ({"max_seq_length": 5}, "12", 5),
    ],
)
def test_without_a_limit_of_its_own_that_of_the_tokenizer_is_taken(
    declaring: Declaring, fields: dict[str, Any], most: Any, read: int
) -> None:
    folder = of_tokenizer(declaring(sentence_bert_config=fields), most)
    assert mtdlab.load_encoder(str(folder)).max_length == read
    same_as_theirs(folder)


def test_the_limit_of_the_tokenizer_of_a_plain_folder_is_taken(
    tiny_encoder: Path, tmp_path: Path, settings_of: Settings
) -> None:
    folder = of_tokenizer(Path(shutil.copytree(tiny_encoder, tmp_path / "plain")), 5)
    assert mtdlab.load_encoder(str(folder)).max_length == 5
    same_as_theirs(folder, "mean")
    inputs = load_inputs(settings_of(encoder=str(folder)))
    assert inputs.tokens.lengths.max() == 5


def test_an_older_file_of_the_limit_is_read(declaring: Declaring) -> None:
    folder = declaring(**{"sentence_xlm-roberta_config": {"max_seq_length": 5}})
    assert mtdlab.load_encoder(str(folder)).max_length == 5
    same_as_theirs(folder)


@pytest.mark.parametrize("limit", ["12", 0, -1, True, 2, 12.0, [12]])
def test_a_limit_that_is_no_number_of_tokens_is_refused(declaring: Declaring, limit: Any) -> None:
    folder = declaring(sentence_bert_config={"max_seq_length": limit})
    told = re.escape(f"reads {limit!r} tokens of a text (max_seq_length in sentence_bert_config")
    with pytest.raises(MtdlabError, match=f"{told}.*write a whole number, at least 3, or null"):
        mtdlab.load_encoder(str(folder))
    (folder / "sentence_bert_config.json").unlink()
    of_tokenizer(folder, limit)
    with pytest.raises(MtdlabError, match=r"\(model_max_length in tokenizer_config\.json\)"):
        mtdlab.load_encoder(str(folder))


@pytest.mark.parametrize("pooling", ["mean", "first-last"])
def test_the_limit_is_saved_with_a_trained_encoder(
    declaring: Declaring, settings_of: Settings, tmp_path: Path, pooling: str
) -> None:
    folder = declaring(sentence_bert_config={"max_seq_length": 5})
    run_once(settings_of(encoder=str(folder), pooling=pooling, steps=1), tmp_path / "model")
    assert mtdlab.load_encoder(str(tmp_path / "model")).max_length == 5


@pytest.mark.parametrize(
    ("file", "field", "value"),
    [
        ("config_sentence_transformers", "truncate_dim", 2),
        ("config_sentence_transformers", "truncate_dim", 0),
        ("config_sentence_transformers", "similarity_fn_name", "dot"),
        ("sentence_bert_config", "tokenizer_args", {"model_max_length": 5}),
        ("sentence_bert_config", "processing_kwargs", {"text": {"max_length": 5}}),
    ],
)
def test_a_field_that_is_not_applied_is_refused_by_name(
    declaring: Declaring, settings_of: Settings, file: str, field: str, value: Any
) -> None:
    folder = declaring(**{file: {field: value}})
    told = re.escape(f"{field} {value!r} ({file}.json) is not applied by mtdlab")
    with pytest.raises(MtdlabError, match=told):
        evaluate(str(folder), tasks="builtin")
    with pytest.raises(MtdlabError, match=told):
        run_once(settings_of(encoder=str(folder)))


def test_fields_without_effect_are_read(declaring: Declaring) -> None:
    fields = {"truncate_dim": None, "similarity_fn_name": "cosine", "prompts": {"query": "a "}}
    texts = {"transformer_task": "feature-extraction", "tokenizer_args": {}}
    folder = declaring("Normalize", config_sentence_transformers=fields, sentence_bert_config=texts)
    same_as_theirs(folder)


@pytest.mark.parametrize(
    ("place", "package"),
    [
        ("pool", "sentence_transformers.models"),
        ("parts/1", "sentence_transformers.sentence_transformer.modules"),
        ("1_Pooling", "sentence_transformers.base.modules"),
    ],
)
def test_the_pooling_is_read_where_modules_say(
    declaring: Declaring, place: str, package: str
) -> None:
    folder = declaring(place=place, package=package)
    assert mtdlab.load_encoder(str(folder)).representation.pooling == "mean"
    assert read_settings(None, [f"trainer.encoder={folder}"]).pooling == "mean"
    report = evaluate(str(folder), pooling="cls", tasks="builtin")
    assert report.remark == "read with cls pooling, but made with mean pooling"
    if "base" not in package:
        same_as_theirs(folder)


def test_modules_of_another_library_are_refused(declaring: Declaring) -> None:
    folder = declaring(package="custom_st")
    with pytest.raises(MtdlabError, match=r"has a module custom_st\.Transformer"):
        mtdlab.load_encoder(str(folder))


def test_a_normalisation_of_tokens_is_refused(declaring: Declaring) -> None:
    folder = declaring("Normalize")
    (folder / "2_Normalize").mkdir()
    fields = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
    (folder / "2_Normalize" / "config.json").write_text(json.dumps(fields))
    with pytest.raises(MtdlabError, match=r"has a module Normalize \(2_Normalize, modules"):
        mtdlab.load_encoder(str(folder))


def test_what_modules_name_and_is_not_there_is_refused(declaring: Declaring) -> None:
    folder = declaring(place="pool")
    (folder / "pool" / "config.json").unlink()
    with pytest.raises(MtdlabError, match=r"its pool/config\.json, which modules\.json names, is"):
        mtdlab.load_encoder(str(folder))
    listed = json.loads((folder / "modules.json").read_text())
    listed[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(listed))
    with pytest.raises(MtdlabError, match=r"its weights are in 0_Transformer \(modules\.json\)"):
        mtdlab.load_encoder(str(folder))


@pytest.mark.parametrize("kind", ["Dense", "Dropout", "LayerNorm", "WeightedLayerPooling"])
def test_a_module_that_is_not_applied_is_refused_by_name(declaring: Declaring, kind: str) -> None:
    folder = declaring(kind)
    with pytest.raises(MtdlabError, match=rf"has a module {kind} \(2_{kind}, modules.json\)"):
        mtdlab.load_encoder(str(folder))


@pytest.mark.parametrize(
    ("pooling", "named"),
    [
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"pooling_mode": ["cls", "mean"]}, "cls and mean"),
        ({"pooling_mode_weightedmean_tokens": True}, "weightedmean"),
        ({"pooling_mode": 0.5}, "0.5"),
    ],
)
def test_a_pooling_that_mtdlab_lacks_is_refused_unless_another_is_stated(
    declaring: Declaring, pooling: dict[str, Any], named: str
) -> None:
    folder = str(declaring(pooling=pooling))
    with pytest.raises(MtdlabError, match=f"was made with {named} pooling .* state one of its own"):
        mtdlab.load_encoder(folder)
    set_encoder = ["train", "--set", f"trainer.encoder={folder}"]
    refused = CliRunner().invoke(app, set_encoder)
    assert isinstance(refused.exception, MtdlabError)
    report = evaluate(folder, pooling="mean", tasks="builtin")
    assert report.remark == f"read with mean pooling, but made with {named} pooling"


def test_pooling_without_a_mode_is_the_mean(declaring: Declaring) -> None:
    folder = declaring(pooling={"pooling_mode_cls_token": False})
    assert mtdlab.load_encoder(str(folder)).representation.pooling == "mean"
    same_as_theirs(folder)


def test_a_prompt_outside_the_pooling_is_refused(declaring: Declaring) -> None:
    prompts = {"prompts": {"q": "the dog "}, "default_prompt_name": "q"}
    declared = {"pooling_mode": "mean", "include_prompt": False}
    folder = declaring(pooling=declared, config_sentence_transformers=prompts)
    with pytest.raises(MtdlabError, match="is 'the dog ', left out of the pooling"):
        mtdlab.load_encoder(str(folder))


@pytest.mark.parametrize(
    "file", ["modules", "config_sentence_transformers", "sentence_bert_config", "1_Pooling/config"]
)
@pytest.mark.parametrize("text", ["{", '"text"'])
def test_damaged_files_are_refused(declaring: Declaring, file: str, text: str) -> None:
    folder = declaring()
    (folder / f"{file}.json").write_text(text)
    with pytest.raises(MtdlabError, match=rf"its {file}\.json is damaged"):
        mtdlab.load_encoder(str(folder))


def test_small_letters_that_the_tokenizer_does_not_make_are_refused(tmp_path: Path) -> None:
    folder = write_encoder(tmp_path, lambda size: BertConfig(vocab_size=size, **SIZE), ["a", "A"])
    mtdlab.load_encoder(str(folder))
    (folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    with pytest.raises(MtdlabError, match="reads small letters alone"):
        mtdlab.load_encoder(str(folder))


def test_tokens_without_a_word_embedding_are_refused(declaring: Declaring) -> None:
    folder = declaring()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["entirely", "new"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(MtdlabError, match=r"has token ids up to .* word embeddings; get both from"):
        mtdlab.load_encoder(str(folder))
    model = AutoModel.from_pretrained(folder)
    model.resize_token_embeddings(len(tokenizer))
    model.save_pretrained(folder)
    assert np.isfinite(mtdlab.load_encoder(str(folder)).encode(["entirely new"])).all()


def test_an_error_of_a_library_that_encodes_is_a_sentence(declaring: Declaring) -> None:
    folder = declaring()
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_attention_heads": -1}))
    with pytest.raises(MtdlabError, match=r"declaring: cannot encode these texts \(.*damaged"):
        evaluate(str(folder), tasks="builtin")


def test_an_error_inside_training_is_a_sentence(
    settings_of: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise IndexError("index out of range")

    monkeypatch.setattr("mtdlab.training.loop.train", fail)
    with pytest.raises(TrialError, match="IndexError: index out of range"):
        run_once(settings_of(steps=1, evaluate_every=1))


def test_training_says_how_texts_are_read(declaring: Declaring, settings_of: Settings) -> None:
    prompts = {"prompts": {"q": "the dog "}, "default_prompt_name": "q"}
    folder = of_tokenizer(declaring(config_sentence_transformers=prompts), 7)
    settings = settings_of(encoder=str(folder), prompt="the dog {sentence}", steps=1)
    names = ("encoder", "prompt", "corpus", "evaluation", "steps", "batch_size", "queue_size")
    given = [f"--set=trainer.{name}={getattr(settings, name)}" for name in names]
    done = CliRunner().invoke(app, ["train", *given])
    assert done.exit_code == 0
    reading = "mean pooling, prompt 'the dog {sentence}', up to 7 tokens in evaluation"
    encoder = rf"{re.escape(str(folder))}: .* weights, {re.escape(reading)}; bert, the fast"
    assert re.search(f"^encoder {encoder}", done.stdout, re.MULTILINE)
    row = json.loads(CliRunner().invoke(app, ["train", *given, "--json"]).stdout)
    assert re.match(encoder, row["encoder"])


def test_loading_says_how_texts_are_read(declaring: Declaring, settings_of: Settings) -> None:
    folder, begun = of_tokenizer(declaring(), 7), list[str]()
    with following_phases(begun.append):
        open_inputs(settings_of(encoder=str(folder), pooling="mean"))
    assert begun[1:] == ["tokenising pairs: mean pooling, up to 7 tokens in evaluation"]


def test_an_encoder_without_a_number_of_positions_reads_as_many_as_any(tmp_path: Path) -> None:
    sizes = {"d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 32}
    made = write_encoder(tmp_path, lambda size: XLNetConfig(vocab_size=size, **sizes), ["a", "b"])
    assert mtdlab.load_encoder(str(made)).max_length == MAX_LENGTH


def test_a_text_that_is_cut_is_not_warned_of(
    declaring: Declaring, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = {"prompts": {"q": "the dog "}, "default_prompt_name": "q"}
    folder = of_tokenizer(declaring(config_sentence_transformers=prompts), 7)
    handler = Mock(level=WARNING)
    monkeypatch.setattr(getLogger("transformers"), "handlers", [handler])
    assert mtdlab.load_encoder(str(folder)).encode(TEXTS).shape == (3, 16)
    assert handler.handle.mock_calls == []
