"""Every worker gets a GPU: each slot once, the GPU with the fewest workers first."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

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


def test_as_many_workers_fit_as_the_smallest_gpu_has_memory_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes = [80_000_000_000, 16_000_000_000]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda gpu: SimpleNamespace(total_memory=sizes[gpu])
    )
    # a tenth of 16 GB is left free
    assert slots.gpu_share(3_000_000_000) == 4
    assert slots.gpu_share(15_000_000_000) == 1
    assert slots.gpu_share(17_000_000_000) == 0
    assert slots.gpu_share(0) == 0
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert slots.gpu_share(3_000_000_000) == 0


def test_without_gpus_there_is_a_worker_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(slots, "cpu_count", lambda: 6)
    assert slots.take_gpu.__wrapped__() is None
    assert (slots.default_jobs(), slots.threads_each(4), slots.threads_each(9)) == (6, 1, 1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_a_batch_system_may_give_fewer_cores_than_the_machine_has() -> None:
    code = "import os; os.sched_setaffinity(0, {0}); from mtdlab.sweep import slots; "
    code += "print(slots.threads_each(1), slots.threads_each(2))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert printed.stdout.split() == ["1", "1"]


HOLD = """
import sys
from pathlib import Path
from mtdlab.sweep.slots import lock_slot
gpu, lock = lock_slot(Path(sys.argv[1]), gpus=3)
print(gpu, flush=True)
sys.stdin.read()
"""


def test_processes_spread_over_the_gpus(tmp_path: Path) -> None:
    """Of sweeps that know nothing of each other; a killed one leaves its slot to the next."""

    def hold() -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", HOLD, str(tmp_path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(command, text=True, **pipes)

    def gpu_of(process: "subprocess.Popen[str]") -> int:
        assert process.stdout is not None
        return int(process.stdout.readline())

    processes = [hold() for _ in range(4)]
    try:
        gpus = [gpu_of(process) for process in processes]
        assert sorted(gpus) == [0, 0, 1, 2]
        killed = gpus.index(1)
        processes[killed].kill()
        processes[killed].wait()
        processes.append(hold())
        assert gpu_of(processes[-1]) == 1
    finally:
        for process in processes:
            process.kill()
            process.communicate()
