"""The optimizer: AdamW in the forms that methods were published with, and clipping of gradients."""

import math
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
    groups: list[dict[str, Any]] = [{"params": parameters, "weight_decay": decay}]
    if settings.weight_decay_exceptions != "none":
        groups[0]["params"] = [weights for weights in parameters if weights.ndim > 1]
        vectors = [weights for weights in parameters if weights.ndim <= 1]
        groups.append({"params": vectors, "weight_decay": 0.0})
    betas = (settings.adam_beta1, settings.adam_beta2)
    return torch.optim.AdamW(groups, betas=betas, eps=settings.adam_epsilon, fused=True)


def learning_rate_at(step: int, settings: TrainerSettings) -> float:
    """The learning rate of a step (0 the first): linear warm-up from 0, then linear to 0.

    It is step / W of the setting in the W warm-up steps, (T − step) / (T − W) of it in the others
    of T.
    """
    warmup, steps = settings.warmup_steps, settings.steps
    if step < warmup:
        return settings.learning_rate * step / warmup
    return settings.learning_rate * (1 - (step - warmup) / (steps - warmup))


def set_rates(optimizer: torch.optim.Optimizer, step: int, settings: TrainerSettings) -> None:
    """Set the learning rate of a step (0 the first), with ε and weight decay where they vary.

    torch's step t is, with m and v the means of gradients g and g²,

        p ← p (1 − r λ) − r / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)

    and that of transformers 4 is r √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + ε), without bias correction
    r · m / (√v + ε), each followed by p ← p (1 − r λ). These are torch's with other r, ε and λ,
    which are functions of t: its fused step and its state stay in use.
    """
    rate = learning_rate_at(step, settings)
    first = 1 - settings.adam_beta1 ** (step + 1)
    second = math.sqrt(1 - settings.adam_beta2 ** (step + 1))
    factor, epsilon = 1.0, settings.adam_epsilon
    if not settings.adam_bias_correction:
        factor = first / second
    if not settings.adam_bias_correction or settings.adam_formula == "transformers":
        epsilon /= second
    for group in optimizer.param_groups:
        # a group without weight decay stays without
        decay = settings.weight_decay if group["weight_decay"] else 0.0
        kept = 1 - rate * decay if settings.adam_formula == "transformers" else 1.0
        group["lr"], group["eps"] = rate * factor * kept, epsilon
        group["weight_decay"] = decay / (factor * kept)


def clip_gradients(optimizer: torch.optim.Optimizer, settings: TrainerSettings) -> None:
    """Scale the gradients so that the L2 norm of all together is at most the setting's."""
    if settings.max_gradient_norm:
        every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        nn.utils.clip_grad_norm_(every, settings.max_gradient_norm)
