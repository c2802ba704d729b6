"""The duration of training steps, measured, or derived from smaller ones.

For steps that differ only in sizes (batch, queue, lengths, heads), the duration is nearly linear
in the floating point operations: the largest and the smallest are measured, the rest as far as
there is time. Steps that are too slow are derived from a smaller batch.
"""

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import torch

from mtdlab.config import TrainerSettings
from mtdlab.cost.sample import Sample
from mtdlab.cost.step_kinds import Kind, family_of, kind_of, operations
from mtdlab.device import choose_device, peak_memory
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train

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
    """Measured points: (kind, family, operations, seconds); kind is -1 for a smaller batch."""

    kinds: Sequence[TrainerSettings]
    sample: Sample
    deadline: float
    points: list[tuple[int, Kind, float, float]] = field(default_factory=list)
    peaks: list[tuple[float, int]] = field(default_factory=list)
    gpu_peaks: list[tuple[float, int]] = field(default_factory=list)
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
        self.peaks.append((work, peak_memory()))
        self.gpu_peaks.append((work, choose_device(settings).gpu_memory()))

    def measure(self) -> None:
        """Largest of each family first, then the smallest, then the rest, as far as time allows."""
        order = self._order()
        first = self.kinds[order[0]]
        for batch in FIRST_BATCHES:
            self.time(-1, _smaller(first, min(batch, first.batch_size)), 0)
        for rank, index in enumerate(order):
            share = max(self.left() / (len(order) - rank), self.left() / 3)
            self._measure_kind(index, share)

    def _measure_kind(self, index: int, share: float) -> None:
        """Measure a kind directly if there is time, else with the largest batch that there is."""
        kind, batch = self.kinds[index], self.kinds[index].batch_size
        own = family_of(kind)
        known = max((work for _, family, work, _ in self.points if family == own), default=0.0)
        while batch > FIRST_BATCHES[0] and MIN_STEPS * self._derived(_smaller(kind, batch)) > share:
            batch //= 2
        if batch == kind.batch_size:
            self.time(index, _smaller(kind, batch), share / 2)
        elif self.work(_smaller(kind, batch)) >= MIN_GROWTH * known:
            self.time(-1, _smaller(kind, batch), 0)
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
            direct[index] if index in direct else self._derived(kind)
            for index, kind in enumerate(self.kinds)
        ]

    def _derived(self, kind: TrainerSettings) -> float:
        [(base, _)] = Counter(family for _, family, _, _ in self.points).most_common(1)
        line = _line([point[2:] for point in self.points if point[1] == base])
        family = family_of(kind)
        own = [point[2:] for point in self.points if point[1] == family]
        factor = np.mean([seconds / line(work) for work, seconds in own]) if own else 1.0
        return float(factor * line(self.work(kind)))

    def memory(self) -> int:
        """Peak memory, extrapolated to the largest step where only a smaller one was measured."""
        return max(peak_memory(), self._extrapolated(self.peaks))

    def gpu_memory(self) -> int:
        """The same of the GPU; 0 without one."""
        # embedding, which is not among the steps, may have needed more
        now = choose_device(self.kinds[0]).gpu_memory()
        return max(now, self._extrapolated(self.gpu_peaks))

    def _extrapolated(self, peaks: Sequence[tuple[float, int]]) -> int:
        largest = max(map(self.work, self.kinds))
        (small, low), (big, high) = peaks[0], max(peaks)
        slope = (high - low) / (big - small) if big > small else 0.0
        return int(max(high, low + slope * (largest - small)))


def _smaller(settings: TrainerSettings, batch: int) -> TrainerSettings:
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
