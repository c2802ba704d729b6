"""The prepared tokens of a corpus: batches of them, read from the disk.

Letters: S sentences, N batch, L tokens.
"""

import mmap
import os
import weakref
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

MAPPED = 1 << 27
"""Bytes of token ids that a process may map: two million sentences, 32 tokens long."""

ROWS = 1 << 18
"""Sentences that are counted at once."""

Batch = tuple[Tensor, Tensor]
"""Token ids and attention mask, both (N, L)."""


@dataclass(frozen=True)
class TokenStore:
    """Token ids (S, L), padded, and lengths (S,), mapped from disk."""

    ids: NDArray[np.integer]
    lengths: NDArray[np.int32]
    fingerprint: str

    def __len__(self) -> int:
        return len(self.lengths)

    def batch(self, rows: NDArray[np.int64]) -> Batch:
        """Ids and attention mask of some sentences, both (N, longest of them)."""
        lengths = self.lengths[rows]
        longest = int(lengths.max())
        ids = torch.from_numpy(self._rows(rows)[:, :longest].astype(np.int64))
        mask = torch.arange(longest) < torch.from_numpy(lengths.astype(np.int64)).unsqueeze(1)
        return ids, mask.long()

    def share_of(self, token: int) -> float:
        """Share, 0 to 1, of a token id among all tokens, special ones included, not padding."""
        found = 0
        for first in range(0, len(self), ROWS):
            found += int(np.count_nonzero(self.ids[first : first + ROWS] == token))
            if self._is_large:
                # the pages would add up to the whole file
                self.ids.base.madvise(mmap.MADV_DONTNEED)  # type: ignore[union-attr]
        return found / int(self.lengths.sum())

    @property
    def _is_large(self) -> bool:
        return self.ids.nbytes > MAPPED and isinstance(self.ids, np.memmap)

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[np.integer]:
        """Ids (N, L) of some sentences.

        Those of a large file are read one by one: a mapping would take a large part of the file
        into the memory of the process with each batch, since Linux maps the surroundings of a page
        too, up to 2 MB, and it takes 2 to 5 times as long.
        """
        if not self._is_large:
            return self.ids[rows]
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
