"""A corpus counted, held against counting by hand."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from mtdlab.corpus import corpus
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.survey import Bin, survey
from mtdlab.errors import MtdlabError


@pytest.mark.parametrize("size", [7, 8192])
def test_counts_are_those_of_counting_by_hand(
    tiny_encoder: Path,
    tiny_sentences: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(corpus, "CHUNK_SENTENCES", size)
    sentences = [*tiny_sentences, " ".join(tiny_sentences), tiny_sentences[3], tiny_sentences[3]]
    path = tmp_path / "corpus.txt"
    path.write_bytes("\n\n".join(sentences).encode() + b"\na \xff\0\n")
    found = survey(str(path), str(tiny_encoder), 8)
    sentences.append("a \ufffd")
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    lengths = np.array([len(tokenizer(one, verbose=False)["input_ids"]) for one in sentences])
    assert (found.lines, found.blank) == (len(sentences) + 62, 62)
    assert (found.cut, found.bad_bytes, found.nuls) == (0, 1, 1)
    assert found.sentences == len(sentences)
    assert found.duplicates == len(sentences) - len(set(sentences)) >= 2
    assert found.characters == sum(map(len, sentences))
    assert (found.tokens, found.longest) == (lengths.sum(), lengths.max())
    assert found.too_long == (lengths > 8).sum() > 1
    assert found.fingerprint == open_corpus(str(path)).fingerprint
    assert sum(one.sentences for one in found.histogram) == len(sentences)
    assert found.histogram[0] == Bin(1, 8, (lengths <= 8).sum())
    assert found.histogram[-1] == Bin(257, 512, 1)
    assert json.loads(json.dumps(asdict(found)))["histogram"][-1]["sentences"] == 1


def test_above_the_last_edge_a_bin_is_open(tiny_encoder: Path, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("a dog\n" + "dog " * 511 + "\n")
    found = survey(str(path), str(tiny_encoder), 513)
    assert found.longest == 513
    assert found.too_long == 0
    assert found.histogram[-1] == Bin(513, None, 1)
    assert survey(str(path), str(tiny_encoder), 512).too_long == 1


def test_words_that_the_vocabulary_lacks_are_counted(tiny_encoder: Path, tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("a zebra sees the dog\nthe cat\nzebra\n")
    found = survey(str(path), str(tiny_encoder), 32)
    assert (found.unknown, found.tokens) == (3, 7 + 4 + 3)


def test_a_missing_encoder_is_said(tiny_corpus: Path) -> None:
    with pytest.raises(MtdlabError, match="encoder no/such: neither a folder here nor in the"):
        survey(str(tiny_corpus), "no/such", 32)
