"""Pooling: sentence vectors from an encoder, of whole sentences or of their segments (HiCL).

Letters: N batch, L tokens, S segments of all sentences of a batch, D dimension.
"""

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from mtdlab.encoders.dropout import NO_DROPOUT, Dropout
from mtdlab.encoders.fast import OnEmbeddings, all_tokens, first_tokens, is_fast
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling, Representation
from mtdlab.settings.representation import MASK

if TYPE_CHECKING:
    # it takes seconds to import, and study files are read without it
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Segments:
    """Consecutive segments of the sentences of a batch: word embeddings (S, L', D), mask (S, L').

    `sentence` (S,) is the sentence of each segment, in ascending order, `lengths` (S,) are tokens
    of the sentence in each, without those of a prompt.
    """

    words: Tensor
    mask: Tensor
    sentence: Tensor
    lengths: Tensor

    def mean(self, vectors: Tensor) -> Tensor:
        """Vectors (N, D) of the sentences: the mean of their segments', weighted by length."""
        lengths = self.lengths.unsqueeze(1).to(vectors.dtype)
        count = int(self.sentence[-1]) + 1
        totals = vectors.new_zeros(count, 1).index_add(0, self.sentence, lengths)
        summed = vectors.new_zeros(count, vectors.shape[1])
        return summed.index_add(0, self.sentence, vectors * lengths) / totals


def cut(words: Tensor, mask: Tensor, representation: Representation) -> Segments:
    """Segments of words (N, L, D) under a mask (N, L); the last of a sentence is shorter.

    A sentence of n tokens has 1 + ⌊(n − 1) / segment_length⌋ segments (HiCL). With a prompt, its
    tokens are repeated in each segment, and n and segment_length count the others.
    """
    before = representation.tokens_before if representation.prompt else 0
    after = representation.tokens_after() if representation.prompt else 0
    most = representation.segment_length - before - after
    tokens = mask.sum(dim=1)
    own = tokens - before - after
    # also of a sentence without tokens there is one segment, which weighs nothing beside others
    counts = (-(-own // most)).clamp(min=1)
    sentence = torch.arange(len(mask), device=mask.device).repeat_interleave(counts)
    start = most * places_of(sentence)
    lengths = (own[sentence] - start).clamp(max=most)
    place = torch.arange(representation.segment_length, device=mask.device)
    # positions in the sentence: its prompt, then from `start` on, then the prompt's end
    inside, ends = lengths.unsqueeze(1) + before, (tokens[sentence] - after).unsqueeze(1)
    source = torch.where(place < before, place, place + start.unsqueeze(1))
    source = torch.where(place < inside, source, place - inside + ends)
    real = place < inside + after
    source = source.where(real, torch.zeros_like(source))
    return Segments(
        words[sentence.unsqueeze(1), source], real.to(mask.dtype), sentence, lengths.clamp(min=1)
    )


def places_of(sentence: Tensor) -> Tensor:
    """The place (S,) of each segment in its sentence, from 0; sentence: see `Segments`."""
    counts = sentence.bincount()
    first = counts.cumsum(dim=0) - counts
    return torch.arange(len(sentence), device=sentence.device) - first[sentence]


def encode(
    model: "PreTrainedModel",
    attention_mask: Tensor,
    representation: Representation,
    *,
    inputs_embeds: Tensor,
    dropout: Dropout = NO_DROPOUT,
    change: OnEmbeddings | None = None,
    head: nn.Module | None = None,
) -> Tensor:
    """Sentence vectors (N, D) of word embeddings (N, L, D) under a mask (N, L), real tokens first.

    The fast forward pass uses `dropout`, other encoders their own modules, active in training mode.
    `change` is applied to the embedding block's output (N, L, D), or (S, L', D) of segments, and
    `head` to the vectors, of segments to each of theirs. Raises MtdlabError for a change of an
    encoder without an embedding block.
    """
    vectors, segments = encode_segments(
        model, inputs_embeds, attention_mask, representation, dropout, change
    )
    vectors = vectors if head is None else head(vectors)
    return vectors if segments is None else segments.mean(vectors)


def encode_segments(
    model: "PreTrainedModel",
    words: Tensor,
    mask: Tensor,
    representation: Representation,
    dropout: Dropout,
    change: OnEmbeddings | None = None,
) -> tuple[Tensor, Segments | None]:
    """Vectors (S, D) of segments of words (N, L, D), and these; of sentences (N, D), and None."""
    pooling, segments = representation.pooling, None
    if representation.segment_length:
        segments = cut(words, mask, representation)
        words, mask = segments.words, segments.mask
    several = pooling in ("first-last", "last2")
    if is_fast(model) and pooling == "cls":
        return first_tokens(model, words, mask, dropout, change), segments
    if is_fast(model):
        layers: Sequence[Tensor] = all_tokens(
            model, words, mask, dropout, change, every_layer=several
        )
    else:
        hooked = (
            embedding_block(model).register_forward_hook(lambda *call: change(call[-1], mask))
            if change
            else nullcontext()
        )
        with hooked:
            output = model(
                inputs_embeds=words,
                attention_mask=mask,
                output_hidden_states=several,
                **_without_cache(type(model).forward),
            )
        layers = output.hidden_states if several else (output.last_hidden_state,)
    return pool(layers, mask, representation), segments


@cache
def _without_cache(forward: Callable[..., Any]) -> dict[str, bool]:
    """The argument by which a decoder stores no keys and values, which only generation needs."""
    return {"use_cache": False} if "use_cache" in inspect.signature(forward).parameters else {}


def embedding_block(model: "PreTrainedModel") -> nn.Module:
    """The part before the first layer, with positions. Raises MtdlabError without one."""
    block = getattr(model, "embeddings", None)
    if not isinstance(block, nn.Module):
        raise MtdlabError(
            f"an encoder of the type {model.config.model_type} has no embedding block whose output "
            "can be perturbed; choose BERT, RoBERTa, DeBERTa or ModernBERT, or another perturbation"
        )
    return block


def position_table(model: "PreTrainedModel") -> Tensor | None:
    """The embeddings (M, D) of an encoder's positions from the first on; None without any."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    if not isinstance(table, nn.Embedding):
        return None
    return table.weight[0 if table.padding_idx is None else table.padding_idx + 1 :]


UNLIMITED = 1 << 20
"""The positions of an encoder without a limit, as where attention is biased by distance."""


def position_limit(model: "PreTrainedModel") -> int:
    """The maximum number of tokens: the encoder's positions, of rotary ones the configuration's."""
    if (table := position_table(model)) is None:
        positions = int(getattr(model.config, "max_position_embeddings", None) or UNLIMITED)
        # XLNet's are -1
        return positions if positions > 0 else UNLIMITED
    return len(table)


def position_embeddings(model: "PreTrainedModel") -> Tensor:
    """The table of `position_table`. Raises MtdlabError for a family without absolute positions."""
    if (table := position_table(model)) is None:
        raise MtdlabError(
            f"an encoder of the type {model.config.model_type} has no table of positions to "
            "shuffle; choose BERT or RoBERTa, or augmentation_draw tokens"
        )
    return table


def pool(
    layers: Sequence[Tensor], attention_mask: Tensor, representation: Representation
) -> Tensor:
    """Sentence vectors (N, D) from hidden states, each (N, L, D), under a mask (N, L).

    Padding may be on either side. Layers are the embedding block's output, then every layer's; cls,
    mean and mask need only the last.

    cls         the first real token, last layer.
    last-token  the last real token, last layer: the only one that sees all others in a decoder.
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
    if pooling in ("cls", "last-token", "mask"):
        places = attention_mask.argmax(dim=1)
        if pooling != "cls":
            places = places + attention_mask.sum(dim=1) - 1
        if pooling == "mask":
            places = places - representation.tokens_after(MASK)
        return hidden[torch.arange(len(hidden), device=hidden.device), places]
    if pooling != "mean":
        hidden = (layers[1 if pooling == "first-last" else -2] + hidden) / 2
    weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)
