"""LoRA (Hu et al., ICLR 2022): the encoder is frozen, low-rank adapters of it are trained.

The layers are those of the package peft. The frozen parameters are one set of tensors for all
copies of the encoder: the one that was loaded, the trained one and its momentum average. They are
in no state, since loading the encoder restores them.
"""

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from mtdlab.errors import MtdlabError, require
from mtdlab.settings import TrainerSettings

if TYPE_CHECKING:
    # it takes seconds to import, and study files are read without it
    from transformers import PreTrainedModel

ALL_LINEAR = "all-linear"
"""The value of `lora_targets` for every linear layer."""


def check_adapters(settings: TrainerSettings) -> None:
    """Raise MtdlabError if adapters are to be trained without the package peft."""
    if settings.lora_rank:
        require(f"lora_rank {settings.lora_rank}", "peft", "peft")


def add_adapters(model: "PreTrainedModel", settings: TrainerSettings) -> None:
    """Freeze a model and add adapters, which do not change its vectors before training.

    Nothing is done for `lora_rank: 0`. Raises MtdlabError without the package peft, or if
    `lora_targets` are no layers of the model.
    """
    check_adapters(settings)
    if not settings.lora_rank:
        return
    # it takes seconds to import
    from peft import LoraConfig, inject_adapter_in_model

    targets = settings.lora_targets
    config = LoraConfig(
        r=settings.lora_rank,
        lora_alpha=settings.lora_alpha,
        target_modules=targets if targets == ALL_LINEAR else targets.split(","),
        lora_dropout=0.0,
        bias="none",
    )
    # equal in every process, and without a draw from the generator of a run
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        try:
            inject_adapter_in_model(config, model)
        except ValueError:
            modules = model.named_modules()
            layers = {
                name.split(".")[-1] for name, module in modules if isinstance(module, nn.Linear)
            }
            raise MtdlabError(
                f"lora_targets {targets}: encoder {settings.encoder} has no such layers; choose "
                f"{ALL_LINEAR}, or among {', '.join(sorted(layers))}"
            ) from None


def has_adapters(model: nn.Module) -> bool:
    """Whether `add_adapters` has changed a model."""
    return "peft_config" in vars(model)


def frozen_memo(module: nn.Module) -> dict[int, Any]:
    """The frozen parameters as the memo of `copy.deepcopy`, which then shares them."""
    return {id(parameter): parameter for parameter in _frozen(module).values()}


def copy_to_train(model: "PreTrainedModel") -> "PreTrainedModel":
    """A copy of a loaded model with adapters drawn anew by torch; frozen weights are shared."""
    copied = copy.deepcopy(model, frozen_memo(model))
    if has_adapters(copied):
        for layer in _adapted_layers(copied).values():
            layer.reset_lora_parameters("default", True)
    return copied


def own_state(module: nn.Module) -> dict[str, Tensor]:
    """The state dict of a module without frozen parameters."""
    frozen = _frozen(module)
    return {name: value for name, value in module.state_dict().items() if name not in frozen}


def load_own_state(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load what `own_state` returned. Raises RuntimeError for a state of other parameters."""
    frozen = _frozen(module).keys()
    missing, unexpected = module.load_state_dict(state, strict=not frozen)
    if others := {*missing, *unexpected} - frozen:
        raise RuntimeError(f"missing or unexpected in a state: {', '.join(sorted(others))}")


def merge_adapters(model: "PreTrainedModel") -> None:
    """Add the adapters to the weights of a model, which then has its family's own layers."""
    for name, layer in _adapted_layers(model).items():
        layer.merge()
        model.set_submodule(name, layer.get_base_layer())
    vars(model).pop("peft_config", None)


def _frozen(module: nn.Module) -> dict[str, nn.Parameter]:
    """The frozen parameters of all models with adapters in a module, by name."""
    return {
        name: parameter
        for prefix, part in module.named_modules(remove_duplicate=False)
        if has_adapters(part)
        for name, parameter in part.named_parameters(prefix, remove_duplicate=False)
        if ".lora_" not in name
    }


def _adapted_layers(model: nn.Module) -> dict[str, Any]:
    return {name: layer for name, layer in model.named_modules() if hasattr(layer, "lora_A")}
