"""How many workers a machine has, with how many threads, and on which GPU each computes."""

import getpass
import itertools
import os
import tempfile
from functools import lru_cache
from pathlib import Path

import torch
from filelock import FileLock, Timeout


def default_jobs(jobs_per_gpu: int = 1) -> int:
    """One process a core, each with one thread; on a machine with GPUs so many on each."""
    return jobs_per_gpu * torch.cuda.device_count() or os.cpu_count() or 1


def threads_each(jobs: int) -> int:
    """Threads of each of so many worker processes."""
    return max(1, (os.cpu_count() or 1) // jobs)


@lru_cache(maxsize=1)
def take_gpu() -> FileLock | None:
    """Make the GPU with the fewest workers this process' own; None where the machine has none.

    Processes of several sweeps count each other too. The system gives a dead process' place back.
    """
    if not (gpus := torch.cuda.device_count()):
        return None
    folder = Path(tempfile.gettempdir()) / f"mtdlab-gpus-{_user()}"
    gpu, lock = take_place(folder, gpus)
    torch.cuda.set_device(gpu)
    return lock


def _user() -> str:
    # by number: a container may have none by name
    return str(os.getuid()) if hasattr(os, "getuid") else getpass.getuser()


def take_place(folder: Path, gpus: int) -> tuple[int, FileLock]:
    """The first free place, round by round over the GPUs; it is held until the lock is let go."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in itertools.count():
        turn, gpu = divmod(place, gpus)
        lock = FileLock(folder / f"{gpu}-{turn}.lock", timeout=0)
        try:
            lock.acquire()
        except Timeout:
            continue
        return gpu, lock
    raise AssertionError("there are endless places")
