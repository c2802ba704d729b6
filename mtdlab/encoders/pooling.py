"""Pooling: sentence vectors from an encoder.

Letters: N batch, L tokens, D dimension.
"""

from collections.abc import Sequence

from torch import Tensor
from transformers import PreTrainedModel

from mtdlab.encoders.dropout import NO_DROPOUT, Dropout
from mtdlab.encoders.fast import all_tokens, first_tokens, is_fast
from mtdlab.settings import Pooling


def encode(
    model: PreTrainedModel,
    attention_mask: Tensor,
    pooling: Pooling,
    *,
    input_ids: Tensor | None = None,
    inputs_embeds: Tensor | None = None,
    dropout: Dropout = NO_DROPOUT,
) -> Tensor:
    """Sentence vectors (N, D) of token ids (N, L) or word embeddings (N, L, D).

    attention_mask  (N, L), 1 for real tokens, which come first.
    dropout         used by the fast forward pass; other encoders use their dropout modules,
                    which are active in training mode.
    """
    if is_fast(model) and pooling in ("cls", "mean"):
        words = model.get_input_embeddings()(input_ids) if inputs_embeds is None else inputs_embeds
        if pooling == "cls":
            return first_tokens(model, words, attention_mask, dropout)
        return pool([all_tokens(model, words, attention_mask, dropout)], attention_mask, pooling)
    several = pooling in ("first-last", "last2")
    output = model(
        input_ids=input_ids,
        inputs_embeds=inputs_embeds,
        attention_mask=attention_mask,
        output_hidden_states=several,
    )
    layers = output.hidden_states if several else (output.last_hidden_state,)
    return pool(layers, attention_mask, pooling)


def pool(layers: Sequence[Tensor], attention_mask: Tensor, pooling: Pooling) -> Tensor:
    """Sentence vectors (N, D) from hidden states, each (N, L, D), under a mask (N, L).

    layers  the embedding block's output, then every layer's; cls and mean need only the last.

    cls         the first token, last layer.
    mean        average over real tokens, last layer.
    first-last  average over real tokens of the mean of the first and the last layer. The first is
                the output of layer 1, as in SimCSE's published evaluation (`hidden_states[1]`), not
                of the embedding block as in its earlier versions and other programs.
    last2       average over real tokens of the mean of the last two layers (SimCSE's `avg_top2`);
                of a one-layer encoder, of the layer and the embedding block.
    """
    if pooling == "cls":
        return layers[-1][:, 0]
    hidden = layers[-1]
    if pooling != "mean":
        hidden = (layers[1 if pooling == "first-last" else -2] + hidden) / 2
    weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1)
