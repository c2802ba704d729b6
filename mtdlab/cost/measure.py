"""The durations of training steps and of embedding on this machine, in workers like a sweep's.

A duration is two bounds. Of what was timed they are the means of two halves of its repetitions; of
a step for which there was no time they are what steps of other sizes imply.
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
"""Duration of the timed steps at most, in all and of one kind, unless three steps take longer."""
STEADY_SECONDS = 1.0
"""For how long a step is repeated where there is time, and embedding."""
FEWEST = 3
"""Repetitions, whatever they take: one that is left out, and two that are compared."""
AGREE = 1.1
"""Ratio of the bounds up to which a step counts as measured."""
FIRST_BATCH = 4
"""Batch size of the first steps of a family: quick ones, which say how many fit into the time."""

Kind = tuple[tuple[str, object], ...]
Bounds = tuple[float, float]
UNKNOWN: Bounds = (0.0, float("inf"))


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


def family_of(settings: TrainerSettings) -> Kind:
    """The settings that decide the cost of a step but for its size."""
    declared = settings_of(type(settings))
    return tuple(item for item in kind_of(settings) if declared[item[0]].step_cost != "scales")


def size_of(settings: TrainerSettings) -> int:
    """The tokens of a step, with which the cost grows within a family."""
    return settings.batch_size * settings.max_length


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


def reduce_batch(settings: TrainerSettings, batch: int) -> TrainerSettings:
    """The same step with a batch of at most `batch`; the queue is full from the first step."""
    if batch >= settings.batch_size:
        return settings
    changed = {"batch_size": batch}
    if "initial_queue_size" in type(settings).model_fields:
        changed["initial_queue_size"] = getattr(settings, "queue_size", 0)
    return settings.model_copy(update=changed)


Timed = tuple[int, Floats]
"""A step's size; its lower and upper bound, peak memory of the process and of the GPU, (4,)."""


def derive(size: int, timed: Sequence[Timed]) -> Floats:
    """The four values of a step of another size, from those that were timed, smallest first.

    A step has a constant cost and one in proportion to its size: values are on the line through the
    smallest and the largest step, and the other bound of the duration is in proportion to size.
    """
    (least, small), (most, large) = timed[0], timed[-1]
    slope = np.maximum(large - small, 0) / max(most - least, 1)
    values = large + slope * (size - most)
    proportional = large[1] * size / most
    values[:2] = min(values[0], proportional), max(values[1], proportional)
    return np.asarray(values)


@dataclass
class StepTimer:
    """Times a step of each kind, and derives those for which there was no time.

    Attributes:
        families: the steps that were timed, by family, smallest first.
        direct: the kinds that were timed with their own batch, and their values.
    """

    stop: StopRequest
    families: dict[Kind, list[Timed]] = field(default_factory=dict)
    direct: dict[Kind, Floats] = field(default_factory=dict)

    def measure(self, kinds: Sequence[TrainerSettings]) -> None:
        """Time the largest step of each family first, which needs most memory, then the rest."""
        deadline = time.perf_counter() + min(MOST_SECONDS, SECONDS_A_KIND * len(kinds))
        ascending = sorted(kinds, key=size_of)
        largest = {family_of(each): each for each in ascending}.values()
        order = list({kind_of(each): each for each in (*largest, *ascending)}.values())
        for rank, kind in enumerate(order):
            left = deadline - time.perf_counter()
            if rank and left <= 0:
                return
            self._measure(kind, time.perf_counter() + left / (len(order) - rank))

    def _measure(self, kind: TrainerSettings, until: float) -> None:
        """Time a step with its own batch if there is time, else with the largest that there is."""
        timed = self.families.setdefault(family_of(kind), [])
        if not timed:
            self._time(kind, FIRST_BATCH, 0.0)
        left, (size, (_, upper, *_)) = until - time.perf_counter(), timed[-1]
        steps = FEWEST * upper * size_of(kind) / size
        batch = min(kind.batch_size, int(kind.batch_size * left / steps))
        if batch > FIRST_BATCH or batch == kind.batch_size:
            self._time(kind, batch, min(left, STEADY_SECONDS))

    def _time(self, kind: TrainerSettings, batch: int, seconds: float) -> None:
        settings = reduce_batch(kind, batch)
        bounds = time_steps(settings, load_inputs(settings), seconds, self.stop)
        values = np.array([*bounds, *peaks_of(settings)])
        if batch >= kind.batch_size:
            self.direct[kind_of(kind)] = values
        timed = self.families[family_of(kind)]
        timed.append((size_of(settings), values))
        timed.sort(key=lambda each: each[0])

    def values(self, kind: TrainerSettings) -> Floats:
        """Bounds and peak memory of a step, (4,): as timed, or as its family implies."""
        if (values := self.direct.get(kind_of(kind))) is not None:
            return values
        timed = self.families.get(family_of(kind))
        return derive(size_of(kind), timed) if timed else np.array([*UNKNOWN, 0.0, 0.0])


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
        direct: how many kinds were timed, with measurements that agreed, not derived.
        encoders: family, forward pass and dropout of each encoder.
    """

    imported: float
    steps: list[Bounds]
    token: dict[str, Bounds]
    memory: int
    gpu_memory: int
    weights: int
    trained: int
    direct: int
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
    timer, token, encoders = StepTimer(stop), {}, {}
    with cache_in(sample.folder), suppress(Interrupted):
        parameters = list(load_inputs(settings[0]).encoder.model.parameters())
        timer.measure(settings)
        for name, one in {each.encoder: each for each in reversed(settings)}.items():
            inputs = load_inputs(one)
            token[name] = time_embedding(one, inputs)
            fields = inputs.encoder.dropout_fields
            encoders[name] = describe_encoder(inputs.encoder.model, fields)
        values = np.array([timer.values(each) for each in settings])
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
            direct=int(sum(each[1] <= AGREE * each[0] for each in timer.direct.values())),
            encoders=encoders,
        )
    return None
