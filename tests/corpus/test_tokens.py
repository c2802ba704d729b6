"""Prepared tokens: kept once, mapped from disk, in bounded memory."""

import copy
import errno
import gzip
import mmap
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertTokenizer, PreTrainedTokenizerBase

from mtdlab.corpus import corpus as corpora
from mtdlab.corpus import tokens as module
from mtdlab.corpus.corpus import Corpus, open_corpus
from mtdlab.corpus.tokens import TokenStore, hold, tokenise
from mtdlab.device import choose_device
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings
from mtdlab.training.batches import BatchOrder
from tests.corpus.conftest import Write

Prepare = Callable[..., TokenStore]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path))
    return tmp_path / "tokens"


@pytest.fixture
def corpus(tiny_corpus: Path) -> Corpus:
    return open_corpus(str(tiny_corpus))


@pytest.fixture
def prepare(corpus: Corpus, tokenizer: PreTrainedTokenizerBase) -> Prepare:
    return lambda max_length=8, tokenizer=tokenizer: tokenise(corpus, tokenizer, max_length)


@pytest.fixture
def store(prepare: Prepare) -> TokenStore:
    return prepare()


def test_rows_are_the_tokenizers_padded_on_the_right(
    store: TokenStore, corpus: Corpus, tokenizer: PreTrainedTokenizerBase
) -> None:
    assert isinstance(store.ids, np.memmap)
    assert store.ids.shape == (60, 8)
    for row, sentence in enumerate(corpus.sentences()):
        ids = tokenizer(sentence, truncation=True, max_length=8)["input_ids"]
        assert store.lengths[row] == len(ids)
        assert store.ids[row].tolist() == ids + [0] * (8 - len(ids))
    assert store.lengths.max() == 8
    assert store.lengths.min() < 8


def test_what_killed_processes_left_is_removed_and_what_others_write_is_kept(
    prepare: Prepare, folder: Path
) -> None:
    left, written, young = (folder / f".{name}.building-x" for name in ("left", "held", "young"))
    for path in (left, written, young):
        path.mkdir(parents=True)
        (path / "ids").write_bytes(b"x")
        os.utime(path, (1, 1))
    os.utime(young)
    with hold(written):
        prepare()
        assert [path.exists() for path in (left, written, young)] == [False, True, True]
    prepare()
    assert not written.exists()


@pytest.mark.parametrize(("name", "size"), [("SENTENCES", 7), ("CHARACTERS", 100)])
def test_chunks_do_not_show(
    store: TokenStore,
    prepare: Prepare,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
    size: int,
) -> None:
    monkeypatch.setattr(corpora, f"CHUNK_{name}", size)
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path / "other"))
    again = prepare()
    assert np.array_equal(store.ids, again.ids)
    assert np.array_equal(store.lengths, again.lengths)


def test_a_second_call_does_not_tokenise(
    store: TokenStore, prepare: Prepare, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Mock(side_effect=module._write)
    monkeypatch.setattr(module, "_write", write)
    again = prepare()
    assert not write.called
    assert again.fingerprint == store.fingerprint
    assert np.array_equal(again.ids, store.ids)
    prepare(9)
    assert write.call_count == 1


def test_another_tokenizer_or_corpus_is_another_cache(
    store: TokenStore, prepare: Prepare, tokenizer: PreTrainedTokenizerBase, write: Write
) -> None:
    vocabulary = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)
    cased = BertTokenizer(vocab=write("\n".join(vocabulary), "words.txt"), do_lower_case=False)
    assert cased.get_vocab() == tokenizer.get_vocab()
    assert prepare(tokenizer=cased).fingerprint != store.fingerprint
    other = open_corpus(write("a dog\na cat\n"))
    assert tokenise(other, tokenizer, 8).fingerprint != store.fingerprint


def test_a_batch_is_as_long_as_its_longest(store: TokenStore) -> None:
    shortest = np.argsort(store.lengths, kind="stable")[:3].astype(np.int64)
    ids, mask = store.batch(shortest)
    longest = int(store.lengths[shortest].max())
    assert ids.shape == mask.shape == (3, longest)
    assert ids.dtype == mask.dtype == torch.int64
    assert mask.sum(dim=1).tolist() == store.lengths[shortest].tolist()
    assert torch.equal(mask.bool(), ids != 0)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc to read memory from")
def test_a_large_file_is_not_kept_in_memory(
    prepare: Prepare, store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> int:
        maps = Path("/proc/self/smaps").read_text().split(f"{store.fingerprint}/ids\n")[1:]
        return sum(int(entry.split("\nRss:")[1].split()[0]) for entry in maps)

    rows = np.array([3, 59, 0, 3])
    before, share = store.batch(rows), store.share_of(2)
    assert kept() > 0
    store.ids.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
    monkeypatch.setattr(module, "MAPPED", 0)
    large = prepare()
    assert all(map(torch.equal, before, large.batch(rows)))
    assert kept() == 0
    assert large.share_of(2) == share
    assert kept() == 0


def test_two_at_once_leave_one_cache(
    corpus: Corpus, tiny_encoder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Barrier(2, timeout=20)
    real = module._write

    def together(*arguments: Any) -> Any:
        both.wait()
        return real(*arguments)

    monkeypatch.setattr(module, "_write", together)
    tokenizers = [AutoTokenizer.from_pretrained(tiny_encoder) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda one: tokenise(corpus, one, 8), tokenizers)
    assert np.array_equal(first.ids, second.ids)
    assert [path.name for path in folder.iterdir()] == [first.fingerprint]


def test_a_failure_leaves_nothing_behind(
    prepare: Prepare, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    monkeypatch.setattr(module, "_write", Mock(side_effect=full))
    message = r"No space left on device: [\d.]+ MB are free in .*; free some space, or set MTD"
    with pytest.raises(MtdlabError, match=message):
        prepare()
    assert not list(folder.iterdir())


def test_a_cache_that_cannot_be_made_is_one_sentence(prepare: Prepare, folder: Path) -> None:
    folder.write_text("a file stands here")
    with pytest.raises(MtdlabError, match=r"tokens cannot be kept in .*: File exists; free some"):
        prepare()


def test_a_corpus_found_damaged_leaves_nothing_behind(
    tokenizer: PreTrainedTokenizerBase, write: Write, folder: Path
) -> None:
    path = write(gzip.compress(b"a dog runs\n" * 100)[:-1], "corpus.gz")
    with pytest.raises(MtdlabError, match=r"corpus.gz: the gzip file is damaged"):
        tokenise(open_corpus(path), tokenizer, 8)
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_ids_take_two_bytes_where_the_vocabulary_allows(
    store: TokenStore, prepare: Prepare, tokenizer: PreTrainedTokenizerBase
) -> None:
    assert store.ids.dtype == np.uint16
    larger = copy.deepcopy(tokenizer)
    larger.add_tokens([f"extra{number}" for number in range(1 << 16)])
    wide = prepare(tokenizer=larger)
    assert wide.ids.dtype == np.int32
    assert np.array_equal(wide.ids, store.ids)
    assert isinstance(wide.lengths, np.memmap)


@pytest.mark.parametrize("name", ["ids", "lengths"])
@pytest.mark.parametrize("change", [-4, 4])
def test_a_file_of_another_size_is_damaged(
    store: TokenStore, prepare: Prepare, folder: Path, name: str, change: int
) -> None:
    path = folder / store.fingerprint / name
    os.truncate(path, path.stat().st_size + change)
    with pytest.raises(MtdlabError, match=r"the kept tokens in .* are damaged; delete that folder"):
        prepare()


LINES = int(os.environ.get("MTDLAB_LINES", 10**7))
BATCH = 4096
MOST_GROWTH = 300_000_000
"""Bytes over what the process holds before."""
PIECE = 20_000


@pytest.mark.parametrize("lines", [PIECE, pytest.param(LINES, marks=pytest.mark.slow)])
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
