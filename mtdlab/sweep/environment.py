"""What a trial ran with, as text: for running it again, and for finding trials that differ."""

import platform
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import torch

from mtdlab.config import TrainerSettings
from mtdlab.device import choose_device
from mtdlab.evaluation.sts_average import averaged_sets
from mtdlab.settings.representation import describe
from mtdlab.training.inputs import RunInputs

PACKAGES = ("mtdlab", "torch", "transformers", "optuna", "numpy")


def environment(settings: TrainerSettings, inputs: RunInputs) -> dict[str, str]:
    """Corpus, encoder, evaluation, device, precision, threads, processor, versions and commit."""
    weights = sum(parameter.numel() for parameter in inputs.encoder.model.parameters())
    return {
        "corpus": f"{settings.corpus}: {len(inputs.tokens):,} {inputs.corpus.unit}, "
        f"SHA-256 {inputs.corpus.fingerprint}{_unknown(inputs)}",
        "encoder": f"{settings.encoder}: {weights / 1e6:.2f} million weights, "
        f"{describe(settings.representation)}",
        "evaluation": f"{settings.evaluation}: {len(inputs.dev.gold):,} dev pairs (sts_dev) and "
        f"{len(inputs.test.gold):,} test pairs (sts_test)"
        + (f"; tasks {settings.tasks}" if settings.tasks else "")
        + _selection(settings)
        + "".join(f"; {name}: {text}" for name, text in inputs.suite.shortfalls.items()),
        "device": f"{choose_device(settings)}, threads a trial: {torch.get_num_threads()}",
        "processor": _processor(),
        "versions": _versions(),
    }


def _selection(settings: TrainerSettings) -> str:
    """The sets that checkpoints are selected on, where these are not the dev or test pairs."""
    if settings.select_on != "sts_average":
        return ""
    sets = averaged_sets(settings.evaluation).describe()
    return f"; checkpoints selected on the average of {sets}"


def _unknown(inputs: RunInputs) -> str:
    """The share of [UNK] in the tokens of each view, prompts included; empty if there are none."""
    tokenizer = inputs.encoder.tokenizer
    if tokenizer.unk_token_id is None or tokenizer.unk_token_id == tokenizer.pad_token_id:
        return ""
    shares = [100 * view.share_of(int(tokenizer.unk_token_id)) for view in inputs.views]
    if not any(shares):
        return ""
    listed = ", ".join(f"{share:.2f} %" for share in shares)
    kind = "each view" if len(shares) > 1 else "it"
    return f"; {tokenizer.unk_token} (words that the vocabulary lacks), of {kind}: {listed}"


@lru_cache(maxsize=1)
def _processor() -> str:
    """The instruction set that torch uses, and the processor's name where the system has one.

    Both decide the order of floating-point sums, so that the same run ends with other bits.
    """
    name = next((line.split(":", 1)[1].strip() for line in _cpu_lines()), platform.processor())
    parts = (platform.machine(), torch.backends.cpu.get_cpu_capability(), name)
    return ", ".join(dict.fromkeys(part for part in parts if part))


def _cpu_lines() -> Iterator[str]:
    """The lines of Linux's /proc/cpuinfo that name a processor; none on other systems."""
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        yield from (line for line in lines if line.startswith("model name"))


@lru_cache(maxsize=1)
def _versions() -> str:
    names = [f"Python {platform.python_version()}"]
    names += [f"{package} {version(package)}" for package in PACKAGES]
    return ", ".join(names) + (f" (commit {commit})" if (commit := _commit()) else "")


def _commit() -> str:
    """The commit of a checkout, with -dirty for changes on top; empty for an installed copy."""
    folder = Path(__file__).parents[2]
    if not (folder / ".git").exists():
        return ""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
