"""What processes of their own need and do: peak memory, and two workers against one."""

import multiprocessing
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier

import torch
import training_speed
from training_speed import Size

from mtdlab.corpus.tokens import TokenStore
from mtdlab.device import choose_device, peak_memory


@dataclass(frozen=True)
class Work:
    """Training for one process."""

    size: Size
    tokens: TokenStore
    steps: int
    threads: int


@dataclass(frozen=True)
class Done:
    """Sentences a second of all processes together; the greatest one's peak memory, in MB."""

    rate: float
    peak: float


def together(work: Work, processes: int) -> Done:
    """The same work in new processes at once; their clocks start when the last is ready."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes, _ready, (context.Barrier(processes),)) as pool:
        done = pool.map(_run, [work] * processes, chunksize=1)
    return Done(sum(one.rate for one in done), max(one.peak for one in done))


def _ready(barrier: Barrier) -> None:
    globals()["_barrier"] = barrier


def _run(work: Work) -> Done:
    torch.set_num_threads(work.threads)
    device = choose_device(training_speed.settings_for(1))
    inputs = training_speed.inputs_of(work.size, work.tokens, device)
    globals()["_barrier"].wait()
    seconds = training_speed.seconds_per_step(inputs, work.steps)
    return Done(training_speed.settings_for(1).batch_size / seconds, peak_memory() / 1e6)
