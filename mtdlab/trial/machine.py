"""The processor, the versions and the commit that a trial ran with, as text."""

import platform
import subprocess
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path


@lru_cache(maxsize=1)
def describe_processor(instructions: str = "") -> str:
    """The processor's name where the system has one, and the instruction set that is used.

    Both decide the order of floating-point sums, so that the same run ends with other bits.
    """
    name = platform.processor()
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
        names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
        name = next(names, name)
    parts = (platform.machine(), instructions, name)
    return ", ".join(dict.fromkeys(part for part in parts if part))


@lru_cache(maxsize=1)
def describe_versions(packages: tuple[str, ...]) -> str:
    """The versions of Python and of packages, and the commit of a checkout of mtdlab."""
    names = [f"Python {platform.python_version()}"]
    names += [f"{package} {version(package)}" for package in packages]
    return ", ".join(names) + (f" (commit {commit})" if (commit := _commit()) else "")


def different_versions(first: str, second: str) -> tuple[str, str]:
    """The parts of two results of `describe_versions` that differ."""
    parts = [text.replace(" (", ", (").split(", ") for text in (first, second)]
    pairs = [pair for pair in zip_longest(*parts, fillvalue="") if pair[0] != pair[1]]
    return ", ".join(pair[0] for pair in pairs), ", ".join(pair[1] for pair in pairs)


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
