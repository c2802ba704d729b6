"""The built-in encoder, and the code that rebuilds it."""

from contextlib import suppress
from importlib.resources import files
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, AutoTokenizer, BertModel

from mtdlab.builtin import builtin_pairs, builtin_sentences
from tests.builtin.generators.pretrain import (
    PretrainSettings,
    build,
    defining_sentences,
    main,
    mask_words,
    new_model,
    pretrain,
)

FOLDER = Path(str(files("mtdlab.builtin") / "encoder"))


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def model():
    return AutoModel.from_pretrained(FOLDER).eval()


def test_it_is_a_small_bert_of_two_layers(model):
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= 3_000_000
    assert isinstance(model, BertModel)
    config = model.config
    assert (config.num_hidden_layers, config.hidden_size, config.intermediate_size) == (2, 128, 512)
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == 0.1


def test_cls_vectors_are_finite_and_distinct(model, tokenizer):
    texts = builtin_sentences()[:64]
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        vectors = model(**batch).last_hidden_state[:, 0]
    assert vectors.shape == (64, 128)
    assert torch.isfinite(vectors).all()
    assert torch.pdist(vectors).min() > 1e-3


def test_every_word_is_known(tokenizer):
    pairs = builtin_pairs("dev") + builtin_pairs("test")
    texts = builtin_sentences() + [text for pair in pairs for text in pair[:2]]
    words = sorted({word for text in texts for word in text.split()})
    ids = dict(zip(words, tokenizer(words, add_special_tokens=False)["input_ids"], strict=True))
    assert tokenizer.unk_token_id not in {token for of_word in ids.values() for token in of_word}
    # with [CLS] and [SEP]
    assert max(2 + sum(len(ids[word]) for word in text.split()) for text in texts) <= 32
    [row] = tokenizer(texts[:1])["input_ids"]
    assert row[1:-1] == [token for word in texts[0].split() for token in ids[word]]


def test_masked_words_are_predicted_from_the_rest(model, tokenizer):
    """By word vectors alone, synonyms are closer than words of another kind."""
    table = model.embeddings.word_embeddings.weight.detach()
    vectors = torch.nn.functional.normalize(table, dim=1)

    def cosine(left: str, right: str) -> float:
        one, other = tokenizer.convert_tokens_to_ids([left, right])
        return float(vectors[one] @ vectors[other])

    assert cosine("doctor", "physician") > cosine("doctor", "hammer") + 0.2
    assert cosine("purchased", "bought") > cosine("purchased", "sleeping") + 0.2


def test_masking_chooses_by_chance_and_never_the_special_tokens():
    generator = torch.Generator().manual_seed(0)
    ids = torch.tensor([[2, 7, 8, 3]]).repeat(4_000, 1)
    chances = torch.tensor([0, 0, 0, 0, 0, 0, 0, 0.5, 0.1])
    masked, chosen = mask_words(ids, chances, 4, generator)
    shares = chosen.float().mean(dim=0)
    assert shares.tolist() == pytest.approx([0, 0.5, 0.1, 0], abs=0.02)
    assert torch.equal(masked[~chosen], ids[~chosen])
    picked = masked[:, 1][chosen[:, 1]]
    assert float((picked == 4).float().mean()) == pytest.approx(0.8, abs=0.03)
    assert picked.min() >= 4


def test_a_few_steps_lower_the_loss_and_repeat_exactly(tokenizer):
    settings = PretrainSettings(steps=30, batch_size=32, warmup_steps=5)
    losses: list[float] = []
    again: list[float] = []

    def compare(step: int, loss: float) -> None:
        again.append(loss)
        if step == 10:
            raise KeyboardInterrupt

    for note in (lambda _, loss: losses.append(loss), compare):
        torch.manual_seed(0)
        model = new_model(len(tokenizer))
        sentences = builtin_sentences()[:2_000]
        with suppress(KeyboardInterrupt):
            pretrain(model, tokenizer, sentences, settings, note)
    assert sum(losses[-5:]) < sum(losses[:5]) - 2.5
    assert len(again) >= 10
    assert losses[: len(again)] == again


@pytest.mark.slow
def test_a_rebuilt_tokenizer_is_the_shipped_one(tmp_path, tokenizer):
    build(tmp_path, PretrainSettings(steps=1, batch_size=2), lambda _, __: None)
    assert AutoTokenizer.from_pretrained(tmp_path).get_vocab() == tokenizer.get_vocab()


def test_an_unknown_word_is_split_into_characters(tokenizer):
    assert tokenizer.tokenize("Quokka, 7!") == ["q", *(f"##{c}" for c in "uokka"), ",", "7", "!"]


def test_the_command_wants_one_folder(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["pretrain"])
    assert main() == 2
    assert "usage: python -m tests.builtin.generators.pretrain OUT" in capsys.readouterr().err


def test_defining_sentences_relate_words():
    sentences = defining_sentences()
    assert "another word for doctor is physician." in sentences
    assert "onion is a kind of vegetable." in sentences
    assert "chased means the same as pursued." in sentences
    assert all(one < other for one, other in pairwise(sentences))
