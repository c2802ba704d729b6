"""The target branch: an exponential moving average (EMA) of the online branch's weights."""

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn

from mtdlab.encoders.adapters import frozen_memo
from mtdlab.methods.base import Transformer

Module = TypeVar("Module", bound=nn.Module)


def make_target(online: Module, shared: nn.Module | None = None) -> Module:
    """A copy of `online` without gradients, but for the part `shared`, which is not copied.

    Neither are parameters that are frozen beside adapters: the average is over the adapters.
    """
    memo = frozen_memo(online) | ({id(shared): shared} if shared else {})
    target = copy.deepcopy(online, memo)
    trained = {id(parameter) for parameter in online.parameters()}
    for parameter in target.parameters():
        if id(parameter) not in trained:
            parameter.requires_grad_(False)
    return target


@torch.no_grad()
def draw_weights(target: Transformer) -> None:
    """Draw a target's weights, but for shared ones, by its family's rule and torch's generator."""
    fresh = type(target)(target.config).state_dict()
    for name, parameter in target.named_parameters():
        # what is shared with the online branch is trained
        if not parameter.requires_grad:
            parameter.copy_(fresh[name])


def averaged_pairs(target: nn.Module, online: nn.Module) -> tuple[list[Tensor], list[Tensor]]:
    """The parameters of target and online branch in pairs, without those that both share."""
    sources = dict(online.named_parameters())
    own = {
        name: parameter.detach()
        for name, parameter in target.named_parameters()
        if parameter is not sources[name]
    }
    return list(own.values()), [sources[name].detach() for name in own]


def ema_update(target: list[Tensor], online: list[Tensor], decay: float) -> None:
    """θ_t ← η θ_t + (1 − η) θ_o in place, one fused lerp (MoCoSE, equation 2).

    Parameters only, not buffers: the supported encoders have no buffers that training changes.
    Raises ValueError unless 0 <= decay <= 1.
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"ema_decay {decay}: must lie in 0 to 1")
    if target:
        torch._foreach_lerp_(target, online, 1 - decay)
