"""What a step costs here and now, in a process like those that a sweep starts.

Steps that differ in numbers alone (batch, queue, lengths, heads) lie near a line in their
floating point operations: the largest and the smallest are measured, the rest where there is
time, and what is too slow to measure by a smaller batch.
"""

import resource
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from mtdlab.config import TrainerSettings
from mtdlab.cost.sample import Sample, cache_in
from mtdlab.cost.step_kinds import Kind, family_of, kind_of, operations
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Sentences
from mtdlab.sweep.slots import take_gpu
from mtdlab.training.inputs import RunInputs, load_inputs
from mtdlab.training.loop import train

FIRST_BATCHES = (2, 6)
"""Sentences of the first, careful steps: two points, since a step has a cost of its own."""
FEWEST, MOST, BRIEFEST = 3, 40, 0.3
"""Steps of a measurement, and seconds after which a slow one may have fewer."""
TELLING = 1.5
"""How much more than all before it a smaller batch has to bring."""


class _Enough(Exception):
    """Seen as many steps as there is time for."""


@dataclass(frozen=True)
class Measured:
    """What one worker saw. Seconds, bytes.

    began        when it began to measure, on the clock of `time.time`
    steps        of each kind, in the order given
    token        to embed one token, by encoder
    memory       its peak, at the largest step
    weights      of the encoder
    direct       how many kinds were measured as they are, not derived
    """

    began: float
    steps: list[float]
    token: dict[str, float]
    memory: int
    weights: int
    direct: int


@dataclass
class _Bench:
    """Measured points: (kind, settings, operations, seconds); kind is -1 for a smaller batch."""

    kinds: Sequence[TrainerSettings]
    sample: Sample
    deadline: float
    points: list[tuple[int, TrainerSettings, float, float]] = field(default_factory=list)
    peaks: list[tuple[float, int]] = field(default_factory=list)
    sentences: dict[Kind, float] = field(default_factory=dict)

    def materials(self, settings: TrainerSettings) -> RunInputs:
        return load_inputs(self.sample.of(settings))

    def work(self, settings: TrainerSettings) -> float:
        kind = kind_of(settings.model_copy(update={"batch_size": 1}))
        if kind not in self.sentences:
            # once a kind: it may mean to load another encoder
            sentence = operations(settings, self.materials(settings)) / settings.batch_size
            self.sentences[kind] = sentence
        return settings.batch_size * self.sentences[kind]

    def left(self) -> float:
        return self.deadline - time.perf_counter()

    def time(self, index: int, settings: TrainerSettings, seconds: float) -> None:
        taken = _seconds_a_step(self.sample.of(settings), self.materials(settings), seconds)
        work = self.work(settings)
        self.points.append((index, settings, work, taken))
        self.peaks.append((work, peak_memory()))

    def measure(self) -> None:
        """Largest of each family first, then the smallest, then the rest, while there is time."""
        order = self._order()
        first = self.kinds[order[0]]
        for batch in FIRST_BATCHES:
            self.time(-1, _smaller(first, min(batch, first.batch_size)), 0)
        for rank, index in enumerate(order):
            share = max(self.left() / (len(order) - rank), self.left() / 3)
            self._measure_kind(index, share)

    def _measure_kind(self, index: int, share: float) -> None:
        """As it is where that fits, else by the largest batch that does and that tells more."""
        kind, batch = self.kinds[index], self.kinds[index].batch_size
        known = max(
            (work for _, each, work, _ in self.points if family_of(each) == family_of(kind)),
            default=0.0,
        )
        while batch > FIRST_BATCHES[0] and FEWEST * self._derived(_smaller(kind, batch)) > share:
            batch //= 2
        if batch == kind.batch_size:
            self.time(index, _smaller(kind, batch), share / 2)
        elif self.work(_smaller(kind, batch)) >= TELLING * known:
            self.time(-1, _smaller(kind, batch), 0)
            # a longer step may fit, now that its overhead is better known
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
        """Seconds a step of every kind: as measured, or along the line of its family."""
        direct = {index: seconds for index, _, _, seconds in self.points if index >= 0}
        return [
            direct[index] if index in direct else self._derived(kind)
            for index, kind in enumerate(self.kinds)
        ]

    def _derived(self, kind: TrainerSettings) -> float:
        base = max((family_of(each) for _, each, _, _ in self.points), key=self._points_of)
        line = _line([point[2:] for point in self.points if family_of(point[1]) == base])
        own = [point[2:] for point in self.points if family_of(point[1]) == family_of(kind)]
        factor = np.mean([seconds / line(work) for work, seconds in own]) if own else 1.0
        return float(factor * line(self.work(kind)))

    def _points_of(self, family: Kind) -> int:
        return sum(family_of(each) == family for _, each, _, _ in self.points)

    def memory(self) -> int:
        """The peak, stretched to the largest step where only a smaller one was measured."""
        largest = max(map(self.work, self.kinds))
        (small, low), (big, high) = self.peaks[0], max(self.peaks)
        slope = (high - low) / (big - small) if big > small else 0.0
        return int(max(peak_memory(), low + slope * (largest - small)))


def measure(kinds: Sequence[TrainerSettings], sample: Sample, seconds: float) -> Measured:
    """Time steps of every kind, and embedding, within about so many seconds after loading."""
    began = time.time()
    take_gpu()
    with cache_in(sample.folder):
        first = load_inputs(sample.of(kinds[0]))
        bench = _Bench(kinds, sample, time.perf_counter() + 0.75 * seconds)
        bench.measure()
        token = {}
        for name in dict.fromkeys(kind.encoder for kind in kinds):
            one = next(kind for kind in kinds if kind.encoder == name)
            token[name] = _seconds_a_token(one, bench.materials(one), sample, 0.25 * seconds)
        weights = sum(each.numel() * 4 for each in first.encoder.model.parameters())
        direct = sum(index >= 0 for index, *_ in bench.points)
        return Measured(began, bench.steps(), token, bench.memory(), weights, direct)


def peak_memory() -> int:
    """This process' largest memory so far, in bytes."""
    try:
        # unlike getrusage, not that of the process which this one was forked from
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _smaller(settings: TrainerSettings, batch: int) -> TrainerSettings:
    """A step with fewer sentences, and with the queue full from the first one on."""
    changed = {"batch_size": batch}
    if "initial_queue_size" in type(settings).model_fields:
        changed["initial_queue_size"] = settings.model_dump()["queue_size"]
    return settings.model_copy(update=changed)


def _line(points: Sequence[tuple[float, float]]) -> np.poly1d:
    """Seconds by operations, rising; through nothing where the points say no more."""
    work, seconds = np.array(points).T
    if len(set(work)) > 1:
        slope, start = np.polyfit(work, seconds, 1)
        if slope > 0 and start > 0:
            return np.poly1d([slope, start])
    return np.poly1d([seconds.sum() / work.sum(), 0.0])


def _seconds_a_step(settings: TrainerSettings, materials: RunInputs, seconds: float) -> float:
    """Without the first, which allocates and has no FGSM gradient yet."""
    device, ends = choose_device(settings).device, []

    def on_step(_step: int, _evaluation: object) -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        ends.append(time.perf_counter())
        if len(ends) > 1 and (ends[-1] - ends[0] > max(seconds, BRIEFEST) or len(ends) > MOST):
            raise _Enough

    endless = settings.model_copy(update={"steps": 10_000, "evaluate_every": 10_000})
    with suppress(_Enough):
        train(endless, materials, on_step)
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def _seconds_a_token(
    settings: TrainerSettings, materials: RunInputs, sample: Sample, seconds: float
) -> float:
    """Of embedding: ever more sentences of middle length, while the next look at them fits.

    Of like length, as in the batches of a whole evaluation, which need next to no padding.
    """
    device, count, taken, left = choose_device(settings), 8, 0.0, seconds
    model, tokenizer = materials.encoder.model, materials.encoder.tokenizer
    limit, rate = materials.encoder.token_limit(MAX_LENGTH), 0.0
    while taken * 4 < left:
        first = max(0, len(sample.embedded) - count) // 2
        some = Sentences(sample.embedded[first : first + count], tokenizer, limit)
        started = time.perf_counter()
        some.embed(model, settings.pooling, device)
        taken = time.perf_counter() - started
        left -= taken
        rate = taken / sum(map(len, some.tokens))
        if count >= len(sample.embedded):
            break
        count *= 4
    return rate
