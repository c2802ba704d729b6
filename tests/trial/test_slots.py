"""Every worker gets a GPU: each slot once, the GPU with the fewest workers first."""

import multiprocessing
import os
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mtdlab.trial import slots

PROCESSES = multiprocessing.get_context("forkserver")


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


def threads_on_one_core(pipe: Connection) -> None:
    os.sched_setaffinity(0, {0})
    pipe.send([slots.threads_each(1), slots.threads_each(2)])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system has no affinity")
def test_a_batch_system_may_give_fewer_cores_than_the_machine_has() -> None:
    pipe, other = PROCESSES.Pipe()
    process = PROCESSES.Process(target=threads_on_one_core, args=(other,))
    process.start()
    assert pipe.recv() == [1, 1]
    process.join()


def hold(folder: Path, pipe: Connection) -> None:
    """Take a slot, tell its GPU, and keep it until the process is killed."""
    gpu, _lock = slots.lock_slot(folder, gpus=3)
    pipe.send(gpu)
    pipe.poll(None)


@pytest.mark.slow
def test_processes_spread_over_the_gpus(tmp_path: Path) -> None:
    """Of sweeps that know nothing of each other; a killed one leaves its slot to the next."""
    pipes = list[Connection]()

    def start() -> ForkServerProcess:
        pipe, other = PROCESSES.Pipe()
        pipes.append(pipe)
        process = PROCESSES.Process(target=hold, args=(tmp_path, other), daemon=True)
        process.start()
        return process

    processes = [start() for _ in range(4)]
    try:
        gpus = [pipe.recv() for pipe in pipes]
        assert sorted(gpus) == [0, 0, 1, 2]
        killed = processes[gpus.index(1)]
        killed.kill()
        killed.join()
        processes.append(start())
        assert pipes[-1].recv() == 1
    finally:
        for process in processes:
            process.kill()
            process.join()
