"""Which places of a padded batch are computed, and how rows move between the two layouts.

Letters: N batch, L tokens, P packed rows (real tokens, and a few of padding), D dimension,
H heads, d = D / H, S parts laid side by side (queries, keys, values).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

ROWS = 64
"""Packed rows come in multiples of this: matrix kernels are prepared once per shape."""


@dataclass(frozen=True)
class Packing:
    """A batch whose padding is left out.

    rows       (P,) places in the flattened batch (N L), real tokens first.
    places     (N, L) the packed row of every place; of padding that has none, its [CLS]'s.
    positions  (P,) the position in its sentence of each packed row.
    first      (N,) each sentence's first token among the packed rows.
    bias       (N H, 1, L) 0 at real tokens and -inf at padding, for attention's scores.
    """

    rows: Tensor
    places: Tensor
    positions: Tensor
    first: Tensor
    bias: Tensor
    heads: int
    _split: dict[int, Tensor] = field(default_factory=dict)

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
            rows,
            places.view(count, length),
            rows % length,
            first,
            bias.repeat_interleave(heads, dim=0).unsqueeze(1),
            heads,
        )

    def pack(self, padded: Tensor) -> Tensor:
        """(N, L, D) to (P, D)."""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def pad(self, packed: Tensor) -> Tensor:
        """(P, D) to (N, L, D); padding holds its sentence's first, which is never read."""
        return packed.index_select(0, self.places.flatten()).view(*self.places.shape, -1)

    def split(self, packed: Tensor, parts: int) -> tuple[Tensor, ...]:
        """(P, S D) to S tensors (N H, L, d), the layout of attention's batched products."""
        small = packed.view(len(packed) * parts * self.heads, -1)
        shape = (parts, self.bias.shape[0], self.places.shape[1], -1)
        return small.index_select(0, self._by_part(parts)).view(shape).unbind()

    def join(self, split: Tensor) -> Tensor:
        """(N H, L, d) to (P, D)."""
        return split.flatten(0, 1).index_select(0, self._joined).view(len(self.rows), -1)

    def _by_part(self, parts: int) -> Tensor:
        """The row of d at each place of `split`'s result, (S N H L,); made once."""
        if parts not in self._split:
            part = torch.arange(parts, device=self.rows.device).view(-1, 1, 1, 1)
            head = torch.arange(self.heads, device=self.rows.device).view(-1, 1)
            rows = (self.places[:, None] * parts + part) * self.heads + head
            self._split[parts] = rows.flatten()
        return self._split[parts]

    @cached_property
    def _joined(self) -> Tensor:
        """The place of each packed row's parts of d among rows (N H L), (P H,)."""
        length = self.places.shape[1]
        head = torch.arange(self.heads, device=self.rows.device)
        sentence, token = (self.rows // length).unsqueeze(1), self.positions.unsqueeze(1)
        return ((sentence * self.heads + head) * length + token).flatten()
