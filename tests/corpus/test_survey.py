"""A corpus counted, held against counting by hand."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedTokenizerBase

from mtdlab.config.method_study import MethodSpec
from mtdlab.config.reader import read_study
from mtdlab.corpus import corpus
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.lines import normalise
from mtdlab.corpus.survey import Bin, Overlap, count_repeats, overlap, survey
from mtdlab.errors import MtdlabError
from mtdlab.training.present import data_warnings
from tests.corpus.conftest import Write


@pytest.mark.parametrize("size", [7, 8192])
def test_counts_are_those_of_counting_by_hand(
    tiny_encoder: Path,
    tiny_sentences: list[str],
    tokenizer: PreTrainedTokenizerBase,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(corpus, "CHUNK_SENTENCES", size)
    sentences = [*tiny_sentences, " ".join(tiny_sentences), tiny_sentences[3], tiny_sentences[3]]
    path = write("\n\n".join(sentences).encode() + b"\na \xff\0\n")
    found = survey(path, str(tiny_encoder), 8)
    sentences.append("a \ufffd")
    lengths = np.array([len(tokenizer(one, verbose=False)["input_ids"]) for one in sentences])
    assert (found.lines, found.blank) == (len(sentences) + 62, 62)
    assert (found.cut, found.bad_bytes, found.nuls) == (0, 1, 1)
    assert found.sentences == len(sentences)
    assert found.duplicates == len(sentences) - len(set(sentences)) >= 2
    assert found.characters == sum(map(len, sentences))
    assert (found.tokens, found.longest) == (lengths.sum(), lengths.max())
    assert found.too_long == (lengths > 8).sum() > 1
    assert found.fingerprint == open_corpus(path).fingerprint
    assert sum(one.sentences for one in found.histogram) == len(sentences)
    assert found.histogram[0] == Bin(1, 8, (lengths <= 8).sum())
    assert found.histogram[-1] == Bin(257, 512, 1)
    assert json.loads(json.dumps(asdict(found)))["histogram"][-1]["sentences"] == 1


def test_above_the_last_edge_a_bin_is_open(tiny_encoder: Path, write: Write) -> None:
    path = write("a dog\n" + "dog " * 511 + "\n")
    found = survey(path, str(tiny_encoder), 513)
    assert found.longest == 513
    assert found.too_long == 0
    assert found.histogram[-1] == Bin(513, None, 1)
    assert survey(path, str(tiny_encoder), 512).too_long == 1


def test_words_that_the_vocabulary_lacks_are_counted(tiny_encoder: Path, write: Write) -> None:
    found = survey(write("a zebra sees the dog\nthe cat\nzebra\n"), str(tiny_encoder), 32)
    assert (found.unknown, found.tokens) == (3, 7 + 4 + 3)


def test_a_missing_encoder_is_said(tiny_corpus: Path) -> None:
    with pytest.raises(MtdlabError, match="encoder no/such: neither a folder here nor in the"):
        survey(str(tiny_corpus), "no/such", 32)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Hello, World!", "hello world"),
        ("  A dog   runs. ", "a dog runs"),
        ("ﬁne — STRASSE", "fine Straße"),
        ("it's 3.5", "it s 3 5"),
    ],
)
def test_case_punctuation_and_space_do_not_count(one: str, other: str) -> None:
    assert normalise(one) == normalise(other)
    assert normalise("a dog runs") != normalise("a dog ran")


def test_an_overlap_counts_different_sentences() -> None:
    texts = ["A dog runs.", "a dog runs", "No cat.", "?!"]
    found = overlap("dev", texts, {"a dog runs", "something else", ""})
    assert found == Overlap("dev", 2, 1, ("a dog runs",))


def test_a_survey_looks_for_the_evaluation_in_the_text(write: Write, tiny_encoder: Path) -> None:
    path = write("A dog runs!\nthe cat\n" + "more text\n" * 9000 + "the last one\n")
    evaluated = {"dev": ["the cat", "no such"], "test": ["The last one.", "a dog runs", "none"]}
    found = survey(path, str(tiny_encoder), 8, evaluated).overlaps
    assert found == (
        Overlap("dev", 2, 1, ("the cat",)),
        Overlap("test", 3, 2, ("a dog runs", "The last one.")),
    )
    assert survey(path, str(tiny_encoder), 8).overlaps == ()


def test_the_chance_of_equal_texts(write: Write) -> None:
    sentences = write("a\nb\na\n a\n")
    assert count_repeats(open_corpus(sentences)) == (4, pytest.approx(6 / 12), "")
    pairs = write("a\tx\na\tx\na\ty\nb\ty\n", "pairs.tsv")
    # of the ordered pairs of rows 6 share the anchor, 4 the positive, 2 both
    assert count_repeats(open_corpus(f"pairs:{pairs}")) == (4, pytest.approx(8 / 12), "")
    assert count_repeats(open_corpus(write("alone\n", "one.txt"))) == (1, 0, "")


def test_what_a_training_text_leaves_out_is_told_before_each_training(
    tmp_path: Path, write: Write
) -> None:
    """By `plan`, and by every sweep: not only by the one that keeps the tokens."""
    write("a\tx\nb\t\n\nc\u200b\tz\n\u200b\t\n", "pairs.tsv")
    write("".join(f"a sentence {number}\n\n" for number in range(99)), "texts.txt")
    halves = "blank lines left out: 2 of 5; pairs without one of the texts left out: 1"
    for name, said in {
        "texts.txt": "blank lines left out: 99 of 198",
        "pairs:pairs.tsv": halves,
    }.items():
        path = tmp_path / "study.yaml"
        path.write_text(f"study: a\ntrainer: {{corpus: '{name}', batch_size: 2, steps: 2}}\n")
        warned = data_warnings(MethodSpec.of(read_study(path)))
        assert any(text.startswith("corpus ") and text.endswith(said) for text in warned), warned


def test_texts_that_are_their_own_negatives_are_told_before_training(
    tmp_path: Path, write: Write
) -> None:
    write("".join(f"a sentence {number}\n" for number in range(400)), "texts.txt")
    settings = "corpus: texts.txt, batch_size: 64, queue_size: 512, evaluate_every: 5"
    path = tmp_path / "study.yaml"
    path.write_text(f"study: a\ntrainer: {{{settings}, steps: 30}}\n")
    [warning] = data_warnings(MethodSpec.of(read_study(path)))
    assert "400 sentences: 0 in its batch of 64 and 0.88 in the queue of 512. MTD" in warning
    path.write_text(f"study: a\ntrainer: {{{settings}, steps: 6}}\n")
    assert data_warnings(MethodSpec.of(read_study(path))) == []
