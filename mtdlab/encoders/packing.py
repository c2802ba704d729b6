"""Packing: conversion between padded batches and rows without padding.

Letters: N batch, L tokens, P packed rows (real tokens, and a few of padding), D dimension,
H heads, d = D / H, S concatenated parts (queries, keys, values).
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

ROWS = 64
"""P is a multiple of this, because matrix kernels are prepared for each shape."""


@dataclass(frozen=True)
class Packing:
    """The indices that convert between a padded batch and its packed rows.

    rows       (P,) index of each packed row in the flattened batch (N L), real tokens first.
    places     (N, L) index of the packed row of every token; for padding that is not packed, that
               of the sentence's [CLS].
    positions  (P,) position of each packed row in its sentence.
    first      (N,) index of the packed row of each sentence's first token.
    bias       (N H, 1, L) 0 at real tokens and -inf at padding, added to attention scores.
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

        On a GPU all rows are kept, because counting the real ones would synchronise with the CPU.
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
        # of the same sentence, so that values that are not finite do not reach other sentences
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
        """(P, D) to (N, L, D); padding contains the vector of [CLS], which is not used."""
        return packed.index_select(0, self.places.flatten()).view(*self.places.shape, -1)

    def split(self, packed: Tensor, parts: int) -> tuple[Tensor, ...]:
        """(P, S D) to S tensors (N H, L, d), the layout of the batched products of attention."""
        small = packed.view(len(packed) * parts * self.heads, -1)
        shape = (parts, self.bias.shape[0], self.places.shape[1], -1)
        return small.index_select(0, self._by_part(parts)).view(shape).unbind()

    def join(self, split: Tensor) -> Tensor:
        """(N H, L, d) to (P, D)."""
        return split.flatten(0, 1).index_select(0, self._joined).view(len(self.rows), -1)

    def _by_part(self, parts: int) -> Tensor:
        """Index of the row of d for each row of `split`'s result, (S N H L,); cached."""
        if parts not in self._split:
            part = torch.arange(parts, device=self.rows.device).view(-1, 1, 1, 1)
            head = torch.arange(self.heads, device=self.rows.device).view(-1, 1)
            rows = (self.places[:, None] * parts + part) * self.heads + head
            self._split[parts] = rows.flatten()
        return self._split[parts]

    @cached_property
    def _joined(self) -> Tensor:
        """Index among rows (N H L) of the H parts of each packed row, (P H,)."""
        length = self.places.shape[1]
        head = torch.arange(self.heads, device=self.rows.device)
        sentence, token = (self.rows // length).unsqueeze(1), self.positions.unsqueeze(1)
        return ((sentence * self.heads + head) * length + token).flatten()
