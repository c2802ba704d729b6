"""Shapes and order of the heads."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from mtdlab.encoders.dropout import NO_DROPOUT
from mtdlab.encoders.loading import load_encoder
from mtdlab.methods.heads import embedding_block, predictor, projection
from mtdlab.methods.registry import make_settings
from mtdlab.settings import Pooling
from tests.branches import branch_of


def kinds(module: nn.Module) -> list[str]:
    return [type(one).__name__ for one in module.modules() if not isinstance(one, nn.Sequential)]


def shapes(module: nn.Module) -> list[tuple[int, int]]:
    linears = [one for one in module.modules() if isinstance(one, nn.Linear)]
    return [(one.in_features, one.out_features) for one in linears]


@pytest.mark.parametrize("layers", [0, 1, 2, 3])
def test_projection(layers: int) -> None:
    """Its first layer changes the dimension."""
    head = projection(6, layers, 0.1)
    assert kinds(head) == ["Linear", "LayerNorm", "Dropout"] * layers
    assert head(torch.randn(3, 6)).shape == (3, 6)
    assert shapes(projection(6, layers, 0.1, output=4)) == [(6, 4), (4, 4), (4, 4)][:layers]


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("hidden", [4, 6, 9])
def test_predictor(layers: int, hidden: int) -> None:
    head = predictor(6, hidden, layers, 0.1)
    assert kinds(head) == ["Linear", "LayerNorm", "Dropout"] * (layers - 1) + ["Linear", "Tanh"]
    assert head(torch.randn(3, 6)).shape == (3, 6)


def test_the_width_of_the_predictor_lies_inside_only() -> None:
    assert shapes(predictor(6, 9, 3, 0.1)) == [(6, 9), (9, 9), (9, 6)]
    assert shapes(predictor(6, 9, 1, 0.1)) == [(6, 6)]


def test_no_predictor_is_the_identity() -> None:
    queries = torch.randn(3, 6)
    assert predictor(6, 9, 0, 0.1)(queries) is queries


def test_the_heads_use_the_dropout_rate_of_the_settings() -> None:
    rates = {one.p for one in predictor(6, 6, 3, 0.3).modules() if isinstance(one, nn.Dropout)}
    rates |= {one.p for one in projection(6, 2, 0.3).modules() if isinstance(one, nn.Dropout)}
    assert rates == {0.3}


@pytest.mark.parametrize("pooling", ["cls", "mean", "first-last", "last2"])
def test_a_branch_is_encoder_pooler_and_projection(tiny_encoder: Path, pooling: Pooling) -> None:
    model = load_encoder(str(tiny_encoder), 0.0).model
    values: dict[str, Any] = {"pooling": pooling, "projection_layers": 0}
    branch = branch_of(model, make_settings(**values)).eval()
    ids = torch.tensor([[2, 6, 7, 3], [2, 8, 3, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    layers = model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    hidden = (layers[{"first-last": 1, "last2": -2}.get(pooling, -1)] + layers[-1]) / 2
    sentence = hidden[:, 0]
    if pooling != "cls":
        sentence = torch.stack([hidden[0].mean(dim=0), hidden[1, :3].mean(dim=0)])
    expected = sentence @ branch.pooler.weight.T + branch.pooler.bias
    assert torch.allclose(
        branch(model.get_input_embeddings()(ids), mask, NO_DROPOUT), expected, atol=1e-6
    )


def test_the_part_before_the_first_layer_is_shared(tiny_encoder: Path) -> None:
    model = load_encoder(str(tiny_encoder), 0.1).model
    assert embedding_block(model) is model.embeddings
