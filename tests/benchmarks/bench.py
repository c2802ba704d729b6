"""Measure training speed and the sweep's overhead; `make bench` runs this.

    python tests/benchmarks/bench.py [--rounds N] [--steps N] [--trials N] [--corpus FILE]
                                     [--json FILE]

Every round measures everything once, in another order, so that a slow minute of the machine
falls on all alike; what is printed is the median over rounds with the least and the greatest.
OMP_NUM_THREADS=1 gives the speed of one of several workers, which have a thread each.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import embedding_speed
import optuna
import peer_speed
import sweep_overhead
import torch
import training_speed
from embedding_speed import Embedding
from page import Samples, conditions, save, show
from sweep_overhead import Cost
from training_speed import SIZES, Size
from worker_speed import Work, together

from mtdlab.corpus.tokens import TokenStore
from mtdlab.device import Device, choose_device
from mtdlab.training.inputs import RunInputs

Measurement = Callable[[], None]


def measure_training(
    samples: Samples, size: Size, inputs: RunInputs, steps: int, device: Device
) -> None:
    """One size's speed, and its share of the matrix-product rate of the same moment."""
    for dtype in {torch.float32: None, device.dtype: None}:
        rate = training_speed.product_rate(device.device, dtype)
        samples[f"products {str(dtype).removeprefix('torch.')}"].append(rate / 1e9)
    # the last rate is that of the precision in which the trainer multiplies
    batch = training_speed.settings_for(1).batch_size
    seconds = training_speed.seconds_per_step(inputs, steps)
    with training_speed.plainly():
        others = {"plain": training_speed.seconds_per_step(inputs, steps)}
    if not peer_speed.why_not():
        others["peer"] = peer_speed.seconds_per_step(inputs, steps, device)
    samples[f"training {size}"].append(batch / seconds)
    for name, theirs in others.items():
        samples[f"{name} {size}"].append(batch / theirs)
        samples[f"times {name} {size}"].append(theirs / seconds)
    flops = size.flops(batch, batch * float(inputs.tokens.lengths.mean()))
    samples[f"share {size}"].append(100 * flops / seconds / rate)


def measure_workers(samples: Samples, work: Work) -> None:
    """Two workers with a thread each against one with two, and what a worker needs."""
    one = together(replace(work, threads=2), processes=1)
    two = together(work, processes=2)
    samples[f"times workers {work.size}"].append(two.rate / one.rate)
    samples[f"memory {work.size}"].append(two.peak)


def measure_trials(samples: Samples, name: str, trials: Callable[[Path], Cost]) -> None:
    """One way to run trials, on a new database."""
    with TemporaryDirectory(prefix="mtdlab-bench-") as folder:
        cost = trials(Path(folder))
    samples[f"trial {name}"].append(1000 * cost.seconds)
    samples[f"writes {name}"].append(cost.writes)


def training(samples: Samples, steps: int, tokens: TokenStore, device: Device) -> list[Measurement]:
    """Two measurements per encoder size; the encoders are made here, once."""
    if reason := peer_speed.why_not():
        print(f"training is not compared with sentence-transformers: {reason}", file=sys.stderr)
    alone: list[Measurement] = [
        partial(
            measure_training,
            samples,
            size,
            training_speed.inputs_of(size, tokens, device),
            steps * size.repeat,
            device,
        )
        for size in SIZES
    ]
    if device.device.type == "cuda":
        return alone
    works = (Work(size, tokens, steps * size.repeat, threads=1) for size in SIZES)
    return alone + [partial(measure_workers, samples, work) for work in works]


def sweeping(samples: Samples, trials: int) -> list[Measurement]:
    """A measurement per way to run trials."""
    ways: dict[str, Callable[[Path], Cost]] = {
        "optuna": partial(sweep_overhead.optuna_trials, trials=trials),
        "grid": partial(sweep_overhead.our_trials, trials=trials, sampler="grid"),
        "random": partial(sweep_overhead.our_trials, trials=trials, sampler="random"),
    }
    return [partial(measure_trials, samples, name, way) for name, way in ways.items()]


def measure_embedding(samples: Samples, embedding: Embedding) -> None:
    """Ours and theirs on the same sentences, one right after the other."""
    ours, theirs = embedding.ours(), embedding.theirs()
    samples["embedding ours"].append(len(embedding.sentences) / ours)
    samples["embedding theirs"].append(len(embedding.sentences) / theirs)
    samples["times embedding"].append(theirs / ours)


def embedding(samples: Samples) -> list[Measurement]:
    """The measurement where what it compares with is there, else a reason on standard error."""
    if reason := embedding_speed.why_not():
        print(f"embedding is not measured: {reason}", file=sys.stderr)
        return []
    compared = Embedding()
    print(
        f"embedding: {len(compared.sentences):,} sentences, {compared.distinct:,} distinct",
        file=sys.stderr,
    )
    return [partial(measure_embedding, samples, compared)]


def measure(rounds: int, steps: int, trials: int, tokens: TokenStore, device: Device) -> Samples:
    """Every figure's values, one a round (a round multiplies matrices once per size)."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samples: Samples = defaultdict(list)
    for warming in sweeping(defaultdict(list), trials=2):
        warming()
    todo = training(samples, steps, tokens, device)
    todo += sweeping(samples, trials) + embedding(samples)
    for turn in range(rounds):
        start = time.perf_counter()
        for position in range(len(todo)):
            todo[(turn + position) % len(todo)]()
        for name in ("grid", "random"):
            ratio = samples[f"trial {name}"][-1] / samples["trial optuna"][-1]
            samples[f"times {name}"].append(ratio)
        seconds = time.perf_counter() - start
        print(f"round {turn + 1} of {rounds}: {seconds:.0f} s", file=sys.stderr, flush=True)
    return samples


def main() -> None:
    """Measure, print, and save where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=_positive, default=5, help="how often (default 5)")
    parser.add_argument(
        "--steps",
        type=_positive,
        default=3,
        help="training steps timed a round at the largest size (default 3); smaller ones do more",
    )
    parser.add_argument("--trials", type=_positive, default=30, help="trials a round (default 30)")
    parser.add_argument(
        "--corpus",
        metavar="FILE",
        help="a text to train on; without one, random tokens with the lengths of Wikipedia's",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    given = parser.parse_args()
    device = choose_device(training_speed.settings_for(1))
    tokens = training_speed.sentences(given.corpus)
    facts = conditions(device, tokens, given.corpus)
    samples = measure(given.rounds, given.steps, given.trials, tokens, device)
    show(samples, facts, given.steps, given.trials)
    if given.json is not None:
        options = {name: getattr(given, name) for name in ("rounds", "steps", "trials")}
        save(given.json, samples, facts, options)


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return value


if __name__ == "__main__":
    main()
