"""Tokens, prepared once per corpus and tokenizer and shared by every trial and process.

Letters: S sentences, N batch, L tokens.
"""

import hashlib
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from mtdlab.errors import MtdlabError
from mtdlab.text.corpus import Corpus

CHUNK = 8192


@dataclass(frozen=True)
class TokenStore:
    """Token ids (S, L), padded, and lengths (S,), mapped from disk."""

    ids: NDArray[np.int32]
    lengths: NDArray[np.int32]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Ids and attention mask of some sentences, both (N, longest of them)."""
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        ids = torch.from_numpy(self.ids[rows, :longest].astype(np.int64))
        mask = torch.arange(longest) < torch.from_numpy(lengths.astype(np.int64)).unsqueeze(1)
        return ids, mask.long()

    def batches(self, size: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Endless batches of `size`: a fresh permutation an epoch, its ragged end left out.

        Raises MtdlabError where the corpus holds less than one batch.
        """
        if len(self) < size:
            raise MtdlabError(
                f"batch_size {size} exceeds the corpus, which holds {len(self)} sentences"
            )
        random = np.random.default_rng(seed)
        while True:
            order = random.permutation(len(self))
            for start in range(0, len(self) - size + 1, size):
                yield self.batch(order[start : start + size])


def cache_folder() -> Path:
    """Where prepared tokens are kept: MTDLAB_CACHE, or the user's cache folder."""
    if configured := os.environ.get("MTDLAB_CACHE"):
        return Path(configured)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mtdlab"


def tokenise(corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int) -> TokenStore:
    """The corpus' tokens, from the cache where they are there, else prepared and kept there."""
    key = f"{corpus.fingerprint}-{_fingerprint(tokenizer)}-{max_length}"
    folder = cache_folder() / "tokens" / key
    if not folder.is_dir():
        _prepare(corpus, tokenizer, max_length, folder)
    return TokenStore(
        np.load(folder / "ids.npy", mmap_mode="r"), np.load(folder / "lengths.npy"), key
    )


def _fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """What decides which tokens a sentence becomes: vocabulary, lower-casing and the rest."""
    rules: dict[str, Any] = {"vocabulary": tokenizer.get_vocab()}
    if isinstance(tokenizer, PreTrainedTokenizerFast):
        rules = json.loads(tokenizer.backend_tokenizer.to_str())
        # left over from the last call, not part of the tokenizer
        del rules["truncation"], rules["padding"]
    parts = [type(tokenizer).__name__, tokenizer.truncation_side, rules]
    content = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _prepare(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, folder: Path
) -> None:
    """Tokenise in chunks beside the final place, then rename: a crash leaves no half cache."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        lengths = _write_ids(corpus, tokenizer, max_length, building / "ids.npy")
        np.save(building / "lengths.npy", lengths)
        building.rename(folder)
    except OSError:
        # another process finished the same cache first
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _write_ids(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, path: Path
) -> NDArray[np.int32]:
    count = sum(1 for _ in corpus.sentences())
    padding = int(tokenizer.pad_token_id or 0)
    ids = np.lib.format.open_memmap(path, mode="w+", dtype=np.int32, shape=(count, max_length))
    lengths = np.zeros(count, dtype=np.int32)
    for start, chunk in enumerate(_chunks(corpus.sentences())):
        encoded = tokenizer(chunk, truncation=True, max_length=max_length)["input_ids"]
        for row, tokens in enumerate(encoded, start * CHUNK):
            ids[row, : len(tokens)] = tokens
            ids[row, len(tokens) :] = padding
            lengths[row] = len(tokens)
    ids.flush()
    return lengths


def _chunks(sentences: Iterator[str]) -> Iterator[list[str]]:
    while chunk := list(itertools.islice(sentences, CHUNK)):
        yield chunk
