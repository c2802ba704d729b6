"""What the benchmark prints and saves."""

import json
import os
from collections import defaultdict
from pathlib import Path
from statistics import median
from tempfile import gettempdir

import torch
import training_speed
from training_speed import SIZES

from mtdlab.corpus.tokens import TokenStore
from mtdlab.device import BFLOAT16_FEATURES, Device
from mtdlab.trial.environment import PACKAGES, machine

Samples = defaultdict[str, list[float]]
"""Every figure's values, one a round."""


def conditions(device: Device, tokens: TokenStore, corpus: str | None) -> dict[str, str]:
    """The machine and the versions that the figures hold for."""
    features = torch.cpu.get_capabilities()
    present = [name for name in BFLOAT16_FEATURES if features.get(name)]
    bfloat16 = f"bfloat16 instructions: {', '.join(present) or 'none'}"
    return {
        "processor": _processor(),
        "capability": f"{torch.backends.cpu.get_cpu_capability()}, {bfloat16}",
        "device": str(device),
        "threads": str(torch.get_num_threads()),
        "sentences": f"{corpus or 'random'}, {tokens.lengths.mean():.1f} tokens on average",
        "load": f"{os.getloadavg()[0]:.1f} in the minute before (0 is an idle machine)",
        "databases": f"in {gettempdir()}",
        "versions": machine(PACKAGES).sentences()["versions"],
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
    print("\nTraining: batch 64, queue 512, at most 32 tokens, dropout 0.1, no evaluation")
    for size in SIZES:
        row(f"{size}, {steps * size.repeat} steps", f"training {size}", ",.0f", "sentences/s")
        row("  plainly, on BertModel", f"plain {size}", ",.0f", "sentences/s")
        row("", f"times plain {size}", ".2f", "x plain")
        if f"peer {size}" in samples:
            row("  sentence-transformers", f"peer {size}", ",.0f", "sentences/s")
            row("", f"times peer {size}", ".2f", "x theirs")
        row("  of the product rate", f"share {size}", ".1f", "% (heads and loss left out)")
    if f"memory {SIZES[0]}" in samples:
        print("\nTwo workers with one thread each, against one with two")
        for size in SIZES:
            row(f"{size}", f"times workers {size}", ".2f", "x one")
            row("  a worker's peak memory", f"memory {size}", ",.0f", "MB")
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
        "products": "GFLOP/s",
        "training": "sentences/s",
        "plain": "sentences/s",
        "peer": "sentences/s",
        "share": "%",
        "memory": "MB",
        "trial": "ms",
        "writes": "transactions/trial",
        "times": "",
        "embedding": "sentences/s",
    }
    figures = {
        name: {
            "unit": units[name.partition(" ")[0]],
            "median": median(values),
            "min": min(values),
            "max": max(values),
            "values": values,
        }
        for name, values in samples.items()
    }
    content = {"conditions": facts, "options": options, "figures": figures}
    path.write_text(json.dumps(content, indent=1) + "\n")
