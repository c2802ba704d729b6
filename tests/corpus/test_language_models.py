"""Synonyms, paraphrases and translations by tiny random models, against one sentence at a time."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
    T5Tokenizer,
)

from mtdlab.corpus import language
from mtdlab.corpus.augmented import augment
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.language import Rewriter, Synonyms
from mtdlab.corpus.tokens import tokenise
from mtdlab.device import Device
from mtdlab.errors import MtdlabError
from mtdlab.settings.augmentation import parse_augmentation
from tests.conftest import WORDS
from tests.encoders.random_encoders import write_tokenizer

CPU = Device(torch.device("cpu"), torch.float32)
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
SMALL: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 1.0,
}
BART: dict[str, Any] = {
    "vocab_size": len(SPECIAL) + len(WORDS),
    "d_model": 16,
    **{f"{part}_layers": 1 for part in ("encoder", "decoder")},
    **{f"{part}_attention_heads": 2 for part in ("encoder", "decoder")},
    **{f"{part}_ffn_dim": 32 for part in ("encoder", "decoder")},
    "max_position_embeddings": 24,
    "init_std": 1.0,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}


def draws(count: int) -> Iterator[Random]:
    return map(Random, range(count))


@pytest.fixture(scope="module")
def bert(tiny_encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model with the tiny encoder's vocabulary."""
    folder = tmp_path_factory.mktemp("bert")
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    torch.manual_seed(1)
    config = BertConfig(vocab_size=len(tokenizer), max_position_embeddings=64, **SMALL)
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A masked language model whose tokens begin with Ġ where they begin a word."""
    folder = tmp_path_factory.mktemp("roberta")
    marked = [f"Ġ{word}" for word in (*WORDS, "Dog")]
    merges, pieces = [], [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    for word in marked:
        for stop in range(2, len(word) + 1):
            if word[:stop] not in pieces:
                merges.append((word[: stop - 1], word[stop - 1]))
                pieces.append(word[:stop])
    model = models.BPE(vocab={piece: n for n, piece in enumerate(pieces)}, merges=merges)
    backend = Tokenizer(model)
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
        cls_token="<s>",
        sep_token="</s>",
    ).save_pretrained(folder)
    torch.manual_seed(2)
    size = {"vocab_size": len(pieces), "max_position_embeddings": 70, "type_vocab_size": 2}
    RobertaForMaskedLM(RobertaConfig(pad_token_id=1, **size, **SMALL)).save_pretrained(folder)
    return folder


def save_bart(folder: Path, seed: int) -> Path:
    """A sequence-to-sequence model of whole words, whose weights say something else each time."""
    write_tokenizer(folder, WORDS, bos_token="<s>", eos_token="</s>")
    torch.manual_seed(seed)
    BartForConditionalGeneration(BartConfig(**BART)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def bart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bart(tmp_path_factory.mktemp("bart"), 0)


@cache
def loaded(folder: Path, kind: Any) -> tuple[Any, Any]:
    return AutoTokenizer.from_pretrained(folder), kind.from_pretrained(folder).eval()


@torch.inference_mode()
def slow_synonyms(folder: Path, text: str, chosen: list[int]) -> str:
    """The words at `chosen` places, masked in a second copy, one sentence at a time."""
    tokenizer, model = loaded(folder, AutoModelForMaskedLM)
    words, bert = text.split(), tokenizer.sep_token == "[SEP]"
    ids = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
    assert all(len(word) == 1 for word in ids)
    plain = [word[0] for word in ids]
    masked = [tokenizer.mask_token_id if n in chosen else i for n, i in enumerate(plain)]
    start, end = [tokenizer.cls_token_id], [tokenizer.sep_token_id]
    first = start + plain + end + ([] if bert else end)
    kinds = torch.tensor([[0] * len(first) + [int(bert)] * (len(masked) + 1)])
    logits = model(torch.tensor([first + masked + end]), token_type_ids=kinds).logits[0]
    for n in chosen:
        ranked = logits[len(first) + n].argsort(descending=True).tolist()
        names = (tokenizer.convert_ids_to_tokens(token) for token in ranked)
        whole = (re.fullmatch(r"[a-zA-Z]+" if bert else r"Ġ([a-zA-Z]+)", name) for name in names)
        named = (match[0].lstrip("Ġ") for match in whole if match)
        words[n] = next(name for name in named if name.lower() != words[n].lower())
    return " ".join(words)


@pytest.mark.parametrize("folder", ["bert", "roberta"])
def test_synonyms_are_the_models_best_other_words(
    folder: str, tiny_sentences: list[str], request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(folder)
    texts = tiny_sentences[:20]
    found = Synonyms.load(str(path), CPU)(texts, draws(20))
    for text, new in zip(texts, found, strict=True):
        old, others = text.split(), new.split()
        chosen = [n for n, (a, b) in enumerate(zip(old, others, strict=True)) if a != b]
        assert len(chosen) == max(1, round(0.3 * len(old)))
        assert new == slow_synonyms(path, text, chosen)
    assert len({word for new in found for word in new.split()}) > 10


@pytest.mark.parametrize("folder", ["bert", "roberta"])
def test_synonyms_leave_spaces_marks_numbers_and_parts_of_words(
    folder: str, request: pytest.FixtureRequest
) -> None:
    language = Synonyms.load(str(request.getfixturevalue(folder)), CPU)
    for seed in range(5):
        new = language(["  the,  dog;\tcat  (7) "], iter([Random(seed)]))[0]
        assert re.fullmatch(r"  [a-z]+,  [a-zA-Z]+;\t[a-z]+  \(7\) ", new), new
    assert language(["7 , 8 !", ""], draws(2)) == ["7 , 8 !", ""]


def test_a_synonym_is_a_capital_where_its_word_was(bert: Path) -> None:
    new = Synonyms.load(str(bert), CPU)(["Dog"], draws(1))[0]
    assert new.istitle()
    assert new != "Dog"


def test_a_word_too_far_for_the_model_stays(bert: Path) -> None:
    long = " ".join(["dog"] * 200)
    new = Synonyms.load(str(bert), CPU)([long], draws(1))[0].split()
    assert len(new) == 200
    assert set(new[40:]) == {"dog"} != set(new[:40])


@torch.inference_mode()
def slow_rewriting(folder: Path, text: str) -> str:
    """Greedy decoding of one sentence without a cache, up to as many tokens as there is room."""
    tokenizer, model = loaded(folder, AutoModelForSeq2SeqLM)
    ids = tokenizer(text, truncation=True, max_length=22, return_tensors="pt")["input_ids"]
    written = [int(model.config.decoder_start_token_id)]
    while len(written) <= 22 and (len(written) == 1 or written[-1] != 2):
        logits = model(input_ids=ids, decoder_input_ids=torch.tensor([written])).logits[0, -1]
        written.append(int(logits.argmax()))
    names = tokenizer.convert_ids_to_tokens(written)
    return " ".join(name for name in names if name not in SPECIAL)


@pytest.mark.slow
def test_a_rewriter_is_greedy_whatever_its_batch(
    bart: Path, tiny_sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*tiny_sentences[:11], " ".join(WORDS)]
    expected = [slow_rewriting(bart, text) for text in texts]
    assert len(set(expected)) > 6
    assert any(expected)
    for size in (128, 5):
        monkeypatch.setattr(language, "REWRITTEN", size)
        assert Rewriter.load(str(bart), CPU, "paraphrase")(texts) == expected


def test_a_models_own_beams_and_sampling_are_not_used(
    bart: Path, tmp_path: Path, tiny_sentences: list[str]
) -> None:
    beams = save_bart(tmp_path, 0)
    model: Any = AutoModelForSeq2SeqLM.from_pretrained(beams)
    model.generation_config.update(num_beams=4, do_sample=True, max_length=5, early_stopping=True)
    model.save_pretrained(beams)
    texts = tiny_sentences[:5]
    found, expected = (Rewriter.load(str(path), CPU, "paraphrase")(texts) for path in (beams, bart))
    assert found == expected


def test_a_t5_is_asked_for_a_paraphrase_and_others_are_not(tmp_path: Path, bart: Path) -> None:
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -9.0), *((f"▁{w}", -2.0) for w in WORDS)]
    tokenizer = T5Tokenizer(vocab=pieces, extra_ids=0)
    tokenizer.save_pretrained(tmp_path)
    torch.manual_seed(0)
    size = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}
    config = T5Config(vocab_size=len(tokenizer), decoder_start_token_id=0, **size)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    asked = Rewriter.load(str(tmp_path), CPU, "paraphrase")
    assert asked.prefix == "paraphrase: "
    assert len(asked(["the dog", "a cat"])) == 2
    assert Rewriter.load(str(tmp_path), CPU, "back-translation").prefix == ""
    assert Rewriter.load(str(bart), CPU, "paraphrase").prefix == ""


@pytest.mark.slow
def test_back_translation_goes_through_both_models_and_keeps_every_row(
    bart: Path,
    bert: Path,
    tiny_corpus: Path,
    tiny_sentences: list[str],
    tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
) -> None:
    corpus, back = open_corpus(str(tiny_corpus)), save_bart(tmp_path, 1)
    there = Rewriter.load(str(bart), CPU, "back-translation")(tiny_sentences)
    again = Rewriter.load(str(back), CPU, "back-translation")(there)
    augmentations = parse_augmentation(f"back-translation:{bart},{back}")
    changed = augment(corpus, augmentations, CPU)
    assert changed is not None
    expected = [new or old for new, old in zip(again, tiny_sentences, strict=True)]
    assert list(changed.sentences()) == expected != tiny_sentences
    both = augment(corpus, [*parse_augmentation(f"synonyms:{bert}"), *augmentations], CPU)
    assert both is not None
    assert len(tokenise(both, tokenizer, 16)) == 60


@pytest.mark.parametrize(
    ("kind", "folder", "said"),
    [
        (
            Synonyms,
            "tiny_encoder",
            r"its weights do not fit its config.json \(missing: 6, such as cls.*AutoModelForMask",
        ),
        (Synonyms, "tmp_path", "the folder cannot be loaded"),
        (Rewriter, "bert", "the folder cannot be loaded: .*BertConfig"),
        (Rewriter, "", "neither a folder here nor in the local hub cache; give a folder"),
    ],
)
def test_a_model_that_does_not_serve_is_refused(
    request: pytest.FixtureRequest, kind: Any, folder: str, said: str
) -> None:
    name = str(request.getfixturevalue(folder)) if folder else "no/such"
    with pytest.raises(MtdlabError, match=f"^mine model {name}: {said}"):
        kind.load(name, CPU, "mine")


def test_a_masked_language_model_needs_a_mask(bert: Path, tmp_path: Path) -> None:
    AutoModelForMaskedLM.from_pretrained(bert).save_pretrained(tmp_path)
    backend = AutoTokenizer.from_pretrained(bert).backend_tokenizer
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]")
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(MtdlabError, match=r"its tokenizer has no mask"):
        Synonyms.load(str(tmp_path), CPU)


def test_a_tokenizer_of_sentencepiece_names_the_extra(
    bart: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = ImportError("MarianTokenizer requires the SentencePiece library but it was not found")
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", Mock(side_effect=lacking))
    with pytest.raises(MtdlabError, match=r"needs the library sentencepiece; .*mtdlab\[augment\]"):
        Rewriter.load(str(bart), CPU, "back-translation")


def test_batches_of_synonyms_do_not_show(
    bert: Path, tiny_sentences: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    synonyms = Synonyms.load(str(bert), CPU)
    expected = synonyms(tiny_sentences, draws(60))
    monkeypatch.setattr(language, "MASKED", 7)
    assert synonyms(tiny_sentences, draws(60)) == expected
