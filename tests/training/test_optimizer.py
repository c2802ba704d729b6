"""The optimizer: which parameters have weight decay, and the clipping of gradients."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from mtdlab.methods.base import Method
from mtdlab.settings import TrainerSettings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start
from mtdlab.training.optimizer import clip_gradients
from tests.conftest import Settings


def started(settings: TrainerSettings) -> tuple[Method[Any], torch.optim.Optimizer]:
    state = start(settings, load_inputs(settings))
    return state.method, state.optimizer


@pytest.mark.parametrize("method", ["mocose", "simcse", "esimcse", "mixcse"])
def test_biases_and_layer_norms_are_without_weight_decay(
    settings_of: Settings, method: str
) -> None:
    settings = settings_of(
        method=method, weight_decay=0.5, weight_decay_exceptions="biases-and-norms"
    )
    model, optimizer = started(settings)
    norms = [one for one in model.modules() if isinstance(one, nn.LayerNorm)]
    expected = {
        id(weights) for norm in norms for weights in norm.parameters() if weights.requires_grad
    }
    named = model.named_parameters()
    expected |= {
        id(weights) for name, weights in named if name.endswith("bias") and weights.requires_grad
    }
    decays = {
        id(weights): group["weight_decay"]
        for group in optimizer.param_groups
        for weights in group["params"]
    }
    assert {one for one, decay in decays.items() if decay == 0} == expected
    assert {decay for one, decay in decays.items() if one not in expected} == {0.5}
    assert decays.keys() == {id(weights) for weights in model.trained()}


def test_by_default_every_parameter_has_weight_decay(settings_of: Settings) -> None:
    model, optimizer = started(settings_of(weight_decay=0.5))
    [group] = optimizer.param_groups
    assert group["weight_decay"] == 0.5
    assert len(group["params"]) == len(model.trained())


@pytest.mark.parametrize(("most", "factor"), [(0.0, 1), (1.0, 1 / 13), (20.0, 1)])
def test_gradients_are_clipped_together(settings_of: Settings, most: float, factor: float) -> None:
    """Gradients (3, 4) and (12) have a norm of 13."""
    first, second = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    first.grad, second.grad = torch.tensor([3.0, 4.0]), torch.tensor([12.0])
    groups: list[dict[str, Any]] = [{"params": [first]}, {"params": [second]}]
    clip_gradients(torch.optim.AdamW(groups), settings_of(max_gradient_norm=most))
    assert first.grad.tolist() == pytest.approx([3 * factor, 4 * factor])
    assert second.grad.tolist() == pytest.approx([12 * factor])


def test_heads_start_as_berts(settings_of: Settings) -> None:
    settings = settings_of(head_initialisation="bert", head_norm_eps=1e-12)
    inputs = load_inputs(settings)
    model: Any = start(settings, inputs).method
    pretrained: Any = inputs.encoder.pooler
    for branch in (model.online, model.target):
        assert torch.equal(branch.pooler.weight, pretrained.dense.weight)
        assert torch.equal(branch.pooler.bias, pretrained.dense.bias)
        assert branch.pooler.weight is not pretrained.dense.weight
    parts = [*model.online.projection.modules(), *model.predictor.modules()]
    linears = [one for one in parts if isinstance(one, nn.Linear)]
    assert len(linears) == 3
    for linear in linears:
        assert float(linear.weight.detach().std()) == pytest.approx(0.02, rel=0.2)
        assert not linear.bias.any()
    assert [one.eps for one in parts if isinstance(one, nn.LayerNorm)] == [1e-12, 1e-12]


def test_without_a_pre_trained_pooler_it_is_drawn_like_the_other_heads(
    settings_of: Settings,
) -> None:
    settings = settings_of(head_initialisation="bert")
    inputs = copy.copy(load_inputs(settings))
    object.__setattr__(inputs, "encoder", copy.copy(inputs.encoder))
    object.__setattr__(inputs.encoder, "pooler", None)
    model: Any = start(settings, inputs).method
    assert float(model.online.pooler.weight.detach().std()) == pytest.approx(0.02, rel=0.2)
    assert torch.equal(model.online.pooler.weight, model.target.pooler.weight)


def test_by_default_the_pooler_is_torchs(settings_of: Settings) -> None:
    settings = settings_of()
    model: Any = start(settings, load_inputs(settings)).method
    # uniform within 1/sqrt(16)
    assert 0.1 < float(model.online.pooler.weight.detach().std()) < 0.2
