"""The number of workers on a machine, their threads, and the GPU of each."""

import itertools
import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from joblib import cpu_count

_USED_GPU_MEMORY = 0.9
"""Of a GPU that several workers share; the rest is for fragments that allocators cannot use."""


def default_jobs(jobs_per_gpu: int = 1) -> int:
    """One process per core that this process may use; with GPUs, `jobs_per_gpu` on each."""
    return jobs_per_gpu * torch.cuda.device_count() or cpu_count()


def gpu_share(needed: int) -> int:
    """How many workers of so many bytes each fit on the smallest GPU here; 0 also for no bytes."""
    gpus = range(torch.cuda.device_count())
    smallest = min((torch.cuda.get_device_properties(gpu).total_memory for gpu in gpus), default=0)
    if not needed or needed > smallest:
        return 0
    return max(1, int(_USED_GPU_MEMORY * smallest / needed))


def threads_each(jobs: int) -> int:
    """The number of threads of each worker process."""
    return max(1, int(cpu_count()) // jobs)


@lru_cache(maxsize=1)
def take_gpu() -> FileLock | None:
    """Select the GPU with the fewest workers of any sweep, by a lock; None without a GPU."""
    if not (gpus := torch.cuda.device_count()):
        return None
    # by number: in a container the user may have no name
    folder = Path(tempfile.gettempdir()) / f"mtdlab-gpus-{os.getuid()}"
    gpu, lock = lock_slot(folder, gpus)
    torch.cuda.set_device(gpu)
    return lock


def lock_slot(folder: Path, gpus: int) -> tuple[int, FileLock]:
    """The first free slot, in turn over the GPUs; it is taken until the lock is released."""
    folder.mkdir(parents=True, exist_ok=True)
    for slot in itertools.count():
        turn, gpu = divmod(slot, gpus)
        lock = FileLock(folder / f"{gpu}-{turn}.lock", timeout=0)
        with suppress(Timeout):
            lock.acquire()
            return gpu, lock
    raise AssertionError("unreachable: the slots are endless")
