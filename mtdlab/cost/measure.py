"""The durations of steps and of embedding on this machine, in processes like those of a sweep."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from joblib import Parallel, delayed, parallel_config

from mtdlab.config import TrainerSettings
from mtdlab.cost.copies import can_copy, copies
from mtdlab.cost.sample import Sample, cache_in
from mtdlab.cost.step_timer import StepTimer
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Sentences
from mtdlab.encoders.traits import describe_encoder
from mtdlab.methods.registry import make_settings
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.sweep.slots import take_gpu, threads_each
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.user_code import UserModule


@dataclass(frozen=True)
class Measured:
    """The measurement of one worker. Seconds, bytes.

    began        when the measurement began, on the clock of `time.time`
    steps        duration of a step of each kind, in the order given
    token        duration of embedding one token, by encoder
    memory       peak memory at the largest step; gpu_memory: of the GPU, 0 without one
    weights      size of the encoder
    trained      size of its trained weights, which a checkpoint contains
    direct       how many kinds were measured directly, not derived
    encoders     family, forward pass and dropout of each encoder
    """

    began: float
    steps: list[float]
    token: dict[str, float]
    memory: int
    gpu_memory: int
    weights: int
    trained: int
    direct: int
    encoders: dict[str, str] = field(default_factory=dict)


def measure_in_processes(
    modules: Sequence[UserModule],
    kinds: Sequence[dict[str, Any]],
    sample: Sample,
    seconds: float,
    jobs: int,
    *,
    copy: bool = False,
) -> list[Measured]:
    """The measurements of `jobs` processes at once; kinds as plain values.

    copy  copy this process instead of starting new ones, which import everything for seconds.
          Only for a process that runs nothing else. It is not done where it is not safe: with a
          GPU, or with several threads in each process.
    """
    arguments = (modules, kinds, sample, seconds)
    threads = threads_each(jobs)
    if copy and jobs > 1 and threads == 1 and can_copy() and not torch.cuda.is_available():
        with copies(jobs, _use_one_thread) as pool:
            futures = [pool.submit(measure_in_worker, *arguments) for _ in range(jobs)]
            return [future.result() for future in futures]
    with parallel_config("loky", inner_max_num_threads=threads):
        measured: list[Measured] = Parallel(n_jobs=jobs)(
            delayed(measure_in_worker)(*arguments) for _ in range(jobs)
        )
    return measured


def _use_one_thread() -> None:
    """In a copied process: the threads of torch and of the tokenizers were not copied with it."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)


def measure_in_worker(
    modules: Sequence[UserModule], kinds: Sequence[dict[str, Any]], sample: Sample, seconds: float
) -> Measured:
    """`measure` in a process that has imported nothing yet; kinds as plain values."""
    ensure_imported(modules)
    return measure([make_settings(**values) for values in kinds], sample, seconds)


def measure(kinds: Sequence[TrainerSettings], sample: Sample, seconds: float) -> Measured:
    """Time steps of every kind, and embedding, for about `seconds` after loading."""
    began = time.time()
    take_gpu()
    with cache_in(sample.folder):
        first = load_inputs(sample.of(kinds[0]))
        timer = StepTimer(kinds, sample, time.perf_counter() + 0.75 * seconds)
        timer.measure()
        token, described = {}, {}
        for name in dict.fromkeys(kind.encoder for kind in kinds):
            one = next(kind for kind in kinds if kind.encoder == name)
            inputs = timer.inputs(one)
            token[name] = _seconds_a_token(one, inputs, sample, 0.25 * seconds)
            described[name] = describe_encoder(
                inputs.encoder.model, inputs.encoder.traits.dropout_fields
            )
        parameters = list(first.encoder.model.parameters())
        weights = sum(each.numel() * 4 for each in parameters)
        trained = sum(each.numel() * 4 for each in parameters if each.requires_grad)
        direct = sum(index >= 0 for index, *_ in timer.points)
        return Measured(
            began=began,
            steps=timer.steps(),
            token=token,
            memory=timer.memory(),
            gpu_memory=timer.gpu_memory(),
            weights=weights,
            trained=trained,
            direct=direct,
            encoders=described,
        )


def _seconds_a_token(
    settings: TrainerSettings, inputs: RunInputs, sample: Sample, seconds: float
) -> float:
    """Seconds per token of embedding, with as many sentences of middle length as time allows.

    Their lengths are similar, as in the batches of a whole evaluation, which have little padding.
    """
    device, count, taken, left = choose_device(settings), 8, 0.0, seconds
    model, tokenizer = inputs.encoder.model, inputs.encoder.tokenizer
    limit, rate = inputs.encoder.token_limit(MAX_LENGTH), 0.0
    while taken * 4 < left:
        first = max(0, len(sample.embedded) - count) // 2
        some = Sentences(sample.embedded[first : first + count], tokenizer, limit, settings.prompt)
        started = time.perf_counter()
        some.embed(model, settings.representation, device)
        taken = time.perf_counter() - started
        left -= taken
        rate = taken / sum(map(len, some.tokens))
        if count >= len(sample.embedded):
            break
        count *= 4
    return rate
