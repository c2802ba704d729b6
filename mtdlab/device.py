"""Where a run computes, and with how many bits."""

from dataclasses import dataclass

import torch

from mtdlab.errors import MtdlabError
from mtdlab.settings import TrainerSettings


@dataclass(frozen=True)
class Device:
    """A device and the type its matrix products use; the rest stays in float32."""

    device: torch.device
    dtype: torch.dtype

    def autocast(self) -> torch.autocast:
        """The context in which encoder and heads run."""
        return torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.dtype == torch.bfloat16
        )

    def __str__(self) -> str:
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"
        return f"{name}, {str(self.dtype).removeprefix('torch.')}"


def choose_device(settings: TrainerSettings) -> Device:
    """The device and precision that settings ask for; `auto` takes what the machine is good at.

    bfloat16 only where products in it are faster: on a GPU that has it, and on processors with
    AMX; elsewhere it is emulated, several times slower than float32.

    Raises MtdlabError for a CUDA device that is not there.
    """
    name = settings.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise MtdlabError(
            f"device {name}: this machine has {torch.cuda.device_count()} CUDA devices; "
            "use auto or cpu"
        )
    if settings.precision != "auto":
        return Device(device, getattr(torch, settings.precision))
    fast = (
        torch.cuda.is_bf16_supported(including_emulation=False)
        if device.type == "cuda"
        else bool(torch.cpu.get_capabilities().get("amx_bf16"))
    )
    return Device(device, torch.bfloat16 if fast else torch.float32)
