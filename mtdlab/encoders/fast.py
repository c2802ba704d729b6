"""A fast forward pass of BERT for short sentences, without padding and unused outputs.

The result equals that of transformers' BertModel, RobertaModel and XLMRobertaModel and uses the
parameters of the model, so that weights are loaded, averaged and saved as usual. Not computed:
padding outside attention, and with [CLS] pooling all rows of the last layer except [CLS].

Letters: N batch, L tokens, P packed rows (real tokens, and a few of padding), U distinct ones,
D dimension, H heads, d = D / H, S concatenated parts (queries, keys, values).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear

from mtdlab.encoders.adapters import has_adapters
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout

if TYPE_CHECKING:
    # it takes seconds to import, and study files are read without it
    from transformers import PreTrainedModel

ROWS = 64
"""P is a multiple of this, because matrix kernels are prepared for each shape."""


@dataclass(frozen=True)
class Packing:
    """The indices that convert between a padded batch and its packed rows.

    Attributes:
        rows: (P,) index of each packed row in the flattened batch (N L), real tokens first.
        places: (N, L) packed row of every token; of padding that is not packed, that of its [CLS].
        positions: (P,) position of each packed row in its sentence.
        first: (N,) packed row of each sentence's first token.
        bias: (N H, 1, L) 0 at real tokens and -inf at padding, added to attention scores.
    """

    rows: Tensor
    places: Tensor
    positions: Tensor
    first: Tensor
    bias: Tensor
    heads: int
    # by S, the index of the row of d for each row of the result of `split`, (S N H L,)
    _split: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, mask: Tensor, heads: int) -> Self:
        """The packing of an attention mask (N, L) whose rows are ones, then zeros.

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
        """The packed rows (P, D) of a batch (N, L, D)."""
        return padded.flatten(0, 1).index_select(0, self.rows)

    def pad(self, packed: Tensor) -> Tensor:
        """The batch (N, L, D) of rows (P, D); padding has [CLS]'s vector, which is not used."""
        return packed.index_select(0, self.places.flatten()).view(*self.places.shape, -1)

    def split(self, packed: Tensor, parts: int) -> tuple[Tensor, ...]:
        """S tensors (N H, L, d) of rows (P, S D): the layout of attention's batched products."""
        if parts not in self._split:
            part = torch.arange(parts, device=self.rows.device).view(-1, 1, 1, 1)
            head = torch.arange(self.heads, device=self.rows.device).view(-1, 1)
            rows = (self.places[:, None] * parts + part) * self.heads + head
            self._split[parts] = rows.flatten()
        small = packed.view(len(packed) * parts * self.heads, -1)
        shape = (parts, self.bias.shape[0], self.places.shape[1], -1)
        return small.index_select(0, self._split[parts]).view(shape).unbind()

    def join(self, split: Tensor) -> Tensor:
        """The rows (P, D) of the heads' outputs (N H, L, d)."""
        return split.flatten(0, 1).index_select(0, self._joined).view(len(self.rows), -1)

    @cached_property
    def _joined(self) -> Tensor:
        """Index among rows (N H L) of the H parts of each packed row, (P H,)."""
        length = self.places.shape[1]
        head = torch.arange(self.heads, device=self.rows.device)
        sentence, token = (self.rows // length).unsqueeze(1), self.positions.unsqueeze(1)
        return ((sentence * self.heads + head) * length + token).flatten()


OnEmbeddings = Callable[[Tensor, Tensor], Tensor]
"""A change of the embedding block's output (N, L, D), under a mask (N, L), before layer 1."""


def is_fast(model: "PreTrainedModel") -> bool:
    """Whether this module supports the model."""
    from transformers import BertModel, RobertaModel, XLMRobertaModel

    config: Any = model.config
    return (
        type(model) in (BertModel, RobertaModel, XLMRobertaModel)
        # the weights of an adapted layer are not those of the sum
        and not has_adapters(model)
        and config.hidden_act == "gelu"
        and not config.is_decoder
        and getattr(config, "position_embedding_type", "absolute") in (None, "absolute")
    )


def first_tokens(
    model: "PreTrainedModel",
    words: Tensor,
    mask: Tensor,
    dropout: Dropout,
    change: OnEmbeddings | None = None,
) -> Tensor:
    """The last layer's [CLS] vectors (N, D) of word embeddings (N, L, D) under a mask (N, L)."""
    packing = _packing(model, mask)
    hidden = _embed(model, words, mask, packing, dropout, change)
    *layers, last = model.encoder.layer
    for layer in layers:
        hidden = _layer(layer, hidden, packing, dropout)
    return _layer(last, hidden, packing, dropout, packing.first)


def first_tokens_of_ids(model: Any, ids: Tensor, mask: Tensor) -> Tensor:
    """`first_tokens` (N, D) of token ids (N, L) for evaluation on a CPU: fewer products.

    The first layer's queries, keys and values are computed once for each distinct token and
    position. Keys and values of the last layer, where [CLS] alone attends, are not computed.
    """
    packing = _packing(model, mask)
    length = mask.shape[1]
    tokens = ids.flatten().index_select(0, packing.rows) * length + packing.positions
    distinct, place = tokens.unique(return_inverse=True)
    words = model.get_input_embeddings()(distinct // length)
    few = _embed_rows(model, words, distinct % length)
    hidden = few.index_select(0, place)
    # the first layer's, which has a row for each distinct token and position
    attended, from_few = few, replace(packing, places=place[packing.places], _split={})
    *layers, last = model.encoder.layer
    for layer in layers:
        context = _attend_all(layer, attended, from_few, NO_DROPOUT)
        hidden = attended = _after_attention(layer, hidden, context, NO_DROPOUT)
        from_few = packing
    context = _attend_once(last.attention.self, hidden, packing)
    return _after_attention(last, hidden.index_select(0, packing.first), context, NO_DROPOUT)


def _attend_once(attention: Any, hidden: Tensor, packing: Packing) -> Tensor:
    """The output (N, D) of attention of the first tokens over rows (P, D), by products of N rows.

    q·(W h + b) = (Wᵀ q)·h + q·b for keys, where q·b, equal for all tokens, does not change the
    weights; Σ a (W h + b) = W (Σ a h) + b for values, since a head's weights a have the sum 1.
    """
    rows, heads = packing.pad(hidden), packing.heads
    count, width = len(rows), hidden.shape[1]
    queries = attention.query(rows[:, 0]).view(count, heads, -1).transpose(0, 1)
    folded = (queries @ attention.key.weight.view(heads, -1, width)).transpose(0, 1)
    bias = packing.bias.to(rows.dtype).view(count, heads, -1)
    scores = torch.baddbmm(bias, folded, rows.transpose(1, 2), alpha=queries.shape[-1] ** -0.5)
    read = (scores.softmax(dim=-1) @ rows).transpose(0, 1)
    values = read @ attention.value.weight.view(heads, -1, width).transpose(1, 2)
    context: Tensor = values.transpose(0, 1).reshape(count, -1) + attention.value.bias
    return context


def all_tokens(
    model: "PreTrainedModel",
    words: Tensor,
    mask: Tensor,
    dropout: Dropout,
    change: OnEmbeddings | None = None,
    *,
    every_layer: bool = False,
) -> list[Tensor]:
    """The last layer (N, L, D) of words (N, L, D), or `every_layer`; padding is undefined."""
    packing = _packing(model, mask)
    packed = [_embed(model, words, mask, packing, dropout, change)]
    for layer in model.encoder.layer:
        before = packed if every_layer else []
        packed = [*before, _layer(layer, packed[-1], packing, dropout)]
    return [packing.pad(hidden) for hidden in packed]


def _packing(model: "PreTrainedModel", mask: Tensor) -> Packing:
    return Packing.of(mask, int(model.config.num_attention_heads))


def _embed(
    model: Any,
    words: Tensor,
    mask: Tensor,
    packing: Packing,
    dropout: Dropout,
    change: OnEmbeddings | None,
) -> Tensor:
    embedded = dropout.forward(_embed_rows(model, packing.pack(words), packing.positions))
    return embedded if change is None else packing.pack(change(packing.pad(embedded), mask))


def _embed_rows(model: Any, words: Tensor, positions: Tensor) -> Tensor:
    """The embedding block's output of word embeddings (P, D) at positions (P,)."""
    block = model.embeddings
    # position ids of RoBERTa start at its padding id + 1
    table = block.position_embeddings
    first = 0 if table.padding_idx is None else table.padding_idx + 1
    places = table.weight.index_select(0, positions + first)
    kind = block.token_type_embeddings.weight[0]
    normed: Tensor = block.LayerNorm(words + (places + kind))
    return normed


def _layer(
    layer: Any, hidden: Tensor, packing: Packing, dropout: Dropout, read: Tensor | None = None
) -> Tensor:
    """A transformer layer on packed rows (P, D); with `read` (N,), the output of those rows."""
    if read is None:
        context = _attend_all(layer, hidden, packing, dropout)
        return _after_attention(layer, hidden, context, dropout)
    attention = layer.attention.self
    keys, values = packing.split(_join_products(hidden, attention.key, attention.value), 2)
    hidden = hidden.index_select(0, read)
    queries = attention.query(hidden).view(len(keys), 1, -1)
    context = _attend(queries, keys, values, bias=packing.bias, dropout=dropout)
    return _after_attention(layer, hidden, context.view(hidden.shape), dropout)


def _after_attention(layer: Any, hidden: Tensor, context: Tensor, dropout: Dropout) -> Tensor:
    """The rest of a layer on rows (P, D) and their outputs of attention (P, D)."""
    output = layer.attention.output
    hidden = output.LayerNorm(dropout.add(output.dense(context), hidden))
    outer = layer.output.dense(gelu(layer.intermediate.dense(hidden)))
    normed: Tensor = layer.output.LayerNorm(dropout.add(outer, hidden))
    return normed


def _attend_all(layer: Any, rows: Tensor, packing: Packing, dropout: Dropout) -> Tensor:
    """The outputs (P, D) of a layer's attention of all tokens, whose rows are at `places`."""
    attention = layer.attention.self
    joined = _join_products(rows, attention.query, attention.key, attention.value)
    parts = packing.split(joined, 3)
    return packing.join(_attend(*parts, bias=packing.bias, dropout=dropout))


def _join_products(hidden: Tensor, *parts: Any) -> Tensor:
    """Several linear maps of the same rows as one product; their outputs are concatenated."""
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts])
    return linear(hidden, weight, bias)


def _attend(
    queries: Tensor, keys: Tensor, values: Tensor, *, bias: Tensor, dropout: Dropout
) -> Tensor:
    """Attention (N H, L, d). For short sentences this is faster than a fused kernel."""
    scale = queries.shape[-1] ** -0.5
    scores = torch.baddbmm(bias.to(queries.dtype), queries, keys.transpose(1, 2), alpha=scale)
    weights = dropout.forward(scores.softmax(dim=-1))
    return weights.to(values.dtype) @ values
