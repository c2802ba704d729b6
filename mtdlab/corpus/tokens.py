"""Tokens, prepared once per corpus and tokenizer and shared by every trial and process.

Several processes may prepare tokens at once. Each locks the folder that it writes; the system
releases the lock when the process ends, however it ends.

Letters: S sentences, N batch, L tokens.
"""

import fcntl
import itertools
import json
import mmap
import os
import shutil
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from mtdlab.analysis.data.defaults import cache_folder
from mtdlab.corpus.corpus import Corpus, chunks, fingerprint_of
from mtdlab.corpus.lines import Tally
from mtdlab.encoders.tokenising import token_ids
from mtdlab.errors import MtdlabError
from mtdlab.files import new_folder, temporary_folders
from mtdlab.methods.base import Tokens
from mtdlab.terminal import begin_phase

YOUNG_SECONDS = 60.0
"""The age in seconds below which a folder may be one that its process has yet to lock."""


@contextmanager
def hold(folder: Path) -> Iterator[bool]:
    """Lock a folder until the block ends; False where another process holds it, or none can.

    Raises OSError where the folder cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    locked = False
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        yield locked
    finally:
        os.close(descriptor)


def remove_abandoned(parent: Path) -> None:
    """Remove the temporary folders of `new_folder` in a folder that no process holds."""
    for folder in temporary_folders(parent):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > YOUNG_SECONDS:
                with hold(folder) as is_free:
                    if is_free:
                        shutil.rmtree(folder, ignore_errors=True)


MAPPED = 1 << 27
"""The most bytes of token ids that a process maps: two million sentences, 32 tokens long."""

ROWS = 1 << 18
"""How many sentences are counted at once."""


@dataclass(frozen=True)
class TokenStore:
    """Token ids (S, L), padded, and lengths (S,), mapped from disk."""

    ids: NDArray[np.integer]
    lengths: NDArray[np.int32]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: NDArray[np.int64]) -> Tokens:
        """Ids and attention mask of some sentences, both (N, longest of them)."""
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        ids = torch.from_numpy(self._rows(rows)[:, :longest].astype(np.int64))
        mask = torch.arange(longest) < torch.from_numpy(lengths.astype(np.int64)).unsqueeze(1)
        return ids, mask.long()

    def share_of(self, token: int) -> float:
        """Share, 0 to 1, of a token id among all tokens, special ones included, not padding."""
        count = 0
        for first in range(0, len(self), ROWS):
            count += int(np.count_nonzero(self.ids[first : first + ROWS] == token))
            if self._is_large:
                # the pages would add up to the whole file
                self.ids.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
        return count / int(self.lengths.sum())

    @property
    def _is_large(self) -> bool:
        return self.ids.nbytes > MAPPED and isinstance(self.ids, np.memmap)

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[np.integer]:
        """Ids (N, L) of some sentences."""
        if not self._is_large:
            return self.ids[rows]
        # a mapping would take much of a large file into memory with each batch, since Linux maps
        # up to 2 MB around a page, and would take 2 to 5 times as long
        width = self.ids.itemsize * self.ids.shape[1]
        places = (self.ids.offset + width * rows).tolist()  # type: ignore[attr-defined]
        read = b"".join([os.pread(self._descriptor, width, place) for place in places])
        return np.frombuffer(read, self.ids.dtype).reshape(len(rows), -1)

    @cached_property
    def _descriptor(self) -> int:
        """The open file of a mapped array."""
        opened = os.open(str(self.ids.filename), os.O_RDONLY)  # type: ignore[attr-defined]
        weakref.finalize(self, os.close, opened)
        return opened


FORMAT = 4
"""A part of a cache's name; it is raised when lines are read, or tokens kept, otherwise."""


def tokenise(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, prompt: str = ""
) -> TokenStore:
    """The corpus' tokens, from the cache where they are there, else prepared and kept there.

    Raises MtdlabError where a file turns out damaged, or the cache's folder cannot be read or
    written.
    """
    folder = token_folder(corpus, tokenizer, max_length, prompt)
    remove_abandoned(folder.parent)
    if not folder.is_dir():
        begin_phase(f"tokenising corpus {corpus.name}")
        try:
            with new_folder(folder) as building, hold(building):
                _write(corpus, tokenizer, max_length, prompt, building)
        except OSError as error:
            # another process may have finished the same cache first
            if not folder.is_dir():
                raise MtdlabError(
                    f"tokens cannot be kept in {folder.parent}: {error.strerror or error}; "
                    "free some space, or set MTDLAB_CACHE to another folder"
                ) from None
    try:
        lengths = np.memmap(folder / "lengths", np.int32, "r")
        ids = np.memmap(folder / "ids", _id_type(tokenizer), "r", shape=(len(lengths), max_length))
        if ids.nbytes != (folder / "ids").stat().st_size:
            raise ValueError
    except (OSError, ValueError):
        raise MtdlabError(
            f"the kept tokens in {folder} are damaged; delete that folder and run again"
        ) from None
    return TokenStore(ids, lengths, folder.name)


def token_folder(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, prompt: str = ""
) -> Path:
    """The folder in which a corpus' tokens are kept once they are prepared."""
    key = f"{FORMAT}-{corpus.fingerprint}-{_fingerprint(tokenizer)}-{max_length}"
    if prompt:
        key += f"-{fingerprint_of(prompt)}"
    return cache_folder() / "tokens" / key


def _fingerprint(tokenizer: PreTrainedTokenizerBase) -> str:
    """A digest of what decides which tokens a sentence becomes, such as the vocabulary."""
    rules: dict[str, Any] = {"vocabulary": tokenizer.get_vocab()}
    if isinstance(tokenizer, PreTrainedTokenizerFast):
        rules = json.loads(tokenizer.backend_tokenizer.to_str())
        # left over from the last call, not part of the tokenizer
        del rules["truncation"], rules["padding"]
    parts = [type(tokenizer).__name__, tokenizer.truncation_side, rules]
    return fingerprint_of(json.dumps(parts, sort_keys=True))


def _id_type(tokenizer: PreTrainedTokenizerBase) -> type[np.integer]:
    """Two bytes where the vocabulary allows it, as nearly all do: half the disk and memory."""
    return np.uint16 if len(tokenizer) <= 1 << 16 else np.int32


def _write(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int, prompt: str, folder: Path
) -> None:
    """Write the files ids (S, L) and lengths (S,), chunk by chunk, reading the corpus once."""
    tally, kind = Tally(), _id_type(tokenizer)
    padding = int(tokenizer.pad_token_id or 0)
    with (folder / "ids").open("wb") as ids, (folder / "lengths").open("wb") as lengths:
        for chunk in chunks(corpus, tally):
            encoded = token_ids(tokenizer, chunk, max_length, prompt)
            counts = np.fromiter(map(len, encoded), np.int32, len(encoded))
            rows = np.full((len(encoded), max_length), padding, kind)
            real = np.arange(max_length) < counts[:, None]
            rows[real] = np.fromiter(itertools.chain.from_iterable(encoded), kind)
            ids.write(rows.data)
            lengths.write(counts.data)
