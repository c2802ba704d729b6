"""The durations of training steps and of embedding on this machine, in workers like a sweep's.

A duration is two bounds: of what was repeated until two measurements agreed they are close, of a
step for which there was no time they are what the steps of its family imply.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from analysis.measures import Floats
from mtdlab.cost.sample import Sample, cache_in
from mtdlab.device import choose_device, peak_memory
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Sentences
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
WINDOW_SECONDS, AGREE = 0.7, 1.1
"""Length of one of the two measurements that have to agree, and their ratio at most."""
FEWEST = 3
"""Repetitions, whatever they take: one that is left out, and two measurements of one."""
FIRST_BATCH, FEW_SENTENCES = 4, 8
"""Batch size of the first steps of a family, and the sentences that are embedded first: quick ones,
which say how many fit into the time."""

Kind = tuple[tuple[str, object], ...]
Bounds = tuple[float, float]
UNKNOWN: Bounds = (0.0, float("inf"))


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
    """The settings that decide the cost of a step but for its size."""
    known = settings_of(type(settings))
    return tuple(item for item in kind_of(settings) if known[item[0]].step_cost != "scales")


def size_of(settings: TrainerSettings) -> int:
    """The tokens of a step, with which the cost grows within a family."""
    return settings.batch_size * settings.max_length


def agree(bounds: Bounds) -> bool:
    """Whether two measurements are so close that no further one is needed."""
    return bounds[1] <= AGREE * bounds[0]


def bounds_of(durations: Iterable[float], seconds: float) -> Bounds | None:
    """Bounds of what is repeated; None as long as it has to be repeated again.

    Durations are averaged over windows until two in succession agree, or `seconds` are over.
    """
    total, begun, count, windows = 0.0, 0.0, 0, list[float]()
    for duration in durations:
        total, count = total + duration, count + 1
        if total - begun >= min(WINDOW_SECONDS, seconds / 4):
            windows.append((total - begun) / count)
            begun, count = total, 0
    last = min(windows[-2:], default=0.0), max(windows[-2:], default=0.0)
    if len(windows) > 1 and agree(last):
        return last
    return (min(windows), max(windows)) if len(windows) > 1 and total >= seconds else None


class _Enough(Exception):
    """This measurement is over."""


def time_steps(
    settings: TrainerSettings, inputs: RunInputs, seconds: float, stop: StopRequest
) -> Bounds:
    """Bounds of a training step, repeated for at most about `seconds`.

    The first step is left out: it allocates memory, builds kernels, and has no FGSM gradient yet.
    Raises Interrupted for a requested stop.
    """
    device, ends = choose_device(settings).device, list[float]()
    found: Bounds | None = None

    def on_step(_step: int, _evaluation: object) -> None:
        nonlocal found
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        if stop.requested():
            raise Interrupted
        ends.append(time.perf_counter())
        found = bounds_of(np.diff(ends).tolist(), seconds)
        if found is not None:
            raise _Enough

    endless = settings.model_copy(update={"steps": 100_000, "evaluate_every": 100_000})
    with suppress(_Enough):
        train(endless, inputs, on_step)
    return found or UNKNOWN


def reduce_batch(settings: TrainerSettings, batch: int) -> TrainerSettings:
    """The same step with a batch of at most `batch`; the queue is full from the first step."""
    if batch >= settings.batch_size:
        return settings
    changed = {"batch_size": batch}
    if "initial_queue_size" in type(settings).model_fields:
        changed["initial_queue_size"] = getattr(settings, "queue_size", 0)
    return settings.model_copy(update=changed)


@dataclass(frozen=True)
class Timed:
    """A step that was timed: its size, and peak memory of the process and of the GPU, (2,)."""

    size: int
    seconds: Bounds
    peaks: Floats


@dataclass
class StepTimer:
    """Times a step of each kind until `deadline`, and scales those for which no time is left.

    Attributes:
        families: the steps that were timed, by family.
        direct: bounds of the kinds that were timed with their own batch.
    """

    kinds: Sequence[TrainerSettings]
    deadline: float
    stop: StopRequest
    families: dict[Kind, list[Timed]] = field(default_factory=dict)
    direct: dict[Kind, Bounds] = field(default_factory=dict)

    def measure(self) -> None:
        """Time the largest step of each family first, which needs most memory, then the rest."""
        ascending = sorted(self.kinds, key=size_of)
        largest = {family_of(each): each for each in ascending}.values()
        order = list({kind_of(each): each for each in (*largest, *ascending)}.values())
        for rank, kind in enumerate(order):
            left = self.deadline - time.perf_counter()
            if not rank or left > 0:
                self._measure(kind, left / (len(order) - rank))

    def _measure(self, kind: TrainerSettings, seconds: float) -> None:
        """Time a step with its own batch if there is time, else with the largest that there is."""
        until = time.perf_counter() + seconds
        if family_of(kind) not in self.families:
            self._time(kind, FIRST_BATCH, seconds / 4)
        left = until - time.perf_counter()
        expected = FEWEST * np.mean(self.seconds(kind))
        batch = min(kind.batch_size, int(kind.batch_size * left / expected))
        if batch > FIRST_BATCH or batch == kind.batch_size:
            self._time(kind, batch, left)

    def _time(self, kind: TrainerSettings, batch: int, seconds: float) -> None:
        settings = reduce_batch(kind, batch)
        bounds = time_steps(settings, load_inputs(settings), seconds, self.stop)
        if batch >= kind.batch_size:
            self.direct[kind_of(kind)] = bounds
        timed = Timed(size_of(settings), bounds, peaks_of(settings))
        self.families.setdefault(family_of(kind), []).append(timed)

    def seconds(self, kind: TrainerSettings) -> Bounds:
        """Bounds of a step: as timed, or between those of its family; else `UNKNOWN`.

        A step has a constant cost and one in proportion to its size. The upper bound has no
        constant cost beyond the step nearest to it; the lower one is on the line through all.
        """
        if (found := self.direct.get(kind_of(kind))) is not None:
            return found
        size, family = size_of(kind), self.families.get(family_of(kind))
        if family is None:
            return UNKNOWN
        low = max(each.seconds[0] * min(1.0, size / each.size) for each in family)
        high = min(each.seconds[1] * max(1.0, size / each.size) for each in family)
        sizes = [each.size for each in family]
        if len(set(sizes)) > 1 and size > max(sizes):
            line = np.polyfit(sizes, [sum(each.seconds) / 2 for each in family], 1)
            low = max(low, float(np.polyval(line, size)))
        return min(low, high), max(low, high)

    def memory(self) -> tuple[int, int]:
        """Peak memory, and that of the GPU (0 without one), at the largest step.

        Of a family of which only smaller steps were timed, extrapolated from these.
        """
        # embedding, which is not among the steps, may have needed more
        found = [peaks_of(self.kinds[0])]
        for family, timed in self.families.items():
            small, big = (choose(timed, key=lambda each: each.size) for choose in (min, max))
            largest = max(size_of(kind) for kind in self.kinds if family_of(kind) == family)
            further = (largest - big.size) / (big.size - small.size) if big.size > small.size else 0
            found.append(big.peaks + np.maximum(big.peaks - small.peaks, 0) * further)
        host, gpu = np.max(found, axis=0)
        return int(host), int(gpu)


def peaks_of(settings: TrainerSettings) -> Floats:
    """Peak memory of this process, and that of its GPU, (2,)."""
    return np.array([peak_memory(), choose_device(settings).gpu_memory()], float)


def time_embedding(
    settings: TrainerSettings, inputs: RunInputs, sentences: Sequence[str], seconds: float
) -> Bounds:
    """Seconds per token of embedding, with as many sentences of middle length as time allows.

    Their lengths are similar, as in the batches of a whole evaluation, which have little padding.
    """
    encoder = inputs.encoder
    embedder = Embedder(encoder.model, settings.representation, choose_device(settings))
    limit = encoder.token_limit(MAX_LENGTH)

    def choose(count: int) -> Sentences:
        first = max(0, len(sentences) - count) // 2
        chosen = sentences[first : first + count]
        return Sentences(chosen, encoder.tokenizer, limit, settings.prompt)

    def embed(some: Sentences) -> float:
        started = time.perf_counter()
        some.embed(embedder)
        return time.perf_counter() - started

    few = choose(FEW_SENTENCES)
    taken = min(embed(few) for _ in range(2))
    some = choose(max(FEW_SENTENCES, int(FEW_SENTENCES * seconds / (4 * FEWEST * taken))))
    embed(some)
    durations: list[float] = []
    while (found := bounds_of(durations, seconds / 2)) is None:
        durations.append(embed(some))
    tokens = sum(map(len, some.tokens))
    return found[0] / tokens, found[1] / tokens


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
    call = (measure, (modules, values, sample, seconds))
    found = [each for each in call_in_forks(server, call, jobs) if isinstance(each, Measured)]
    if len(found) < jobs:
        raise TrialError("the measurement was stopped by a signal; repeat the command")
    return found


def measure(
    modules: Sequence[UserModule],
    kinds: Sequence[dict[str, Any]],
    sample: Sample,
    seconds: float,
    stop: StopRequest,
) -> Measured | None:
    """Time steps of every kind, and embedding, for at most about `seconds` after loading.

    The process need not have imported the user's modules. None where a stop was requested.
    """
    ensure_imported(modules)
    take_gpu()
    settings = [sample.of(make_settings(**values)) for values in kinds]
    with cache_in(sample.folder), suppress(Interrupted):
        parameters = list(load_inputs(settings[0]).encoder.model.parameters())
        timer = StepTimer(settings, time.perf_counter() + 0.75 * seconds, stop)
        timer.measure()
        token, described = {}, {}
        for name, one in {each.encoder: each for each in reversed(settings)}.items():
            inputs = load_inputs(one)
            token[name] = time_embedding(one, inputs, sample.embedded, 0.25 * seconds)
            fields = inputs.encoder.traits.dropout_fields
            described[name] = describe_encoder(inputs.encoder.model, fields)
        memory, gpu_memory = timer.memory()
        return Measured(
            imported=IMPORTED,
            steps=[timer.seconds(each) for each in settings],
            token=token,
            memory=memory,
            gpu_memory=gpu_memory,
            weights=4 * sum(each.numel() for each in parameters),
            trained=4 * sum(each.numel() for each in parameters if each.requires_grad),
            direct=sum(agree(timer.direct.get(kind_of(each), UNKNOWN)) for each in settings),
            encoders=described,
        )
    return None
