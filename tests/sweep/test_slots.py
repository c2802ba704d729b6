"""Every worker gets a GPU: each slot once, the GPU with the fewest workers first."""

from pathlib import Path

import pytest
import torch

from mtdlab.sweep import slots


def test_slots_alternate_between_gpus_and_are_released(tmp_path: Path) -> None:
    held = [slots.lock_slot(tmp_path, gpus=2) for _ in range(5)]
    assert [gpu for gpu, _ in held] == [0, 1, 0, 1, 0]
    held[1][1].release()
    assert slots.lock_slot(tmp_path, gpus=2)[0] == 1


def test_a_worker_computes_on_the_gpu_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(slots.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    locks = [slots.take_gpu.__wrapped__() for _ in range(3)]
    assert chosen == [0, 1, 0]
    assert all(lock is not None and lock.is_locked for lock in locks)
    assert slots.default_jobs(jobs_per_gpu=3) == 6


def test_without_gpus_there_is_a_worker_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(slots.os, "cpu_count", lambda: 6)
    assert slots.take_gpu.__wrapped__() is None
    assert (slots.default_jobs(), slots.threads_each(4), slots.threads_each(9)) == (6, 1, 1)
