"""The order in which a run reads sentences, with a state that can be saved.

Letters: N batch, L tokens.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mtdlab.corpus.tokens import TokenStore
from mtdlab.methods.base import Tokens
from mtdlab.training.present import check_batch


class BatchOrder:
    """Endless batches: a new permutation of the sentences each epoch, without an incomplete batch.

    Row i of every token store is the same sentence, and a batch has the same rows of each store.
    The state is the generator's state at the start of the epoch, from which the permutation is
    drawn again, and the number of batches read since.
    """

    def __init__(self, stores: Sequence[TokenStore], size: int, seed: int) -> None:
        """Batches of `size` rows of `stores`, one view each. Raises MtdlabError for fewer rows."""
        count = len(stores[0])
        assert all(len(store) == count for store in stores), "row i of each is the same sentence"
        check_batch(count, size)
        self._stores, self._size, self._count = tuple(stores), size, count
        self._per_epoch = count // size
        self._random = np.random.PCG64(seed)
        self._start_epoch()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> tuple[Tokens, ...]:
        """The views of the next batch: one for both branches, or the online and the target one."""
        rows = self.next_rows()
        return tuple(store.batch(rows) for store in self._stores)

    def next_rows(self) -> NDArray[np.int64]:
        """The rows (N,) of the next batch; advances the position."""
        if self._position == self._per_epoch:
            self._start_epoch()
        start = self._position * self._size
        self._position += 1
        return self._order[start : start + self._size]

    def state_dict(self) -> dict[str, Any]:
        numbers = {name: self._at_start[name] for name in ("state", "has_uint32", "uinteger")}
        return {"generator": numbers, "position": self._position}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state. Raises ValueError for a position beyond an epoch of this corpus."""
        position = state["position"]
        if not 0 <= position <= self._per_epoch:
            raise ValueError(
                f"position {position}: an epoch has {self._per_epoch} batches of {self._size}"
            )
        restored: Any = {"bit_generator": "PCG64", **state["generator"]}
        self._random.state = restored
        self._start_epoch()
        self._position = position

    def _start_epoch(self) -> None:
        self._at_start: Any = self._random.state
        # frees the old permutation first: 80 MB for ten million sentences
        self._order = np.empty(0, dtype=np.int64)
        self._order = np.random.Generator(self._random).permutation(self._count)
        self._position = 0
