"""The device and the precision of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from mtdlab.errors import MtdlabError
from mtdlab.settings import TrainerSettings

BFLOAT16_FEATURES = ("amx_bf16", "avx512_bf16")
"""CPU features with instructions for bfloat16 matrix products, by torch's names."""

CUDA_CONTEXT = 600_000_000
"""Bytes of a GPU's memory that a process takes before it allocates a tensor, for its context."""


@dataclass(frozen=True)
class Device:
    """A device and the data type of its matrix products; all other operations use float32."""

    device: torch.device
    dtype: torch.dtype

    @property
    def precision(self) -> str:
        """`float32` or `bfloat16`."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def name(self) -> str:
        """`cpu`, or the name of the GPU."""
        return torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else "cpu"

    def autocast(self) -> torch.autocast:
        """The autocast context for encoder and heads."""
        return torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.dtype == torch.bfloat16
        )

    def reset_peak_memory(self) -> bool:
        """Begin a new peak; False on a system that cannot, where an earlier peak may remain."""
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
            return True
        try:
            # 5 resets the peak of the process (proc_pid_clear_refs(5))
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return False
        return True

    def peak_memory(self) -> int:
        """Highest number of bytes: allocated on a GPU, else resident of this process."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        return peak_memory()

    def gpu_memory(self) -> int:
        """Most bytes of a GPU that this process has needed, with its context; 0 without a GPU."""
        if self.device.type != "cuda":
            return 0
        return CUDA_CONTEXT + torch.cuda.max_memory_reserved(self.device)

    def __str__(self) -> str:
        return f"{self.name}, {self.precision}"


def peak_memory() -> int:
    """The peak resident memory of this process, in bytes, since its start or last reset."""
    try:
        # getrusage may report the peak of the parent process
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except (OSError, StopIteration):
        # imported here: Windows has none
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def choose_device(settings: TrainerSettings) -> Device:
    """The device and the precision of these settings, with `auto` resolved for this machine.

    `precision: auto` is bfloat16 where the hardware has instructions for its matrix products, else
    float32: not by measured times, so that machines of one kind choose the same precision. Raises
    MtdlabError for a CUDA device that does not exist.
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
    return Device(device, torch.bfloat16 if _has_bfloat16(device) else torch.float32)


def _has_bfloat16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    features: Mapping[str, object] = torch.cpu.get_capabilities()
    return any(features.get(name) for name in BFLOAT16_FEATURES)
