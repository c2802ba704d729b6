"""The optimizer of a run: AdamW, its weight decay, and the clipping of gradients."""

from typing import Any

import torch
from torch import nn

from mtdlab.methods.base import Method
from mtdlab.settings import TrainerSettings


def make_optimizer(method: Method[Any], settings: TrainerSettings) -> torch.optim.AdamW:
    """AdamW over the parameters that a method trains.

    With `weight_decay_exceptions: biases-and-norms` parameters of one dimension, which are biases
    and weights of LayerNorms, form a second group without weight decay.
    """
    parameters, decay = method.trained(), settings.weight_decay
    if settings.weight_decay_exceptions == "none":
        return torch.optim.AdamW(parameters, weight_decay=decay, fused=True)
    matrices = [parameter for parameter in parameters if parameter.ndim > 1]
    vectors = [parameter for parameter in parameters if parameter.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, fused=True)


def clip_gradients(optimizer: torch.optim.Optimizer, settings: TrainerSettings) -> None:
    """Scale the gradients of all parameters so that their L2 norm is at most the setting's.

    The norm is that of all parameters together. It stays on the device.
    """
    if settings.max_gradient_norm:
        every = [each for group in optimizer.param_groups for each in group["params"]]
        nn.utils.clip_grad_norm_(every, settings.max_gradient_norm)
