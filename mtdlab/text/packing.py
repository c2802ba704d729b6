"""Which places of a padded batch are computed, and how rows move between the two layouts.

Letters: N batch, L tokens, P packed rows (real tokens, and a few of padding), D dimension,
H heads, d = D / H, S parts laid side by side (queries, keys, values).
"""

from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor

ROWS = 64
"""Packed rows come in multiples of this: matrix kernels are prepared once per shape."""


class _Move(torch.autograd.Function):
    """Rows to other places, and their gradients back by the inverse move.

    Both ways are a gather: index_select's own gradient would add row after row to zeros.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor, unread: Tensor) -> Tensor:
        """rows[there]; `back` is where each row went, `unread` the rows that went nowhere."""
        ctx.save_for_backward(back, unread)
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """The gradient of `rows`, zero where one is not read."""
        back, unread = ctx.saved_tensors
        return gradient.index_select(0, back).index_fill_(0, unread, 0), None, None, None


def _move(rows: Tensor, there: Tensor, back: Tensor, unread: Tensor) -> Tensor:
    moved: Tensor = _Move.apply(rows, there, back, unread)  # type: ignore[no-untyped-call]
    return moved


@dataclass(frozen=True)
class Packing:
    """A batch whose padding is left out.

    rows       (P,) places in the flattened batch (N L), real tokens first.
    places     (N, L) the packed row of every place; of padding that has none, its [CLS]'s.
    padding    places that have none.
    positions  (P,) where in its sentence each packed row stands.
    first      (N,) each sentence's first token among the packed rows.
    bias       (N H, 1, L) 0 at real tokens and -inf at padding, for attention's scores.
    """

    rows: Tensor
    places: Tensor
    padding: Tensor
    positions: Tensor
    first: Tensor
    bias: Tensor
    heads: int
    _moves: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    @classmethod
    def of(cls, mask: Tensor, heads: int) -> Self:
        """From an attention mask (N, L) whose rows are ones, then zeros.

        On a GPU every row is kept: to count the real ones would make it wait for the processor.
        """
        count, length = mask.shape
        flat = mask.flatten().bool()
        real = len(flat) if mask.is_cuda else int(flat.sum())
        kept = min(-(-real // ROWS) * ROWS, len(flat))
        order = torch.argsort(~flat, stable=True)
        rows, padding = order[:kept], order[kept:]
        places = torch.zeros_like(order)
        places[rows] = torch.arange(kept, device=mask.device)
        lengths = mask.sum(dim=1)
        first = lengths.cumsum(0) - lengths
        # of its own sentence: what is not finite there must not reach another
        places[padding] = first[padding // length]
        bias = torch.zeros(mask.shape, device=mask.device).masked_fill(mask == 0, -torch.inf)
        return cls(
            rows, places.view(count, length), padding, rows % length, first,
            bias.repeat_interleave(heads, dim=0).unsqueeze(1), heads,
        )

    def pack(self, padded: Tensor) -> Tensor:
        """(N, L, D) to (P, D)."""
        return _move(padded.flatten(0, 1), self.rows, self.places.flatten(), self.padding)

    def pad(self, packed: Tensor) -> Tensor:
        """(P, D) to (N, L, D); at padding stands its sentence's first, and gives no gradient."""
        moved = _move(packed, self.places.flatten(), self.rows, self.padding[:0])
        return moved.view(*self.places.shape, -1)

    def split(self, packed: Tensor, parts: int) -> tuple[Tensor, ...]:
        """(P, S D) to S tensors (N H, L, d), as attention's batched products want them."""
        there, back = self._heads(parts)
        small = packed.view(len(packed) * parts * self.heads, -1)
        moved = _move(small, there, back, self.padding[:0])
        shape = (parts, self.bias.shape[0], self.places.shape[1], -1)
        return moved.view(shape).unbind()

    def join(self, split: Tensor) -> Tensor:
        """(N H, L, d) to (P, D)."""
        back, there = self._heads(1)
        unread = self._by_head(self.padding).flatten()
        moved = _move(split.flatten(0, 1), there, back, unread)
        return moved.view(len(self.rows), -1)

    def _heads(self, parts: int) -> tuple[Tensor, Tensor]:
        """Where `split` takes each row of d from, and where it puts it."""
        if parts not in self._moves:
            part = torch.arange(parts, device=self.rows.device).view(-1, 1, 1, 1)
            head = torch.arange(self.heads, device=self.rows.device).view(-1, 1)
            there = (self.places[:, None] * parts + part) * self.heads + head
            steps = part.view(-1, 1) * self.places.numel() * self.heads
            back = self._by_head(self.rows).unsqueeze(1) + steps
            self._moves[parts] = there.flatten(), back.flatten()
        return self._moves[parts]

    def _by_head(self, places: Tensor) -> Tensor:
        """Where places (R,) of the batch stand among rows (N H L), (R, H)."""
        length = self.places.shape[1]
        head = torch.arange(self.heads, device=places.device)
        sentence, token = (places // length).unsqueeze(1), (places % length).unsqueeze(1)
        return (sentence * self.heads + head) * length + token
