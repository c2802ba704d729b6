"""Measure training speed and the sweep's overhead; `make bench` runs this.

    python tests/benchmarks/bench.py [--rounds N] [--steps N] [--trials N] [--json FILE]

Every round measures everything once, in another order, so that a slow minute of the machine
falls on all alike; what is printed is the median over rounds with the least and the greatest.
OMP_NUM_THREADS=1 gives the speed of one of several workers, which have a thread each.
"""

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, gettempdir

import embedding_speed
import optuna
import sweep_overhead
import torch
import training_speed
from embedding_speed import Embedding
from sweep_overhead import Cost
from training_speed import SIZES, Size

from mtdlab.device import Device, choose_device
from mtdlab.sweep.environment import _versions
from mtdlab.training.materials import Materials

Samples = defaultdict[str, list[float]]
Measurement = Callable[[], None]


def measure_training(
    samples: Samples, size: Size, materials: Materials, steps: int, device: Device
) -> None:
    """One size's speed, and its share of the matrix-product rate of the same moment."""
    for dtype in {torch.float32: None, device.dtype: None}:
        rate = training_speed.product_rate(device.device, dtype)
        samples[f"products {str(dtype).removeprefix('torch.')}"].append(rate / 1e9)
    # the last rate is that of the precision in which the trainer multiplies
    batch = training_speed.settings_for(1).batch_size
    seconds = training_speed.seconds_per_step(materials, steps)
    with training_speed.plainly():
        plain = training_speed.seconds_per_step(materials, steps)
    samples[f"training {size}"].append(batch / seconds)
    samples[f"plain {size}"].append(batch / plain)
    samples[f"times {size}"].append(plain / seconds)
    samples[f"share {size}"].append(100 * size.flops(batch) / seconds / rate)


def measure_trials(samples: Samples, name: str, trials: Callable[[Path], Cost]) -> None:
    """One way to run trials, on a new database."""
    with TemporaryDirectory(prefix="mtdlab-bench-") as folder:
        cost = trials(Path(folder))
    samples[f"trial {name}"].append(1000 * cost.seconds)
    samples[f"writes {name}"].append(cost.writes)


def training(samples: Samples, steps: int, device: Device) -> list[Measurement]:
    """A measurement per encoder size; the encoders are made here, once."""
    return [
        partial(
            measure_training, samples, size, training_speed.random_materials(size, device),
            steps * size.repeat, device,
        )
        for size in SIZES
    ]


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


def measure(rounds: int, steps: int, trials: int, device: Device) -> Samples:
    """Every figure's values, one a round (a round multiplies matrices once per size)."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    samples: Samples = defaultdict(list)
    for warming in sweeping(defaultdict(list), trials=2):
        warming()
    todo = training(samples, steps, device) + sweeping(samples, trials) + embedding(samples)
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


def conditions(device: Device) -> dict[str, str]:
    """The machine and the versions that the figures hold for."""
    amx = torch.cpu.get_capabilities().get("amx_bf16")
    absent = "AMX absent, so bfloat16 would be emulated on the processor"
    return {
        "processor": _processor(),
        "capability": f"{torch.backends.cpu.get_cpu_capability()}, {'AMX' if amx else absent}",
        "device": str(device),
        "threads": str(torch.get_num_threads()),
        "load": f"{os.getloadavg()[0]:.1f} in the minute before (0 is an idle machine)",
        "databases": f"in {gettempdir()}",
        "versions": _versions(),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(": ")[2] for line in lines if line.startswith("model name")]
    return f"{len(names)} x {names[0]}" if names else torch.cpu.get_capabilities()["architecture"]


def show(samples: Samples, facts: dict[str, str], steps: int, trials: int) -> None:
    """Print the figures as a page of text."""

    def row(label: str, key: str, form: str, unit: str) -> None:
        values = samples[key]
        low, middle, high = (
            format(value, form) for value in (min(values), median(values), max(values))
        )
        print(f"  {label:25}{middle:>7} {unit:11} ({low} to {high}, n = {len(values)})")

    print("Conditions")
    for name, fact in facts.items():
        print(f"  {name:12}{fact}")
    print(f"\nMatrix products: best square of a few, each for {training_speed.PRODUCT_SECONDS} s")
    for key in [key for key in samples if key.startswith("products")]:
        row(key.removeprefix("products "), key, ",.0f", "GFLOP/s")
    print("\nTraining: batch 64, queue 512, 32 tokens a sentence, without evaluation")
    for size in SIZES:
        row(f"{size}, {steps * size.repeat} steps", f"training {size}", ",.0f", "sentences/s")
        row("  plainly, on BertModel", f"plain {size}", ",.0f", "sentences/s")
        row("", f"times {size}", ".2f", "x plain")
    print("\nShare of the matrix-product rate that training reaches (heads and loss left out)")
    for size in SIZES:
        gflops = size.flops(training_speed.settings_for(1).batch_size) / 1e9
        row(f"{size}, {gflops:.1f} GFLOP/step", f"share {size}", ".1f", "%")
    print(f"\nA trial that does nothing: {trials} trials, one process, SQLite")
    labels = {"optuna": "bare Optuna, random", "grid": "ours, grid", "random": "ours, random"}
    for name, label in labels.items():
        row(label, f"trial {name}", ".1f", "ms")
        print(f"  {'':25}{median(samples[f'writes {name}']):>7.0f} transactions that write")
        if name != "optuna":
            row("", f"times {name}", ".1f", "x Optuna")
    if "times embedding" in samples:
        print("\nSentence vectors: STS pairs as they stand, all-MiniLM-L6-v2, tokenising included")
        row("ours", "embedding ours", ",.0f", "sentences/s")
        row("sentence-transformers", "embedding theirs", ",.0f", "sentences/s")
        row("", "times embedding", ".2f", "x theirs")


def save(path: Path, samples: Samples, facts: dict[str, str], options: dict[str, int]) -> None:
    """Write conditions, options and every figure with its values, for a comparison."""
    units = {
        "products": "GFLOP/s", "training": "sentences/s", "plain": "sentences/s", "share": "%",
        "trial": "ms", "writes": "transactions/trial", "times": "", "embedding": "sentences/s",
    }
    figures = {
        name: {
            "unit": units[name.partition(" ")[0]], "median": median(values), "min": min(values),
            "max": max(values), "values": values,
        }
        for name, values in samples.items()
    }
    content = {"conditions": facts, "options": options, "figures": figures}
    path.write_text(json.dumps(content, indent=1) + "\n")


def main() -> None:
    """Measure, print, and save where asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=_positive, default=5, help="how often (default 5)")
    parser.add_argument(
        "--steps", type=_positive, default=3,
        help="training steps timed a round at the largest size (default 3); smaller ones do more",
    )
    parser.add_argument("--trials", type=_positive, default=30, help="trials a round (default 30)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures here")
    given = parser.parse_args()
    device = choose_device(training_speed.settings_for(1))
    facts = conditions(device)
    samples = measure(given.rounds, given.steps, given.trials, device)
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
