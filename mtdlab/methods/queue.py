"""The queue of keys: a ring buffer that hands out only what was put in; and the published one.

Letters: N batch, K queue, V rows valid so far (V <= K), D dimension.
"""

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize


def parse_slices(text: str) -> list[tuple[int, int]] | None:
    """Half-open ranges of queue positions, 0 the newest; None for "all".

    Raises ValueError where the text is neither "all" nor ranges such as "0-256,768-1024".
    """
    if text == "all":
        return None
    slices = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not (dash and first.isdigit() and last.isdigit() and int(first) < int(last)):
            raise ValueError(f'{part.strip()!r} is no range; write "all" or "0-256,768-1024"')
        slices.append((int(first), int(last)))
    if any(start < end for (_, end), (start, _) in itertools.pairwise(slices)):
        raise ValueError(f"{text!r}: ranges must ascend and not overlap, or keys count twice")
    return slices


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
        self.register_buffer("bank", torch.zeros(size, dimension))
        self.register_buffer("positions", torch.tensor(_positions(slices)), persistent=False)
        # plain integers: the loop reads them every step and must not wait for a GPU
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


class PublishedQueue(nn.Module):
    """The queue as the program published with MoCoSE fills it.

    It begins with K rows of noise, none where `initial` (K_s) is 0, and a counter at K_s. The
    newest counter + K_s rows are used while these are fewer than K, else all that are there.
    N keys a step go in front and are counted; only a counter above K cuts the rows to K. So noise
    serves twice as much as K_s says, and before the first cut up to 2K − K_s rows are used.
    """

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
        """Arguments as a KeyQueue's. Slices count from the first step that would use K rows."""
        super().__init__()
        self.size, self.initial = size, initial
        self.register_buffer("positions", torch.tensor(_positions(slices)), persistent=False)
        noise = size if initial else 0
        self.rows = KeyQueue(noise + size - initial, dimension, initial=noise, generator=generator)
        self._counter = initial

    @property
    def fill(self) -> int:
        """How many rows are used: V, above K for some steps."""
        if not self._whole:
            return self._counter + self.initial
        return self.rows.fill if self._counter <= self.size else self.size

    @property
    def _whole(self) -> bool:
        return self._counter + self.initial >= self.size

    def enqueue(self, keys: Tensor) -> None:
        """Put keys (N, D) in front, the first the newest."""
        self.rows.enqueue(keys)
        self._counter += len(keys)

    def negatives(self) -> Tensor:
        """The keys that enter the loss, (V, D), newest first."""
        ordered = self.rows.ordered()[: self.fill]
        return ordered[self.positions] if len(self.positions) and self._whole else ordered

    def get_extra_state(self) -> Tensor:
        """The counter, for the state dict."""
        return torch.tensor([self._counter])

    def set_extra_state(self, state: Tensor) -> None:
        """Take the counter back from a state dict."""
        self._counter = int(state)


def _positions(slices: Sequence[tuple[int, int]] | None) -> list[int]:
    return [at for first, last in slices or [] for at in range(first, last)]
