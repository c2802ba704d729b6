"""What a trial runs with, as it is recorded: for running it again, and to find what differs."""

import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mtdlab.analysis.data.environment import (
    Environment,
    RecordedCorpus,
    RecordedEncoder,
    RecordedEvaluation,
)
from mtdlab.methods.registry import find_method

if TYPE_CHECKING:
    # it imports torch, which a program of the user may do without
    from mtdlab.settings import TrainerSettings
    from mtdlab.training.inputs import RunInputs

NO_CODE: Mapping[str, str] = MappingProxyType({})
PACKAGES = ("mtdlab", "torch", "transformers", "optuna", "numpy")


def environment_of(
    settings: "TrainerSettings", inputs: "RunInputs", code: Mapping[str, str] = NO_CODE
) -> Environment:
    """What a run of mtdlab's trainer computes with in this process; code as in `Environment`."""
    import torch

    from mtdlab.corpus.survey import count_repeats
    from mtdlab.device import choose_device
    from mtdlab.encoders.traits import describe_encoder
    from mtdlab.evaluation.pairs import count_shared
    from mtdlab.training.present import describe_sets, reads_documents

    model, fields = inputs.encoder.model, inputs.encoder.dropout_fields
    device = choose_device(settings)
    counted = (0, 0.0, "") if reads_documents(settings) else count_repeats(inputs.corpus)
    token, unknown = _unknown(inputs)
    dev, test = inputs.dev.pairs, inputs.test.pairs
    left_out = {"dev": dev.left_out, "test": test.left_out}
    averages = settings.select_on == "sts_average"
    return replace(
        machine(packages_of(settings.method)),
        corpus=RecordedCorpus(
            settings.corpus,
            len(inputs.tokens),
            inputs.corpus.unit,
            inputs.corpus.fingerprint,
            token,
            unknown,
            *counted[1:],
        ),
        encoder=RecordedEncoder(
            settings.encoder_name,
            sum(parameter.numel() for parameter in model.parameters()),
            inputs.encoder.reading(settings.representation),
            describe_encoder(model, fields),
        ),
        evaluation=RecordedEvaluation(
            settings.evaluation,
            len(inputs.dev.gold),
            len(inputs.test.gold),
            settings.tasks,
            describe_sets(settings.evaluation) if averages else "",
            dict(inputs.suite.shortfalls),
            {name: text for name, text in left_out.items() if text},
            count_shared(dev, test),
        ),
        device=device.name,
        precision=device.precision,
        threads=torch.get_num_threads(),
        instructions=torch.backends.cpu.get_cpu_capability(),
        code=dict(code),
    )


def _unknown(inputs: "RunInputs") -> tuple[str, tuple[float, ...]]:
    """The token [UNK] and its percentage in the tokens of each view, prompts included."""
    tokenizer = inputs.encoder.tokenizer
    if tokenizer.unk_token_id is None or tokenizer.unk_token_id == tokenizer.pad_token_id:
        return "", ()
    shares = tuple(100 * view.share_of(int(tokenizer.unk_token_id)) for view in inputs.views)
    return (str(tokenizer.unk_token), shares) if any(shares) else ("", ())


def packages_of(*methods: str) -> tuple[str, ...]:
    """The packages whose versions are recorded with trials of these methods."""
    own = (package for name in methods for package in find_method(name).packages)
    return tuple(dict.fromkeys((*PACKAGES, *own)))


@lru_cache(maxsize=4)
def machine(packages: tuple[str, ...]) -> Environment:
    """Architecture, processor, the versions of Python and of packages, and the commit.

    Processor and instruction set decide the order of floating-point sums, so that the same run ends
    with other bits.
    """
    name = platform.processor()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        name = next(names, name)
    return Environment(
        architecture=platform.machine(),
        processor=name,
        versions={"Python": platform.python_version()} | {used: version(used) for used in packages},
        commit=_commit(),
    )


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


def different_versions(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[str, str]:
    """What differs between two results of `Environment.all_versions`, as text of each."""
    names = [name for name in {**first, **second} if first.get(name) != second.get(name)]
    texts = (
        ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
        for versions in (first, second)
    )
    return next(texts), next(texts)
