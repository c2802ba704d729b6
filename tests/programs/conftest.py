"""A program, a study of it, and commands that are run in the test's process."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtdlab import user_code
from mtdlab.trial import worker
from tests.commands.conftest import Command, Printed, command
from tests.commands.conftest import folder as working_folder

__all__ = ["command", "working_folder"]

PROGRAM = '''
"""Trains nothing: its score rises with rate and seed, and is the sum of its steps."""

import os
import time


def train(settings, *, seed, checkpoints, report):
    file, total = checkpoints / "state.txt", 0
    step = 0
    if file.exists():
        step, total = map(int, file.read_text().split())
    with open("calls.txt", "a") as log:
        log.write(f"{os.getpid()} {settings['rate']} {seed} {step}\\n")
    while step < settings["steps"]:
        if not os.path.exists("hurry"):
            time.sleep(settings.get("seconds", 0))
        step += 1
        total += step
        file.with_suffix(".new").write_text(f"{step} {total}")
        file.with_suffix(".new").replace(file)
        report(step, settings["rate"] * step)
    return {"accuracy": 50 + settings["rate"] + seed, "total": total}
'''
STUDY = """
study: own
metric: accuracy
trainer: {steps: 4, name: plain, wide: true}
search: {rate: [1.0, 2.5]}
seeds: [0, 1]
"""


@pytest.fixture
def folder(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with `own.py` and `own.yaml`, as on a machine with one core."""
    (working_folder / "own.py").write_text(PROGRAM)
    (working_folder / "own.yaml").write_text(STUDY)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    yield working_folder
    forget()
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(working_folder)):
            del sys.modules[name]


def forget() -> None:
    """The next command imports the program as in a new process."""
    user_code.execute.cache_clear()
    worker.open_in_process.cache_clear()


@pytest.fixture
def run(folder: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:  # noqa: ARG001
    """Runs a command in that folder, as in a new process, and asserts its exit code."""
    monkeypatch.setenv("COLUMNS", "100")

    def call(line: str, code: int = 0) -> Printed:
        forget()
        return command(line, code)

    return call


def calls(folder: Path) -> list[list[str]]:
    """Process, rate, seed and first step of every call of the program."""
    try:
        return [line.split() for line in (folder / "calls.txt").read_text().splitlines()]
    except FileNotFoundError:
        return []
