"""The queue of keys: a ring buffer that hands out only what was put in.

Letters: N batch, K queue, V rows valid so far (V <= K), D dimension.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


class KeyQueue(nn.Module):
    """A first-in, first-out bank of K unit vectors; position 0 is the newest.

    Its whole state (bank, cursor, count) travels in a state dict. It
    begins with `initial` random unit vectors, as if they had been the latest keys, and grows
    by N a step until it is full; K need not be a multiple of N.
    """

    bank: Tensor
    positions: Tensor

    def __init__(
        self,
        size: int,
        dimension: int,
        *,
        initial: int = 0,
        slices: Sequence[tuple[int, int]] | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        """An empty bank, or one holding `initial` random keys.

        `slices` are half-open ranges of positions that enter the loss once the queue is full.
        """
        super().__init__()
        self.size = size
        positions = [at for first, last in slices or [] for at in range(first, last)]
        self.register_buffer("bank", torch.zeros(size, dimension))
        self.register_buffer("positions", torch.tensor(positions), persistent=False)
        # kept on the processor: the loop reads them every step and must not wait for a GPU
        self._cursor = self._count = 0
        self.enqueue(normalize(torch.randn(initial, dimension, generator=generator), dim=1))

    @property
    def fill(self) -> int:
        """How many rows are valid: V."""
        return self._count

    @torch.no_grad()
    def enqueue(self, keys: Tensor) -> None:
        """Put keys (N, D) in front, the first the newest; what exceeds K falls off the end."""
        newest_last = keys[: self.size].flip(0)
        room = self.size - self._cursor
        self.bank[self._cursor : self._cursor + len(newest_last)] = newest_last[:room]
        self.bank[: max(0, len(newest_last) - room)] = newest_last[room:]
        if self.size:
            self._cursor = (self._cursor + len(newest_last)) % self.size
        self._count = min(self.size, self._count + len(newest_last))

    def negatives(self) -> Tensor:
        """The keys that enter the loss, (V, D), in no particular order.

        All valid rows until the queue is full; then those whose position lies in a slice.
        """
        if len(self.positions) == 0 or self._count < self.size:
            return self.bank[: self._count]
        return self.bank[(self._cursor - 1 - self.positions) % self.size]

    def ordered(self) -> Tensor:
        """The valid rows by position, newest first, (V, D)."""
        positions = torch.arange(self._count, device=self.bank.device)
        return self.bank[(self._cursor - 1 - positions) % max(1, self.size)]

    def get_extra_state(self) -> Tensor:
        """Cursor and count, for the state dict."""
        return torch.tensor([self._cursor, self._count])

    def set_extra_state(self, state: Tensor) -> None:
        """Take cursor and count back from a state dict."""
        self._cursor, self._count = (int(value) for value in state)
