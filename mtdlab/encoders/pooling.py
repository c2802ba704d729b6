"""Pooling: sentence vectors from an encoder.

Letters: N batch, L tokens, S segments of all sentences of a batch, D dimension.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from mtdlab.encoders.dropout import NO_DROPOUT, Dropout
from mtdlab.encoders.fast import OnEmbeddings, all_layers, all_tokens, first_tokens, is_fast
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling, Representation


def encode(
    model: PreTrainedModel,
    attention_mask: Tensor,
    representation: Representation,
    *,
    input_ids: Tensor | None = None,
    inputs_embeds: Tensor | None = None,
    dropout: Dropout = NO_DROPOUT,
    change: OnEmbeddings | None = None,
) -> Tensor:
    """Sentence vectors (N, D) of token ids (N, L) or word embeddings (N, L, D).

    attention_mask  (N, L), 1 for real tokens, which come first.
    dropout         used by the fast forward pass; other encoders use their dropout modules,
                    which are active in training mode.
    change          applied to the embedding block's output, (N, L, D), after its LayerNorm; of
                    segments, to that of all segments, (S, L', D).

    Raises MtdlabError for a change of an encoder without an embedding block.
    """
    if inputs_embeds is None:
        inputs_embeds = model.get_input_embeddings()(input_ids)
    if not representation.segment_length:
        return _encode(model, inputs_embeds, attention_mask, representation, dropout, change)
    segments = cut(inputs_embeds, attention_mask, representation.segment_length)
    vectors = _encode(model, segments.words, segments.mask, representation, dropout, change)
    return segments.mean(vectors)


@dataclass(frozen=True)
class Segments:
    """Consecutive segments of the sentences of a batch.

    words     (S, L', D) word embeddings, L' tokens at most.
    mask      (S, L').
    sentence  (S,) the sentence that each segment belongs to, in ascending order.
    """

    words: Tensor
    mask: Tensor
    sentence: Tensor

    def mean(self, vectors: Tensor) -> Tensor:
        """Vectors (N, D) of the sentences: the mean of their segments', weighted by length."""
        lengths = self.mask.sum(dim=1, keepdim=True).to(vectors.dtype)
        count = int(self.sentence[-1]) + 1
        totals = vectors.new_zeros(count, 1).index_add(0, self.sentence, lengths)
        summed = vectors.new_zeros(count, vectors.shape[1])
        return summed.index_add(0, self.sentence, vectors * lengths) / totals


def cut(words: Tensor, mask: Tensor, length: int) -> Segments:
    """Segments of `length` tokens of words (N, L, D) under a mask (N, L); the last is shorter.

    A sentence of n tokens has 1 + ⌊(n − 1) / length⌋ segments (HiCL).
    """
    count, tokens, width = words.shape
    missing = -tokens % length
    words = torch.nn.functional.pad(words, (0, 0, 0, missing)).view(-1, length, width)
    mask = torch.nn.functional.pad(mask, (0, missing)).view(-1, length)
    sentence = torch.arange(count, device=mask.device).repeat_interleave(len(mask) // count)
    real = mask[:, 0].bool()
    return Segments(words[real], mask[real], sentence[real])


def _encode(
    model: PreTrainedModel,
    words: Tensor,
    mask: Tensor,
    representation: Representation,
    dropout: Dropout,
    change: OnEmbeddings | None,
) -> Tensor:
    pooling = representation.pooling
    several = pooling in ("first-last", "last2")
    if is_fast(model):
        if pooling == "cls":
            return first_tokens(model, words, mask, dropout, change)
        if several:
            return pool(all_layers(model, words, mask, dropout, change), mask, representation)
        return pool([all_tokens(model, words, mask, dropout, change)], mask, representation)
    with _changed_embeddings(model, mask, change):
        output = model(inputs_embeds=words, attention_mask=mask, output_hidden_states=several)
    layers = output.hidden_states if several else (output.last_hidden_state,)
    return pool(layers, mask, representation)


@contextmanager
def _changed_embeddings(
    model: PreTrainedModel, mask: Tensor, change: OnEmbeddings | None
) -> Iterator[None]:
    """Apply `change` to the output of the embedding block in transformers' forward pass."""
    if change is None:
        yield
        return
    block = getattr(model, "embeddings", None)
    if not isinstance(block, nn.Module):
        raise MtdlabError(
            f"an encoder of the type {model.config.model_type} has no embedding block whose output "
            "can be perturbed; choose BERT, RoBERTa, DistilBERT or MPNet"
        )
    hook = block.register_forward_hook(lambda _block, _inputs, output: change(output, mask))
    try:
        yield
    finally:
        hook.remove()


def pool(
    layers: Sequence[Tensor], attention_mask: Tensor, representation: Representation
) -> Tensor:
    """Sentence vectors (N, D) from hidden states, each (N, L, D), under a mask (N, L).

    layers  the embedding block's output, then every layer's; cls, mean and mask need only the
            last.

    cls         the first token, last layer.
    mean        average over real tokens, last layer.
    first-last  average over real tokens of the mean of the first and the last layer. The first is
                the output of layer 1, as in SimCSE's published evaluation (`hidden_states[1]`), not
                of the embedding block as in its earlier versions and other programs.
    last2       average over real tokens of the mean of the last two layers (SimCSE's `avg_top2`);
                of a one-layer encoder, of the layer and the embedding block.
    mask        the prompt's mask token, last layer, by its distance from the sentence's end.
    """
    pooling: Pooling = representation.pooling
    hidden = layers[-1]
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "mask":
        places = attention_mask.sum(dim=1) - 1 - representation.tokens_after_mask
        return hidden[torch.arange(len(hidden), device=hidden.device), places]
    if pooling != "mean":
        hidden = (layers[1 if pooling == "first-last" else -2] + hidden) / 2
    weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)
