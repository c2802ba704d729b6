"""The durations of training steps and of embedding on this machine, in processes like a sweep's.

For steps that differ only in sizes (batch, queue, lengths, heads), the duration is nearly linear
in the floating point operations: the largest and the smallest are measured, the rest as far as
there is time. Steps that are too slow are derived from a smaller batch.
"""

import os
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed, parallel_config

from mtdlab.cost.copies import can_copy, copies
from mtdlab.cost.sample import Sample, cache_in
from mtdlab.device import choose_device, peak_memory
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Sentences
from mtdlab.encoders.traits import describe_encoder
from mtdlab.methods.registry import make_settings
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import TrainerSettings, settings_of
from mtdlab.sweep.slots import take_gpu, threads_each
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train
from mtdlab.user_code import UserModule

Kind = tuple[tuple[str, object], ...]


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


FIRST_BATCHES = (2, 6)
"""Batch sizes of the first steps: two, since a step has a constant cost too."""
MIN_STEPS, MAX_STEPS, MIN_SECONDS = 3, 40, 0.3
"""Of one measurement; a slow one may have fewer steps once MIN_SECONDS have passed."""
MIN_GROWTH = 1.5
"""A smaller batch is measured only if its operations exceed all earlier ones by this factor."""


class _TimeUp(Exception):
    """The time for this measurement is over."""


@dataclass
class StepTimer:
    """Points: kind (-1 for a smaller batch), family, operations, seconds; peaks of memory."""

    kinds: Sequence[TrainerSettings]
    sample: Sample
    deadline: float
    points: list[tuple[int, Kind, float, float]] = field(default_factory=list)
    peaks: list[tuple[float, int, int]] = field(default_factory=list)
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

    def time(self, index: int, settings: TrainerSettings, seconds: float) -> None:
        taken = _seconds_a_step(self.sample.of(settings), self.inputs(settings), seconds)
        work = self.work(settings)
        self.points.append((index, family_of(settings), work, taken))
        self.peaks.append((work, peak_memory(), choose_device(settings).gpu_memory()))

    def measure(self) -> None:
        """Largest of each family first, then the smallest, then the rest, as far as time allows."""
        order = self._order()
        first = self.kinds[order[0]]
        for batch in FIRST_BATCHES:
            self.time(-1, _reduce_batch(first, min(batch, first.batch_size)), 0)
        for rank, index in enumerate(order):
            share = max(self.left() / (len(order) - rank), self.left() / 3)
            self._measure_kind(index, share)

    def _measure_kind(self, index: int, share: float) -> None:
        """Measure a kind directly if there is time, else with the largest batch that there is."""
        kind, batch = self.kinds[index], self.kinds[index].batch_size
        own = family_of(kind)
        known = max((work for _, family, work, _ in self.points if family == own), default=0.0)
        while (
            batch > FIRST_BATCHES[0]
            and MIN_STEPS * self._derive(_reduce_batch(kind, batch)) > share
        ):
            batch //= 2
        if batch == kind.batch_size:
            self.time(index, _reduce_batch(kind, batch), share / 2)
        elif self.work(_reduce_batch(kind, batch)) >= MIN_GROWTH * known:
            self.time(-1, _reduce_batch(kind, batch), 0)
            # now that the constant cost is better known, a larger batch may fit
            self._measure_kind(index, share)

    def _order(self) -> list[int]:
        families: dict[Kind, list[int]] = {}
        for index, kind in enumerate(self.kinds):
            families.setdefault(family_of(kind), []).append(index)
        for members in families.values():
            members.sort(key=lambda index: -self.work(self.kinds[index]))
        largest = [members[0] for members in families.values()]
        smallest = [members[-1] for members in families.values()]
        rest = [index for members in families.values() for index in members]
        return list(dict.fromkeys(largest + smallest + rest))

    def steps(self) -> list[float]:
        """Seconds per step of every kind: measured directly, or from its family's line."""
        direct = {index: seconds for index, _, _, seconds in self.points if index >= 0}
        return [
            direct[index] if index in direct else self._derive(kind)
            for index, kind in enumerate(self.kinds)
        ]

    def _derive(self, kind: TrainerSettings) -> float:
        [(base, _)] = Counter(family for _, family, _, _ in self.points).most_common(1)
        line = _line([point[2:] for point in self.points if point[1] == base])
        family = family_of(kind)
        own = [point[2:] for point in self.points if point[1] == family]
        factor = np.mean([seconds / line(work) for work, seconds in own]) if own else 1.0
        return float(factor * line(self.work(kind)))

    def memory(self) -> list[int]:
        """Peak memory, and that of the GPU (0 without one), at the largest step.

        Extrapolated where only a smaller one was measured.
        """
        # embedding, which is not among the steps, may have needed more
        now = (peak_memory(), choose_device(self.kinds[0]).gpu_memory())
        (small, *lows), (big, *highs) = self.peaks[0], max(self.peaks)
        further = (max(map(self.work, self.kinds)) - small) / (big - small) if big > small else 0.0
        return [
            int(max(least, high, low + (high - low) * further))
            for least, low, high in zip(now, lows, highs, strict=True)
        ]


def _reduce_batch(settings: TrainerSettings, batch: int) -> TrainerSettings:
    """The same step with a smaller batch and a queue that is full from the first step."""
    changed = {"batch_size": batch}
    if "initial_queue_size" in type(settings).model_fields:
        changed["initial_queue_size"] = getattr(settings, "queue_size", 0)
    return settings.model_copy(update=changed)


def _line(points: Sequence[tuple[float, float]]) -> np.poly1d:
    """Seconds as a rising line of operations; through the origin where no other line fits."""
    work, seconds = np.array(points).T
    if len(set(work)) > 1:
        slope, start = np.polyfit(work, seconds, 1)
        if slope > 0 and start > 0:
            return np.poly1d([slope, start])
    return np.poly1d([seconds.sum() / work.sum(), 0.0])


def _seconds_a_step(settings: TrainerSettings, inputs: RunInputs, seconds: float) -> float:
    """The first step is left out: it allocates memory and has no FGSM gradient yet."""
    device, ends = choose_device(settings).device, []

    def on_step(_step: int, _evaluation: object) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        ends.append(time.perf_counter())
        over = ends[-1] - ends[0] > max(seconds, MIN_SECONDS)
        if len(ends) > 1 and (over or len(ends) > MAX_STEPS):
            raise _TimeUp

    endless = settings.model_copy(update={"steps": 10_000, "evaluate_every": 10_000})
    with suppress(_TimeUp):
        train(endless, inputs, on_step)
    return (ends[-1] - ends[0]) / (len(ends) - 1)


@dataclass(frozen=True)
class Measured:
    """The measurement of one worker. Seconds, bytes.

    Attributes:
        began: when the measurement began, on the clock of `time.time`.
        steps: duration of a step of each kind, in the order given.
        token: duration of embedding one token, by encoder.
        memory: peak memory at the largest step.
        gpu_memory: of the GPU, 0 without one.
        weights: size of the encoder.
        trained: size of its trained weights, which a checkpoint contains.
        direct: how many kinds were measured directly, not derived.
        encoders: family, forward pass and dropout of each encoder.
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

    Args:
        copy: copy this process instead of starting new ones, which import everything for seconds.
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
        memory, gpu_memory = timer.memory()
        return Measured(
            began=began,
            steps=timer.steps(),
            token=token,
            memory=memory,
            gpu_memory=gpu_memory,
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
    encoder, count, taken, left = inputs.encoder, 8, 0.0, seconds
    embedder = Embedder(encoder.model, settings.representation, choose_device(settings))
    limit, rate = encoder.token_limit(MAX_LENGTH), 0.0
    while taken * 4 < left:
        first = max(0, len(sample.embedded) - count) // 2
        some = Sentences(
            sample.embedded[first : first + count], encoder.tokenizer, limit, settings.prompt
        )
        started = time.perf_counter()
        some.embed(embedder)
        taken = time.perf_counter() - started
        left -= taken
        rate = taken / sum(map(len, some.tokens))
        if count >= len(sample.embedded):
            break
        count *= 4
    return rate
