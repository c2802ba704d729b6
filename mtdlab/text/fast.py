"""BERT's forward pass for short sentences: real tokens only, and no row that nobody reads.

It computes what transformers' BertModel computes, from that model's own parameters, so that
weights are loaded, averaged and saved as ever. What it leaves out: padding between the attention
blocks, and in the last layer every row but [CLS] where [CLS] is what is read.

Letters: N batch, L tokens, P packed rows (real tokens, and a few of padding), D dimension,
H heads.
"""

from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, linear
from transformers import BertModel, PreTrainedModel

from mtdlab.text.dropout import Dropout

ROWS = 64
"""Packed rows come in multiples of this: matrix kernels are prepared once per shape."""


@dataclass(frozen=True)
class Packing:
    """Which places of a padded batch are computed.

    `rows` (P,) are places in the flattened batch (N * L), real tokens first; `positions` (P,) are
    theirs in the sentence; `bias` (N, 1, 1, L) is 0 at real tokens and -inf at padding; `first`
    (N,) finds each sentence's first token among the rows.
    """

    rows: Tensor
    positions: Tensor
    first: Tensor
    bias: Tensor
    shape: tuple[int, int]

    @classmethod
    def of(cls, mask: Tensor) -> Self:
        """From an attention mask (N, L) whose rows are ones, then zeros.

        On a GPU every row is kept: to count the real ones would make it wait for the processor.
        """
        count, length = mask.shape
        flat = mask.flatten().bool()
        real = len(flat) if mask.is_cuda else int(flat.sum())
        kept = min(-(-real // ROWS) * ROWS, len(flat))
        rows = torch.argsort(~flat, stable=True)[:kept]
        lengths = mask.sum(dim=1)
        bias = torch.zeros(mask.shape, device=mask.device).masked_fill(mask == 0, -torch.inf)
        return cls(
            rows, rows % length, lengths.cumsum(0) - lengths, bias[:, None, None],
            (count, length),
        )

    def pack(self, padded: Tensor) -> Tensor:
        """(N, L, D) to (P, D)."""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def pad(self, packed: Tensor) -> Tensor:
        """(P, D) to (N, L, D), zero where there is no row."""
        count, length = self.shape
        padded = packed.new_zeros(count * length, packed.shape[1])
        return padded.index_copy(0, self.rows, packed).view(count, length, -1)


def is_fast(model: PreTrainedModel) -> bool:
    """Whether `forward` below computes this model."""
    config: Any = model.config
    return (
        type(model) is BertModel
        and config.hidden_act == "gelu"
        and not config.is_decoder
        and getattr(config, "position_embedding_type", "absolute") in (None, "absolute")
    )


def first_tokens(
    model: PreTrainedModel, words: Tensor, mask: Tensor, dropout: Dropout
) -> Tensor:
    """The last layer's [CLS] vectors (N, D) of word embeddings (N, L, D) under a mask (N, L)."""
    packing = Packing.of(mask)
    hidden = _embed(model, words, packing, dropout)
    *layers, last = _layers(model)
    for layer in layers:
        hidden = _layer(layer, hidden, packing, dropout)
    return _layer(last, hidden, packing, dropout, packing.first)


def all_tokens(model: PreTrainedModel, words: Tensor, mask: Tensor, dropout: Dropout) -> Tensor:
    """The last layer (N, L, D), zero at most of the padding, of words (N, L, D)."""
    packing = Packing.of(mask)
    hidden = _embed(model, words, packing, dropout)
    for layer in _layers(model):
        hidden = _layer(layer, hidden, packing, dropout)
    return packing.pad(hidden)


def _layers(model: Any) -> list[Any]:
    return list(model.encoder.layer)


def _embed(model: Any, words: Tensor, packing: Packing, dropout: Dropout) -> Tensor:
    block = model.embeddings
    places = block.position_embeddings.weight.index_select(0, packing.positions)
    kind = block.token_type_embeddings.weight[0]
    return dropout(_norm(packing.pack(words) + (places + kind), block.LayerNorm))


def _layer(
    layer: Any, hidden: Tensor, packing: Packing, dropout: Dropout, read: Tensor | None = None
) -> Tensor:
    """A transformer layer on packed rows (P, D); with `read` (N,), its output at those alone."""
    attention, output = layer.attention.self, layer.attention.output
    if read is None:
        queries, keys, values = _joined(hidden, attention.query, attention.key, attention.value)
        queries = packing.pad(queries)
    else:
        keys, values = _joined(hidden, attention.key, attention.value)
        hidden = hidden.index_select(0, read)
        queries = _linear(hidden, attention.query).unsqueeze(1)
    padded = (queries, packing.pad(keys), packing.pad(values))
    by_head = [_heads(one, attention) for one in padded]
    seen = _attend(*by_head, bias=packing.bias, dropout=dropout)
    context = packing.pack(seen) if read is None else seen.squeeze(1)
    hidden = _norm(dropout.add(_linear(context, output.dense), hidden), output.LayerNorm)
    inner = gelu(_linear(hidden, layer.intermediate.dense))
    outer = _linear(inner, layer.output.dense)
    return _norm(dropout.add(outer, hidden), layer.output.LayerNorm)


def _joined(hidden: Tensor, *parts: Any) -> tuple[Tensor, ...]:
    """Several linear maps of the same rows as one product."""
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts])
    return linear(hidden, weight, bias).chunk(len(parts), dim=1)


def _heads(padded: Tensor, attention: Any) -> Tensor:
    """(N, L, D) to (N, H, L, D / H)."""
    count, length, _ = padded.shape
    return padded.view(count, length, -1, int(attention.attention_head_size)).transpose(1, 2)


def _attend(
    queries: Tensor, keys: Tensor, values: Tensor, *, bias: Tensor, dropout: Dropout
) -> Tensor:
    """Attention (N, L, D). At these lengths three plain products beat a fused kernel."""
    scores = queries @ keys.transpose(2, 3) * queries.shape[-1] ** -0.5 + bias
    weights = dropout(scores.softmax(dim=-1))
    return (weights.to(values.dtype) @ values).transpose(1, 2).flatten(2)


def _linear(rows: Tensor, part: Any) -> Tensor:
    return linear(rows, part.weight, part.bias)


def _norm(rows: Tensor, part: Any) -> Tensor:
    return layer_norm(rows, part.normalized_shape, part.weight, part.bias, part.eps)
