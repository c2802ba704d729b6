"""Prompts, the mask token, segments: how a sentence becomes a vector."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

import mtdlab
from mtdlab.config.reader import parse_study, read_settings
from mtdlab.encoders.folders import declared_pooling
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.encoders.pooling import cut, encode
from mtdlab.encoders.saved import saved_run
from mtdlab.encoders.tokenising import check_prompt, token_ids
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings
from mtdlab.settings import Representation
from mtdlab.settings.representation import describe

PROMPT = "the {sentence} is a {mask} dog"


@pytest.fixture(scope="module")
def encoder(tiny_encoder: Path) -> Encoder:
    """The tiny encoder, in evaluation mode."""
    loaded = load_encoder(str(tiny_encoder), 0.1)
    loaded.model.eval()
    return loaded


def words(encoder: Encoder, ids: list[int]) -> str:
    return " ".join(encoder.tokenizer.convert_ids_to_tokens(ids))


def vector_of(encoder: Encoder, ids: list[int], how: Representation) -> Tensor:
    """The vector (1, D) of one sentence."""
    batch = torch.tensor([ids])
    with torch.no_grad():
        words = encoder.model.get_input_embeddings()(batch)
        return encode(encoder.model, torch.ones_like(batch), how, inputs_embeds=words)


def test_a_prompt_surrounds_the_sentence(encoder: Encoder) -> None:
    [ids] = token_ids(encoder.tokenizer, ["cat sleeps"], 32, PROMPT)
    assert words(encoder, ids) == "[CLS] the cat sleeps [UNK] a [MASK] dog [SEP]"
    assert token_ids(encoder.tokenizer, [], 32, PROMPT) == []


def test_a_long_sentence_is_cut_and_its_prompt_is_not(encoder: Encoder) -> None:
    [ids] = token_ids(encoder.tokenizer, ["cat sleeps in park"], 9, PROMPT)
    assert words(encoder, ids) == "[CLS] the cat sleeps [UNK] a [MASK] dog [SEP]"
    with pytest.raises(MtdlabError, match="has 7 tokens, but at most 7 are allowed"):
        token_ids(encoder.tokenizer, ["cat"], 7, PROMPT)


def test_the_mask_token_is_found_by_its_distance_from_the_end(encoder: Encoder) -> None:
    representation = Representation("mask", PROMPT)
    check_prompt(encoder.tokenizer, representation)
    both = token_ids(encoder.tokenizer, ["cat", "red bird sings"], 32, PROMPT)
    batch = encoder.tokenizer.pad({"input_ids": both}, return_tensors="pt")
    ids, mask = batch["input_ids"], batch["attention_mask"]
    with torch.no_grad():
        embedded = encoder.model.get_input_embeddings()(ids)
        found = encode(encoder.model, mask, representation, inputs_embeds=embedded)
        hidden = encoder.model(input_ids=ids, attention_mask=mask).last_hidden_state
    at = ids == encoder.tokenizer.mask_token_id
    assert torch.allclose(found, hidden[at], atol=1e-6)


@pytest.mark.parametrize("after", ["a.b", "dog sleeps."])
def test_a_prompt_whose_end_is_not_one_token_a_word_is_refused(
    encoder: Encoder, after: str
) -> None:
    representation = Representation("mask", "the {sentence} {mask} " + after)
    with pytest.raises(MtdlabError, match=r"each word after \{mask\} must be a single token"):
        check_prompt(encoder.tokenizer, representation)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pooling": "mask"}, "pooling mask needs a prompt"),
        ({"pooling": "mask", "prompt": "the {sentence}"}, "pooling mask needs a prompt"),
        (
            {"pooling": "mask", "prompt": "a {sentence} {mask}", "segment_length": 4},
            "segment_length 4 leaves no tokens for the sentence: its prompt takes 4",
        ),
        ({"prompt": "the"}, "must contain {sentence} once"),
        ({"prompt": "{sentence} {sentence}"}, "must contain {sentence} once"),
        ({"prompt": "{mask} {sentence}"}, "at most once, after {sentence}"),
        ({"prompt": "{sentence} {mask} {mask}"}, "at most once, after {sentence}"),
    ],
)
def test_wrong_prompts_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_settings(**values)


def test_segments_by_hand() -> None:
    tokens = torch.arange(2 * 7 * 1.0).view(2, 7, 1)
    mask = torch.tensor([[1] * 7, [1] * 3 + [0] * 4])
    segments = cut(tokens, mask, Representation(segment_length=3))
    assert segments.sentence.tolist() == [0, 0, 0, 1]
    assert segments.mask.sum(dim=1).tolist() == [3, 3, 1, 3]
    assert segments.words[2, 0].tolist() == [6.0]
    vectors = torch.tensor([[1.0], [2.0], [9.0], [5.0]])
    assert segments.mean(vectors).tolist() == [[pytest.approx((3 + 6 + 9) / 7)], [5.0]]


def test_with_a_prompt_each_segment_has_all_of_it() -> None:
    representation = Representation("mask", "a {sentence} is {mask} b", 8)
    # [CLS] a X X X X X is [MASK] b [SEP], two tokens before the sentence, four after it
    tokens = torch.arange(2 * 12 * 1.0).view(2, 12, 1)
    mask = torch.tensor([[1] * 11 + [0], [1] * 7 + [0] * 5])
    segments = cut(tokens, mask, representation)
    assert segments.sentence.tolist() == [0, 0, 0, 1]
    assert segments.lengths.tolist() == [2, 2, 1, 1]
    real = [
        row[mask.bool()].flatten().tolist()
        for row, mask in zip(segments.words, segments.mask, strict=True)
    ]
    assert real == [
        [0, 1, 2, 3, 7, 8, 9, 10],
        [0, 1, 4, 5, 7, 8, 9, 10],
        [0, 1, 6, 7, 8, 9, 10],
        [12, 13, 14, 15, 16, 17, 18],
    ]


def test_a_sentence_without_tokens_has_a_segment_with_its_prompt() -> None:
    representation = Representation("mask", "a {sentence} {mask}", 6)
    mask = torch.tensor([[1] * 4 + [0] * 2])
    segments = cut(torch.arange(6.0).view(1, 6, 1), mask, representation)
    assert segments.words[segments.mask.bool()].flatten().tolist() == [0, 1, 2, 3]
    assert segments.mean(torch.tensor([[5.0]])).tolist() == [pytest.approx([5.0])]


def test_the_vector_of_prompted_segments_is_the_mean_of_prompted_sentences(
    encoder: Encoder,
) -> None:
    long, parts = "cat sleeps in park today", ["cat sleeps", "in park", "today"]
    representation = Representation("mask", "the {sentence} {mask} dog", 7)
    check_prompt(encoder.tokenizer, representation)

    def vector(sentence: str, how: Representation) -> Tensor:
        [ids] = token_ids(encoder.tokenizer, [sentence], 32, how.prompt)
        return vector_of(encoder, ids, how)

    whole = Representation("mask", representation.prompt)
    mean = sum(len(part.split()) * vector(part, whole) for part in parts) / 5
    assert torch.allclose(vector(long, representation), mean, atol=1e-6)


def test_a_prompt_around_segments_has_a_token_a_word(encoder: Encoder) -> None:
    representation = Representation("mean", "the, {sentence}", 8)
    with pytest.raises(MtdlabError, match="with segment_length: each word must be a single token"):
        check_prompt(encoder.tokenizer, representation)
    check_prompt(encoder.tokenizer, Representation("mean", "the, {sentence}"))


@pytest.mark.parametrize(("tokens", "count"), [(1, 1), (3, 1), (4, 2), (6, 2), (7, 3)])
def test_the_number_of_segments(tokens: int, count: int) -> None:
    mask = (torch.arange(7) < tokens).long().unsqueeze(0)
    assert len(cut(torch.zeros(1, 7, 2), mask, Representation(segment_length=3)).sentence) == count


def test_a_sentence_in_segments_is_their_mean_weighted_by_length(encoder: Encoder) -> None:
    [ids] = token_ids(encoder.tokenizer, ["cat sleeps in park house today"], 32)
    parts = [ids[at : at + 4] for at in range(0, len(ids), 4)]
    found = vector_of(encoder, ids, Representation("mean", segment_length=4))
    single = [vector_of(encoder, part, Representation("mean")) * len(part) for part in parts]
    assert torch.allclose(found, sum(single) / len(ids), atol=1e-6)


def test_a_saved_model_is_read_with_its_representation(tiny_encoder: Path, tmp_path: Path) -> None:
    assert saved_run(str(tiny_encoder)) == saved_run("builtin") == (None, "float32")
    run = tmp_path / "mtdlab" / "run.json"
    run.parent.mkdir()
    run.write_text('{"settings": {"pooling": "mask", "prompt": "the {sentence} {mask}"}}')
    read = Representation("mask", "the {sentence} {mask}")
    assert saved_run(str(tmp_path)) == (read, "float32")
    run.write_text('{"settings": {"pooling": "mean"}, "precision": "bfloat16"}')
    assert saved_run(str(tmp_path)) == (Representation("mean"), "bfloat16")
    run.write_text('{"settings": {"pooling": "mask"}}')
    with pytest.raises(MtdlabError, match=r"run\.json: is damaged \(pooling mask needs a prompt"):
        saved_run(str(tmp_path))
    run.write_text('{"settings": {"pooling": "mean"}, "precision": "float8"}')
    with pytest.raises(MtdlabError, match=r"run\.json: is damaged \(unknown precision 'float8'"):
        saved_run(str(tmp_path))


@pytest.mark.parametrize("here", [torch.float32, torch.bfloat16])
def test_the_precision_is_the_recorded_one_or_float32_on_every_machine(
    tiny_encoder: Path, monkeypatch: pytest.MonkeyPatch, here: torch.dtype
) -> None:
    """`auto` depends on the machine, published digits on the precision."""
    monkeypatch.setattr("mtdlab.device._has_bfloat16", lambda _device: here is torch.bfloat16)

    def loaded(**given: str) -> torch.dtype:
        return mtdlab.load_encoder(str(tiny_encoder), device="cpu", **given).embedder.device.dtype

    assert loaded() is torch.float32
    assert loaded(precision="auto") is here
    assert loaded(precision="bfloat16") is torch.bfloat16
    with pytest.raises(MtdlabError, match="unknown precision 'half'; choose from auto, float32, b"):
        loaded(precision="half")


def test_encode_returns_a_vector_per_sentence_in_order(tiny_encoder: Path) -> None:
    sentences = ["the dog runs", "a cat", "the dog runs"]
    vectors, other = (
        mtdlab.load_encoder(str(tiny_encoder), pooling=pooling, device="cpu").encode(sentences)
        for pooling in (None, "mean")
    )
    assert vectors.shape == (3, 16)
    assert np.array_equal(vectors[0], vectors[2])
    assert not np.allclose(vectors, other)


def test_a_representation_in_words() -> None:
    assert describe(Representation()) == "cls pooling"
    text = "mean pooling, prompt 'a {sentence}', segments of 32 tokens"
    assert describe(Representation("mean", "a {sentence}", 32)) == text


@pytest.fixture
def declaring(tmp_path: Path, tiny_encoder: Path) -> Callable[..., Path]:
    """A copy of the encoder whose `1_Pooling/config.json` has this text."""

    def copied(text: str) -> Path:
        folder = tmp_path / f"encoder-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(tiny_encoder, folder)
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(text)
        return folder

    return copied


MEAN = '{"pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}'


@pytest.mark.parametrize(
    ("text", "pooling"),
    [
        (MEAN, "mean"),
        ('{"pooling_mode_cls_token": true}', "cls"),
        ('{"pooling_mode_lasttoken": true}', "last-token"),
        ('{"pooling_mode": "lasttoken"}', "last-token"),
        ('{"pooling_mode": ["mean"]}', "mean"),
        ("{}", None),
    ],
)
def test_the_declared_pooling_of_an_encoder(
    declaring: Callable[..., Path], text: str, pooling: str | None
) -> None:
    assert declared_pooling(str(declaring(text))) == pooling


@pytest.mark.parametrize("text", ["[]", "{"])
def test_a_damaged_pooling_is_refused(declaring: Callable[..., Path], text: str) -> None:
    folder = declaring(text)
    for refused in (declared_pooling, mtdlab.load_encoder):
        with pytest.raises(MtdlabError, match=r"its 1_Pooling/config\.json is damaged; get it"):
            refused(str(folder))


def test_an_encoder_without_the_file_declares_no_pooling(tiny_encoder: Path) -> None:
    for name in (str(tiny_encoder), "builtin", "no/such-encoder", "/nowhere", ""):
        assert declared_pooling(name) is None


def test_the_declared_pooling_is_the_default_wherever_none_is_given(
    declaring: Callable[..., Path], tiny_encoder: Path
) -> None:
    folder = str(declaring(MEAN))
    assert mtdlab.load_encoder(folder).representation.pooling == "mean"
    assert mtdlab.load_encoder(folder, pooling="cls").representation.pooling == "cls"
    assert mtdlab.load_encoder(str(tiny_encoder)).representation.pooling == "cls"
    with pytest.raises(MtdlabError, match="unknown pooling 'max'; choose from cls, mean"):
        mtdlab.load_encoder(folder, pooling="max")
    assert read_settings(None, [f"trainer.encoder={folder}"]).pooling == "mean"
    given = [f"trainer.encoder={folder}", "trainer.pooling=cls"]
    assert read_settings(None, given).pooling == "cls"
    assert read_settings(None, [f"trainer.encoder={folder}", "trainer.method=consert"]).pooling == (
        "last2"
    )


@pytest.mark.parametrize(
    ("trainer", "search", "poolings", "warned"),
    [
        ("encoder: {mean}", "ema_decay: [0.5]", ["mean"], []),
        ("encoder: {mean}, pooling: cls", "ema_decay: [0.5]", ["cls"], ["mean", "cls"]),
        ("encoder: {mean}", "pooling: [cls, mean]", ["cls", "mean"], []),
        ("encoder: {mean}", "method: [simcse, consert]", ["mean", "last2"], []),
        ("steps: 9", "encoder: ['{mean}', '{plain}']", ["cls", "cls"], ["mean", "cls"]),
        ("steps: 9", "encoder: ['{mean}', '{other}']", ["mean", "mean"], []),
    ],
)
def test_the_pooling_of_a_studys_trials_and_what_is_warned_of(
    declaring: Callable[..., Path],
    tiny_encoder: Path,
    trainer: str,
    search: str,
    poolings: list[str],
    warned: list[str],
) -> None:
    names = {"mean": declaring(MEAN), "other": declaring(MEAN), "plain": tiny_encoder}
    text = f"study: a\ntrainer: {{{trainer}}}\nsearch: {{{search}}}\n"
    for name, folder in names.items():
        text = text.replace(f"{{{name}}}", str(folder))
    spec = parse_study("a.yaml", text)
    trials = [spec.settings(unit.parameters or {}, unit.seed) for unit in spec.search_trials()]
    assert [trial.pooling for trial in trials] == poolings
    warnings = [warning for warning in spec.warnings() if "pooling" in warning]
    assert len(warnings) == bool(warned)
    for warning in warnings:
        declared, used = warned
        assert f"was made with {declared} pooling (1_Pooling/config.json)" in warning
        assert f"this study reads it with {used}; unless" in warning
