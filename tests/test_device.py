"""The device and precision that `auto` resolves to."""

from pathlib import Path

import pytest
import torch

from mtdlab.device import Device, choose_device
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings


@pytest.mark.parametrize(
    ("features", "dtype"),
    [
        ({"avx512_f": True}, torch.float32),
        ({"avx512_bf16": False, "amx_bf16": False}, torch.float32),
        ({"avx512_bf16": True, "amx_bf16": False}, torch.bfloat16),
        ({"avx512_bf16": True, "amx_bf16": True}, torch.bfloat16),
        ({"amx_bf16": True}, torch.bfloat16),
        ({"neon": True}, torch.float32),
    ],
)
def test_auto_is_bfloat16_where_the_processor_has_instructions_for_it(
    monkeypatch: pytest.MonkeyPatch, features: dict[str, bool], dtype: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: features)
    assert choose_device(make_settings(device="cpu")).dtype == dtype
    # a precision that is named is taken as it is
    assert choose_device(make_settings(device="cpu", precision="float32")).dtype == torch.float32


def test_a_process_needs_memory_of_a_gpu_for_its_context_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _device: 2_000_000_000)
    assert Device(torch.device("cuda"), torch.float32).gpu_memory() == 2_600_000_000
    assert Device(torch.device("cpu"), torch.float32).gpu_memory() == 0


def test_torch_names_the_features_that_auto_asks_for() -> None:
    features = torch.cpu.get_capabilities()
    if features["architecture"] != "x86_64":
        pytest.skip("the features are those of x86 processors")
    assert {"amx_bf16", "avx512_bf16"} <= features.keys()


def test_a_gpu_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(MtdlabError, match="device cuda:3: this machine has 1 CUDA devices"):
        choose_device(make_settings(device="cuda:3"))


@pytest.mark.slow
def test_the_peak_memory_is_that_since_the_last_reset() -> None:
    device = choose_device(make_settings(device="cpu"))
    # bytes that are not all zero: pages of zeros are not resident
    large = bytearray(b"\1" * 300_000_000)
    assert device.peak_memory() > len(large)
    before = len(large)
    del large
    if not device.reset_peak_memory():
        pytest.skip("this system cannot begin a new peak")
    after = device.peak_memory()
    another = bytearray(b"\1" * 100_000_000)
    assert device.peak_memory() >= after + 0.9 * len(another)
    assert device.peak_memory() < after + before


def test_a_system_that_cannot_begin_a_new_peak_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "write_text", refuse)
    assert not choose_device(make_settings(device="cpu")).reset_peak_memory()
