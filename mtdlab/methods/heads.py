"""The heads on top of the sentence vector, and the two branches that carry them.

Letters: N batch, L tokens, D dimension.
"""

import itertools
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from mtdlab.encoders.dropout import Dropout
from mtdlab.settings import Pooling

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def projection(dimension: int, layers: int, dropout: float) -> nn.Sequential:
    """`layers` times Linear, LayerNorm, dropout, all at the encoder's dimension."""
    return nn.Sequential(
        *(_normed(dimension, dimension, dropout) for _ in range(layers)),
    )


def predictor(dimension: int, hidden: int, layers: int, dropout: float) -> nn.Sequential:
    """Linear, LayerNorm, dropout for every layer but the last, then Linear and tanh.

    `hidden` is the width in between; the output has the keys' dimension, D.
    No layers: the identity, which makes the two branches symmetric.
    """
    if layers == 0:
        return nn.Sequential()
    widths = [dimension] + [hidden] * (layers - 1)
    inner = [_normed(before, after, dropout) for before, after in itertools.pairwise(widths)]
    return nn.Sequential(*inner, nn.Linear(widths[-1], dimension), nn.Tanh())


def _normed(before: int, after: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(before, after), nn.LayerNorm(after), nn.Dropout(dropout))


class Branch(nn.Module):
    """Encoder, pooler (a Linear with an optional activation), projection: what a branch computes.

    The pooler is a new one: the encoder's own serves no sentence embedding.
    """

    def __init__(
        self,
        encoder: "PreTrainedModel",
        *,
        pooling: Pooling,
        dropout: float,
        projection_layers: int = 0,
        activation: nn.Module | None = None,
    ) -> None:
        super().__init__()
        dimension = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.pooling = pooling
        self.pooler = nn.Linear(dimension, dimension)
        self.activation = activation or nn.Identity()
        self.projection = projection(dimension, projection_layers, dropout)

    def forward(self, word_embeddings: Tensor, attention_mask: Tensor, dropout: Dropout) -> Tensor:
        """Projected vectors (N, D) of word embeddings (N, L, D) under a mask (N, L).

        `dropout` is a stream that both branches draw from: what each drops is its own.
        """
        # here, since transformers takes seconds to import and reading a study file needs none of it
        from mtdlab.encoders.pooling import encode

        sentence = encode(
            self.encoder,
            attention_mask,
            self.pooling,
            inputs_embeds=word_embeddings,
            dropout=dropout,
        )
        projected: Tensor = self.projection(self.activation(self.pooler(sentence)))
        return projected


def word_table(encoder: "PreTrainedModel") -> nn.Module:
    """The module that turns token ids into word embeddings."""
    table: nn.Module = encoder.get_input_embeddings()
    return table


def embedding_block(encoder: "PreTrainedModel") -> nn.Module:
    """All of the encoder before its first layer: what the two branches share.

    Sharing it, as the published code does, leaves the largest table out of the average.
    """
    block: Any = getattr(encoder, "embeddings", None)
    return block if isinstance(block, nn.Module) else word_table(encoder)
