"""A corpus of many lines: tokenised and read in bounded memory, every sentence once an epoch."""

import os
from pathlib import Path

import numpy as np
import pytest
from transformers import AutoTokenizer

from mtdlab.config import make_settings
from mtdlab.corpus.corpus import open_corpus
from mtdlab.corpus.tokens import tokenise
from mtdlab.device import choose_device
from mtdlab.training.batches import BatchOrder

LINES = int(os.environ.get("MTDLAB_LINES", 10**7))
BATCH = 4096
MOST_GROWTH = 300_000_000
"""Bytes over what the process holds before."""
PIECE = 100_000


@pytest.mark.parametrize("lines", [10**5, pytest.param(LINES, marks=pytest.mark.slow)])
def test_memory_is_bounded_and_an_epoch_is_a_permutation(
    tiny_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int
) -> None:
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "many.txt"
    # lines of different lengths, so that a row can be told by its tokens
    piece = "".join(f"the cat {'sleeps ' * (number % 5)}near a dog\n" for number in range(PIECE))
    with path.open("w", encoding="utf-8") as file:
        for _ in range(lines // PIECE):
            file.write(piece)
    tokenizer = AutoTokenizer.from_pretrained(tiny_encoder)
    device = choose_device(make_settings(device="cpu"))
    # everything is loaded that is loaded once
    beginning = tmp_path / "beginning.txt"
    beginning.write_text("".join(piece.splitlines(keepends=True)[:1000]))
    tokenise(open_corpus(str(beginning)), tokenizer, 16)
    if not device.reset_peak_memory():
        pytest.skip("this system cannot begin a new peak")
    before = device.peak_memory()
    store = tokenise(open_corpus(str(path)), tokenizer, 16)
    order = BatchOrder([store], BATCH, seed=0)
    seen = np.zeros(len(store), dtype=np.int8)
    for _ in range(len(store) // BATCH):
        seen[order.next_rows()] += 1
    for _ in range(20):
        ((ids, mask),) = next(order)
        assert ids.shape == mask.shape
    grown = device.peak_memory() - before
    print(f"\n{lines:,} lines: {grown / 1e6:.0f} MB more memory")
    assert len(store) == lines
    # the rest of a division by the batch size is left out of an epoch
    assert np.bincount(seen, minlength=2).tolist() == [lines % BATCH, lines - lines % BATCH]
    assert grown < MOST_GROWTH
