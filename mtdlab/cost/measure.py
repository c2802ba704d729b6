"""The durations of training steps and of embedding on this machine, in workers like a sweep's.

A duration is two bounds. Of what was timed they are the means of two halves of its repetitions; of
a step for which there was no time they are what steps with smaller batches imply.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from mtdlab.analysis.measures import Floats
from mtdlab.cost.sample import Sample, cache_in
from mtdlab.device import choose_device, peak_memory
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.traits import describe_encoder
from mtdlab.errors import TrialError
from mtdlab.methods.registry import make_settings
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import TrainerSettings, settings_of
from mtdlab.sweep.fork_server import ForkServer, call_in_forks
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train
from mtdlab.trial.signals import Interrupted, StopRequest
from mtdlab.trial.slots import take_gpu
from mtdlab.user_code import UserModule

IMPORTED = time.time()
"""When the process that the workers are forks of had imported everything: this module is last."""
MOST_SECONDS, SECONDS_A_KIND = 11.0, 6.0
"""Duration of the timed steps at most, in all and of one kind, unless a few steps take longer."""
STEADY_SECONDS = 1.0
"""For how long a step is repeated where there is time, and embedding."""
FEWEST = 3
"""Repetitions, whatever they take: one that is left out, and two that are compared."""
FIRST_BATCH = 4
"""Batch size of the first steps of a kind: quick ones, which say how many fit into the time."""

Kind = tuple[tuple[str, object], ...]
Bounds = tuple[float, float]


def kind_of(settings: TrainerSettings) -> Kind:
    """The settings that decide the cost of a step; equal for steps that cost the same."""
    deciding: list[tuple[str, object]] = []
    for name, setting in settings_of(type(settings)).items():
        value = getattr(settings, name)
        if setting.step_cost == "switch":
            deciding.append((name, value > 0))
        elif setting.step_cost != "none":
            deciding.append((name, value))
    return tuple(deciding)


def bounds_of(durations: Sequence[float]) -> Bounds:
    """The means of the first and of the second half, the smaller first; at least two durations."""
    halves = np.array_split(np.asarray(durations, float), 2)
    low, high = sorted(float(half.mean()) for half in halves)
    return low, high


class _Enough(Exception):
    """This measurement is over."""


def time_steps(
    settings: TrainerSettings, inputs: RunInputs, seconds: float, stop: StopRequest
) -> Bounds:
    """Bounds of a training step, repeated for about `seconds`, at least three times.

    The first step is left out: it allocates memory, builds kernels, and has no FGSM gradient yet.
    Raises Interrupted for a requested stop.
    """
    device, ends = choose_device(settings).device, list[float]()

    def on_step(_step: int, _evaluation: object) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if stop.requested():
            raise Interrupted
        ends.append(time.perf_counter())
        if len(ends) >= FEWEST and ends[-1] - ends[0] >= seconds:
            raise _Enough

    endless = settings.model_copy(update={"steps": 100_000, "evaluate_every": 100_000})
    with suppress(_Enough):
        train(endless, inputs, on_step)
    return bounds_of(np.diff(ends).tolist())


def time_kind(settings: TrainerSettings, seconds: float, stop: StopRequest) -> Floats:
    """Lower and upper bound of a step, peak memory of the process and of the GPU, (4,).

    Timed for about `seconds`. A step that takes longer follows from the largest batch for which
    there is time.
    """

    def time_batch(batch: int, seconds: float) -> Floats:
        reduced = reduce_batch(settings, batch)
        bounds = time_steps(reduced, load_inputs(reduced), seconds, stop)
        return np.array([*bounds, *peaks_of(reduced)])

    least = min(FIRST_BATCH, settings.batch_size)
    small = time_batch(least, 0.0)
    affordable = int(least * seconds / (FEWEST * small[1]))
    most = max(least, min(settings.batch_size, affordable))
    large = time_batch(most, min(seconds, STEADY_SECONDS))
    return extrapolate(least, small, most, large, settings.batch_size)


def reduce_batch(settings: TrainerSettings, batch: int) -> TrainerSettings:
    """The same step with a batch of at most `batch`; the queue is full from the first step."""
    if batch >= settings.batch_size:
        return settings
    changed = {"batch_size": batch}
    if "initial_queue_size" in type(settings).model_fields:
        changed["initial_queue_size"] = getattr(settings, "queue_size", 0)
    return settings.model_copy(update=changed)


def extrapolate(least: int, small: Floats, most: int, large: Floats, batch: int) -> Floats:
    """The four values of a step with `batch` sentences, from those with `least` and with `most`.

    A step has a constant cost and one in proportion to its batch: values are on the line through
    both, and the other bound of the duration is in proportion to the batch.
    """
    values = large + np.maximum(large - small, 0) / max(most - least, 1) * (batch - most)
    proportional = large[1] * batch / most
    values[:2] = min(values[0], proportional), max(values[1], proportional)
    return np.asarray(values)


def peaks_of(settings: TrainerSettings) -> Bounds:
    """Peak memory in bytes of this process, and that of its GPU."""
    return float(peak_memory()), float(choose_device(settings).gpu_memory())


def time_embedding(settings: TrainerSettings, inputs: RunInputs) -> Bounds:
    """Bounds of the seconds per token of embedding, repeated for about `STEADY_SECONDS`."""
    device, sentences = choose_device(settings), inputs.test.sentences
    embedder = Embedder(inputs.encoder.model, settings.representation, device)
    ends = [time.perf_counter()]
    while len(ends) <= FEWEST or ends[-1] - ends[1] < STEADY_SECONDS:
        sentences.embed(embedder)
        ends.append(time.perf_counter())
    low, high = bounds_of(np.diff(ends[1:]).tolist())
    tokens = sum(map(len, sentences.tokens))
    return low / tokens, high / tokens


@dataclass(frozen=True)
class Measured:
    """The measurement of one worker. Seconds, bytes.

    Attributes:
        imported: when the workers' packages were imported, on the clock of `time.time`.
        steps: duration of a step of each kind, in the order given.
        token: duration of embedding one token, by encoder.
        memory: peak memory at the largest step.
        gpu_memory: of the GPU, 0 without one.
        weights: size of the encoder.
        trained: size of its trained weights, which a checkpoint contains.
        encoders: family, forward pass and dropout of each encoder.
    """

    imported: float
    steps: list[Bounds]
    token: dict[str, Bounds]
    memory: int
    gpu_memory: int
    weights: int
    trained: int
    encoders: dict[str, str] = field(default_factory=dict)


def measure_in_workers(
    server: ForkServer,
    modules: Sequence[UserModule],
    kinds: Sequence[TrainerSettings],
    sample: Sample,
    jobs: int,
) -> list[Measured]:
    """The measurements of `jobs` workers of a server at once.

    Raises the error of one of them, and TrialError where they die or are stopped by a signal.
    """
    # plain values: a method of the user's own cannot be unpickled before it is imported
    call = (measure, (modules, [kind.model_dump() for kind in kinds], sample))
    measured = [each for each in call_in_forks(server, call, jobs) if isinstance(each, Measured)]
    if len(measured) < jobs:
        raise TrialError("the measurement was stopped by a signal; repeat the command")
    return measured


def measure(
    modules: Sequence[UserModule],
    kinds: Sequence[dict[str, Any]],
    sample: Sample,
    stop: StopRequest,
) -> Measured | None:
    """Time steps of every kind, and embedding with every encoder.

    The process need not have imported the user's modules. None where a stop was requested.
    """
    ensure_imported(modules)
    take_gpu()
    settings = [sample.of(make_settings(**values)) for values in kinds]
    seconds, token, encoders = min(MOST_SECONDS / len(settings), SECONDS_A_KIND), {}, {}
    with cache_in(sample.folder), suppress(Interrupted):
        parameters = list(load_inputs(settings[0]).encoder.model.parameters())
        # the largest batch first: how the peak grows with a batch is hidden by that of a larger one
        values = np.zeros((len(settings), 4))
        for at in np.argsort([-each.batch_size for each in settings], stable=True):
            values[at] = time_kind(settings[at], seconds, stop)
        for name, one in {each.encoder: each for each in reversed(settings)}.items():
            inputs = load_inputs(one)
            token[name] = time_embedding(one, inputs)
            fields = inputs.encoder.dropout_fields
            encoders[name] = describe_encoder(inputs.encoder.model, fields)
        # embedding, which is not among the steps, may have needed more
        memory, gpu_memory = np.maximum(values[:, 2:].max(axis=0), peaks_of(settings[0]))
        return Measured(
            imported=IMPORTED,
            steps=[(float(low), float(high)) for low, high in values[:, :2]],
            token=token,
            memory=int(memory),
            gpu_memory=int(gpu_memory),
            weights=4 * sum(each.numel() for each in parameters),
            trained=4 * sum(each.numel() for each in parameters if each.requires_grad),
            encoders=encoders,
        )
    return None
