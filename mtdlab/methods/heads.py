"""Projection and prediction heads, and the branch of encoder and heads.

Letters: N batch, L tokens, D dimension of the encoder, P of the projection's output.
"""

import itertools

import torch
from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.dropout import NO_DROPOUT, Dropout, evaluation_mode
from mtdlab.encoders.pooling import Segments, encode_segments
from mtdlab.methods.base import Transformer
from mtdlab.methods.losses import unit
from mtdlab.settings import Representation

NORM_EPS = 1e-5
"""torch's ε of LayerNorm."""


def projection(
    dimension: int, layers: int, dropout: float, eps: float = NORM_EPS, *, output: int | None = None
) -> nn.Sequential:
    """`layers` times Linear, LayerNorm, dropout, to `output` or the same dimension."""
    widths = [dimension] + [output or dimension] * layers
    blocks = (
        (nn.Linear(before, after), nn.LayerNorm(after, eps=eps), nn.Dropout(dropout))
        for before, after in itertools.pairwise(widths)
    )
    return nn.Sequential(*(nn.Sequential(*block) for block in blocks))


def predictor(
    dimension: int, hidden: int, layers: int, dropout: float, eps: float = NORM_EPS
) -> nn.Sequential:
    """`projection` of all layers but one to the dimension `hidden`, then Linear and tanh.

    `dimension` is that of inputs and outputs. With no layers it is the identity.
    """
    if layers == 0:
        return nn.Sequential()
    inner = projection(dimension, layers - 1, dropout, eps, output=hidden)
    last = nn.Linear(hidden if layers > 1 else dimension, dimension)
    return nn.Sequential(*inner, last, nn.Tanh())


@torch.no_grad()
def initialise_heads(how: str, *heads: nn.Module) -> None:
    """Initialise Linear layers as BERT does, normal (0, 0.02), biases 0, unless `how` is `torch`.

    Draws from torch's global generator, the layers in their order.
    """
    for head in heads if how != "torch" else ():
        for layer in head.modules():
            if isinstance(layer, nn.Linear):
                layer.weight.normal_(0, 0.02)
                layer.bias.zero_()


@torch.no_grad()
def copy_pooler(source: nn.Module | None, pooler: nn.Linear) -> None:
    """Copy the Linear layer of an encoder's pooler, if it has one of the same shape."""
    dense = getattr(source, "dense", source)
    if isinstance(dense, nn.Linear) and dense.weight.shape == pooler.weight.shape:
        pooler.weight.copy_(dense.weight)
        pooler.bias.copy_(dense.bias)


class SegmentMean(nn.Module):
    """The mean of segment vectors, weighted by length: a module, so that hooks receive both."""

    def forward(self, vectors: Tensor, segments: Segments) -> Tensor:
        return segments.mean(vectors)


class Branch(nn.Module):
    """A branch: encoder, pooler (Linear with an optional activation), projection head.

    The pooler is newly initialised and not used for sentence embeddings. Of a sentence in segments,
    each segment passes the heads, and `mean` averages the results.
    """

    def __init__(
        self,
        encoder: Transformer,
        *,
        representation: Representation,
        dropout: float,
        projection_layers: int = 0,
        activation: nn.Module | None = None,
        eps: float = NORM_EPS,
        output: int | None = None,
    ) -> None:
        super().__init__()
        dimension = int(encoder.config.hidden_size)
        self.encoder = encoder
        self.representation = representation
        self.pooler = nn.Linear(dimension, dimension)
        self.activation = activation or nn.Identity()
        self.projection = projection(dimension, projection_layers, dropout, eps, output=output)
        self.mean = SegmentMean()

    def forward(self, word_embeddings: Tensor, attention_mask: Tensor, dropout: Dropout) -> Tensor:
        """Projected vectors (N, P) of word embeddings (N, L, D) under a mask (N, L)."""
        vectors, segments = encode_segments(
            self.encoder, word_embeddings, attention_mask, self.representation, dropout
        )
        projected: Tensor = self.projection(self.activation(self.pooler(vectors)))
        return projected if segments is None else self.mean(projected, segments)

    @torch.no_grad()
    def keys(self, ids: Tensor, mask: Tensor, device: Device) -> Tensor:
        """Unit vectors (N, P) of token ids (N, L), without dropout and gradient."""
        with evaluation_mode(self), device.autocast():
            keys = self(self.encoder.get_input_embeddings()(ids), mask, NO_DROPOUT)
        return unit(keys)


def embedding_block(encoder: Transformer) -> nn.Module:
    """The part before the first layer, which MoCoSE's branches share as in its published code."""
    block = getattr(encoder, "embeddings", None)
    return block if isinstance(block, nn.Module) else encoder.get_input_embeddings()
