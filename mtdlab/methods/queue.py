"""The queue of keys: a ring buffer; one that fills as in the published program; its clusters.

Letters: N batch, K queue, V rows valid so far (V <= K), k clusters, D dimension.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize, one_hot

Slices = Sequence[tuple[int, int]]
"""Half-open ranges of positions that enter the loss once the queue is full; none: all positions."""


class KeyQueue(nn.Module):
    """A first-in, first-out queue of K unit vectors; position 0 is the newest.

    The state dict contains its whole state (bank, cursor, count). It starts with `initial` random
    unit vectors, which are replaced like other keys, and grows by N per step until it is full. K
    need not be a multiple of N.
    """

    bank: Tensor
    positions: Tensor

    def __init__(self, size: int, dimension: int, *, initial: int = 0, slices: Slices = ()) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("bank", torch.zeros(size, dimension))
        positions = [at for first, last in slices for at in range(first, last)]
        self.register_buffer("positions", torch.tensor(positions), persistent=False)
        # integers, not tensors: reading them at every step would synchronise with the GPU
        self._cursor = self._count = 0
        self.enqueue(normalize(torch.randn(initial, dimension), dim=1))

    @property
    def fill(self) -> int:
        """The number of valid rows, V."""
        return self._count

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """Insert keys (N, D) at position 0, the first the newest; drop the oldest beyond K."""
        newest_last = keys[: self.size].flip(0)
        until_end = self.size - self._cursor
        self.bank[self._cursor : self._cursor + len(newest_last)] = newest_last[:until_end]
        self.bank[: max(0, len(newest_last) - until_end)] = newest_last[until_end:]
        if self.size:
            self._cursor = (self._cursor + len(newest_last)) % self.size
        self._count = min(self.size, self._count + len(newest_last))

    def negatives(self) -> Tensor:
        """The keys that enter the loss, (V, D): valid rows, of a full queue those in a slice."""
        if len(self.positions) == 0 or self._count < self.size:
            return self.bank[: self._count]
        return self.bank[(self._cursor - 1 - self.positions) % self.size]

    def ordered(self) -> Tensor:
        """The valid rows by position, newest first, (V, D)."""
        positions = torch.arange(self._count, device=self.bank.device)
        return self.bank[(self._cursor - 1 - positions) % max(1, self.size)]

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self._cursor, self._count])

    def set_extra_state(self, state: Tensor) -> None:
        self._cursor, self._count = (int(value) for value in state)


class PublishedQueue(KeyQueue):
    """The queue as filled by the program published with MoCoSE.

    It starts with K random rows (none if `initial`, K_s, is 0) and a counter at K_s. The newest
    counter + K_s rows are used while these are fewer than K, else all rows. Each step inserts N
    keys at the front and increases the counter by N; only when the counter exceeds K are the rows
    cut to K. Hence twice as many random rows are used as K_s states, and up to 2K − K_s rows are
    used before the first cut. Slices apply from the first step that would use K rows on.
    """

    _counter = 0

    def __init__(self, size: int, dimension: int, *, initial: int = 0, slices: Slices = ()) -> None:
        drawn = size if initial else 0
        super().__init__(drawn + size - initial, dimension, initial=drawn, slices=slices)
        self.limit, self.initial, self._counter = size, initial, initial

    @property
    def fill(self) -> int:
        """The number of rows used, V; above K for some steps."""
        if self._counter + self.initial < self.limit:
            return self._counter + self.initial
        return self._count if self._counter <= self.limit else self.limit

    def enqueue(self, keys: Tensor) -> None:
        super().enqueue(keys)
        self._counter += len(keys)

    def negatives(self) -> Tensor:
        """The keys that enter the loss, (V, D), newest first."""
        used = self.ordered()[: self.fill]
        return used[self.positions] if len(self.positions) and len(used) >= self.limit else used

    def get_extra_state(self) -> Tensor:
        return torch.tensor([self._cursor, self._count, self._counter])

    def set_extra_state(self, state: Tensor) -> None:
        self._cursor, self._count, self._counter = (int(value) for value in state)


def find_ages(size: int, batch: int, steps: int, slices: Slices = ()) -> tuple[int, int]:
    """Mean and greatest age in steps of the keys in a queue of K that got N in each of some steps.

    The newest keys are 1 step old; random ones that the queue started with do not count. Without a
    key in the queue, or in the slices, there are those of the batch itself, 0 steps old.
    """
    filled = min(size, steps * batch)
    parts = [np.arange(first, min(last, filled)) for first, last in slices or [(0, size)]]
    ages = np.concatenate(parts) // batch + 1
    return (round(float(ages.mean())), int(ages.max())) if len(ages) else (0, 0)


ROUNDS = 10
"""Iterations of Lloyd's algorithm. Fixed, because a convergence test would synchronise with the GPU
at every iteration."""


@torch.no_grad()
def centroids(keys: Tensor, count: int) -> Tensor:
    """Normalised k-means centroids (k, D) of unit keys (V, D); the keys themselves if V <= k.

    Lloyd's algorithm, initialised with evenly spaced rows and therefore deterministic; k 1 gives
    the mean. An empty cluster keeps its centroid. Source: later slides by MoCoSE's authors.
    """
    total = len(keys)
    if total <= count:
        return keys
    centres = keys[torch.arange(count, device=keys.device) * total // count]
    for _ in range(ROUNDS):
        # the nearest centre c has the greatest x·c − |c|²/2
        nearest = (keys @ centres.T - centres.square().sum(dim=1) / 2).argmax(dim=1)
        members = one_hot(nearest, count).to(keys.dtype)
        sizes = members.sum(dim=0).unsqueeze(1)
        centres = torch.where(sizes > 0, members.T @ keys / sizes.clamp(min=1), centres)
    return normalize(centres, dim=1)
