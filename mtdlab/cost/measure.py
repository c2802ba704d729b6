"""The durations of training steps and of embedding on this machine, in workers like a sweep's.

Durations are bounds, a lower and an upper one: of what was timed until two measurements agreed they
are close, of what had to be scaled from smaller batches they are further apart.
"""

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from mtdlab.cost.sample import Sample, cache_in
from mtdlab.device import choose_device, peak_memory
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Sentences
from mtdlab.encoders.traits import describe_encoder
from mtdlab.errors import TrialError
from mtdlab.methods.registry import make_settings
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import TrainerSettings, settings_of
from mtdlab.sweep.fork_server import ForkServer, call_in_forks
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.slots import take_gpu
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train
from mtdlab.user_code import UserModule

IMPORTED = time.time()
"""When the process that the workers are forks of had imported everything: this module is last."""

Kind = tuple[tuple[str, object], ...]
Bounds = tuple[float, float]
UNKNOWN: Bounds = (0.0, math.inf)


def kind_of(settings: TrainerSettings) -> Kind:
    """The settings that decide the cost of a step; equal for steps that cost the same."""
    found: list[tuple[str, object]] = []
    for name, setting in settings_of(type(settings)).items():
        value = getattr(settings, name)
        if setting.step_cost == "switch":
            found.append((name, value > 0))
        elif setting.step_cost != "none":
            found.append((name, value))
    return tuple(found)


def family_of(settings: TrainerSettings) -> Kind:
    """Those of them that do not scale the cost: steps of one family lie near one line."""
    known = settings_of(type(settings))
    return tuple(item for item in kind_of(settings) if known[item[0]].step_cost != "scales")


def operations(settings: TrainerSettings, inputs: RunInputs) -> float:
    """Approximate floating point operations of a step: encoder passes, heads, queue."""
    model = inputs.encoder.model
    width, table = int(model.config.hidden_size), model.get_input_embeddings().weight
    blocks = [
        weights.numel()
        for name, weights in model.named_parameters()
        if "embeddings" not in name and weights is not table
    ]
    stores = inputs.views or (inputs.tokens,)
    longest = min(settings.max_length, max(int(store.lengths.max()) for store in stores))
    sentence = longest * sum(blocks) + settings.head_operations(width)
    return 8.0 * settings.batch_size * sentence


WINDOW_SECONDS, AGREE = 0.7, 1.1
"""Length of one of the measurements that have to agree, and their ratio at most."""
FIRST_BATCH = 4
"""Batch size of the first steps of a family: a quick one, which bounds the others."""
LEAST_REPEATS = 3
"""The first, which is left out, and two measurements of one."""
MIN_GROWTH = 1.5
"""A smaller batch is measured only if its operations exceed all earlier ones by this factor."""


class Repeats:
    """Durations of what is repeated, averaged over windows, until two in succession agree.

    The first is left out: it allocates memory, builds kernels, and has no FGSM gradient yet.
    """

    def __init__(self, seconds: float) -> None:
        """It ends after `seconds` at the latest, but not before there are two windows."""
        self.windows: list[float] = []
        self._deadline = time.perf_counter() + seconds
        self._length = min(WINDOW_SECONDS, seconds / 4)
        self._began, self._count = math.nan, 0

    def ended(self) -> bool:
        """After each repetition: whether no other one is needed."""
        now = time.perf_counter()
        if math.isnan(self._began):
            self._began = now
            return False
        self._count += 1
        if now - self._began < self._length:
            return False
        self.windows.append((now - self._began) / self._count)
        self._began, self._count = now, 0
        return len(self.windows) > 1 and (self.agree() or now > self._deadline)

    def agree(self) -> bool:
        """Whether the last two windows do."""
        low, high = sorted(self.windows[-2:])
        return high <= AGREE * low

    def bounds(self) -> Bounds:
        """Of one repetition: from the two windows that agree, else from all."""
        chosen = self.windows[-2:] if self.agree() else self.windows
        return min(chosen), max(chosen)


class _Enough(Exception):
    """This measurement is over."""


@dataclass
class StepTimer:
    """Times steps of each kind.

    Attributes:
        points: operations and bounds of the steps that were timed, by family.
        direct: bounds of the kinds that were timed with their own batch, by place.
        agreed: those of them whose measurements agreed.
        peaks: operations, and peak memory of the process and of the GPU, by family.
    """

    kinds: Sequence[TrainerSettings]
    sample: Sample
    deadline: float
    stop: StopRequest
    points: dict[Kind, list[tuple[float, Bounds]]] = field(default_factory=dict)
    direct: dict[int, Bounds] = field(default_factory=dict)
    agreed: set[int] = field(default_factory=set)
    peaks: dict[Kind, list[tuple[float, tuple[int, int]]]] = field(default_factory=dict)
    sentences: dict[Kind, float] = field(default_factory=dict)

    def inputs(self, settings: TrainerSettings) -> RunInputs:
        return load_inputs(self.sample.of(settings))

    def work(self, settings: TrainerSettings) -> float:
        kind = kind_of(settings.model_copy(update={"batch_size": 1}))
        if kind not in self.sentences:
            # once per kind, since it may load another encoder
            sentence = operations(settings, self.inputs(settings)) / settings.batch_size
            self.sentences[kind] = sentence
        return settings.batch_size * self.sentences[kind]

    def left(self) -> float:
        return self.deadline - time.perf_counter()

    def measure(self) -> None:
        """Largest of each family first, then the smallest, then the rest, as far as time allows."""
        ascending = sorted(range(len(self.kinds)), key=lambda index: self.work(self.kinds[index]))
        largest = {family_of(self.kinds[index]): index for index in ascending}
        order = list(dict.fromkeys([*largest.values(), *ascending]))
        for rank, index in enumerate(order):
            if not rank or self.left() > 0:
                self._measure_kind(index, self.left() / (len(order) - rank))

    def _measure_kind(self, index: int, share: float) -> None:
        """Time a kind with its own batch if there is time, else with the largest that there is."""
        kind, until = self.kinds[index], time.perf_counter() + share
        if family_of(kind) not in self.points:
            self._time(reduce_batch(kind, FIRST_BATCH), share / 4)
        left, batch = until - time.perf_counter(), kind.batch_size
        while batch > FIRST_BATCH and left < LEAST_REPEATS * self._expected(kind, batch):
            batch //= 2
        known = max(work for work, _ in self.points[family_of(kind)])
        if batch == kind.batch_size:
            repeats = self._time(kind, left)
            self.direct[index] = repeats.bounds()
            self.agreed |= {index} if repeats.agree() else set()
        elif self.work(reduce_batch(kind, batch)) >= MIN_GROWTH * known:
            self._time(reduce_batch(kind, batch), left)

    def _expected(self, kind: TrainerSettings, batch: int) -> float:
        return sum(self._scaled(reduce_batch(kind, batch))) / 2

    def _time(self, settings: TrainerSettings, seconds: float) -> Repeats:
        repeats = time_steps(self.sample.of(settings), self.inputs(settings), seconds, self.stop)
        work, family = self.work(settings), family_of(settings)
        peaks = peak_memory(), choose_device(settings).gpu_memory()
        self.points.setdefault(family, []).append((work, repeats.bounds()))
        self.peaks.setdefault(family, []).append((work, peaks))
        return repeats

    def steps(self) -> list[Bounds]:
        """Seconds per step of every kind: timed, or from its family's; else `UNKNOWN`."""
        return [
            self.direct[index] if index in self.direct else self._scaled(kind)
            for index, kind in enumerate(self.kinds)
        ]

    def _scaled(self, kind: TrainerSettings) -> Bounds:
        points = self.points.get(family_of(kind))
        return scale(points, self.work(kind)) if points else UNKNOWN

    def memory(self) -> list[int]:
        """Peak memory, and that of the GPU (0 without one), at the largest step.

        Of a family of which only smaller steps were timed, extrapolated from these.
        """
        # embedding, which is not among the steps, may have needed more
        found = [np.array([peak_memory(), choose_device(self.kinds[0]).gpu_memory()], float)]
        for family, peaks in self.peaks.items():
            (small, least), (big, most) = min(peaks), max(peaks)
            largest = max(self.work(kind) for kind in self.kinds if family_of(kind) == family)
            further = (largest - big) / (big - small) if big > small else 0.0
            high = np.array(most, float)
            found.append(high + np.maximum(high - least, 0) * further)
        return [int(each) for each in np.max(found, axis=0)]


def reduce_batch(settings: TrainerSettings, batch: int) -> TrainerSettings:
    """The same step with a batch of at most `batch`; the queue is full from the first step."""
    if batch >= settings.batch_size:
        return settings
    changed = {"batch_size": batch}
    if "initial_queue_size" in type(settings).model_fields:
        changed["initial_queue_size"] = getattr(settings, "queue_size", 0)
    return settings.model_copy(update=changed)


def scale(points: Sequence[tuple[float, Bounds]], work: float) -> Bounds:
    """Bounds of a step with `work` operations, from those of others of its family.

    A step has a constant cost and one in proportion to its operations. The upper bound has no
    constant cost beyond the point nearest to it; the lower one is on the line through the points.
    """
    high = min(bounds[1] * max(1.0, work / at) for at, bounds in points)
    low = max(bounds[0] * min(1.0, work / at) for at, bounds in points)
    at, seconds = np.array([(at, sum(bounds) / 2) for at, bounds in points]).T
    if len(set(at)) > 1 and work > at.max():
        low = max(low, float(np.polyval(np.polyfit(at, seconds, 1), work)))
    return min(low, high), max(low, high)


def time_steps(
    settings: TrainerSettings, inputs: RunInputs, seconds: float, stop: StopRequest
) -> Repeats:
    """Time training steps for about so many seconds. Raises Interrupted for a requested stop."""
    device, repeats = choose_device(settings).device, Repeats(seconds)

    def on_step(_step: int, _evaluation: object) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if stop.requested():
            raise Interrupted
        if repeats.ended():
            raise _Enough

    endless = settings.model_copy(update={"steps": 100_000, "evaluate_every": 100_000})
    with suppress(_Enough):
        train(endless, inputs, on_step)
    return repeats


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
    seconds: float,
    jobs: int,
) -> list[Measured]:
    """The measurements of `jobs` workers of a server at once.

    Raises the error of one of them, and TrialError where they die or are stopped by a signal.
    """
    # plain values: a method of the user's own cannot be unpickled before it is imported
    values = [kind.model_dump() for kind in kinds]
    call = (measure_in_worker, (modules, values, sample, seconds))
    found = [each for each in call_in_forks(server, call, jobs) if isinstance(each, Measured)]
    if len(found) < jobs:
        raise TrialError("the measurement was stopped by a signal; repeat the command")
    return found


def measure_in_worker(
    modules: Sequence[UserModule],
    kinds: Sequence[dict[str, Any]],
    sample: Sample,
    seconds: float,
    stop: StopRequest,
) -> Measured | None:
    """`measure` in a process that has not imported the user's modules; kinds as plain values.

    None where a stop was requested.
    """
    ensure_imported(modules)
    with suppress(Interrupted):
        return measure([make_settings(**values) for values in kinds], sample, seconds, stop)
    return None


def measure(
    kinds: Sequence[TrainerSettings], sample: Sample, seconds: float, stop: StopRequest
) -> Measured:
    """Time steps of every kind, and embedding, for at most about `seconds` after loading.

    Raises Interrupted when a stop is requested.
    """
    take_gpu()
    with cache_in(sample.folder):
        first = load_inputs(sample.of(kinds[0]))
        timer = StepTimer(kinds, sample, time.perf_counter() + 0.75 * seconds, stop)
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
        memory, gpu_memory = timer.memory()
        return Measured(
            imported=IMPORTED,
            steps=timer.steps(),
            token=token,
            memory=memory,
            gpu_memory=gpu_memory,
            weights=weights,
            trained=trained,
            direct=len(timer.agreed),
            encoders=described,
        )


def _seconds_a_token(
    settings: TrainerSettings, inputs: RunInputs, sample: Sample, seconds: float
) -> Bounds:
    """Seconds per token of embedding, with as many sentences of middle length as time allows.

    Their lengths are similar, as in the batches of a whole evaluation, which have little padding.
    """
    encoder, count, until = inputs.encoder, 8, time.perf_counter() + seconds
    embedder = Embedder(encoder.model, settings.representation, choose_device(settings))
    limit = encoder.token_limit(MAX_LENGTH)
    while True:
        first = max(0, len(sample.embedded) - count) // 2
        some = Sentences(
            sample.embedded[first : first + count], encoder.tokenizer, limit, settings.prompt
        )
        started = time.perf_counter()
        some.embed(embedder)
        left = until - time.perf_counter()
        taken = time.perf_counter() - started
        if count >= len(sample.embedded) or 4 * (LEAST_REPEATS + 1) * taken > left:
            break
        count *= 4
    repeats, tokens = Repeats(max(left, 0.0)), sum(map(len, some.tokens))
    while not repeats.ended():
        some.embed(embedder)
    low, high = repeats.bounds()
    return low / tokens, high / tokens
