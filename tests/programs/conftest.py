"""A program, a study of it, and commands that are run in the test's process."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mtdlab import user_code
from mtdlab.cli import main
from mtdlab.sweep import worker

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


@dataclass(frozen=True)
class Printed:
    """What a command printed."""

    stdout: str
    stderr: str


Run = Callable[..., Printed]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with `own.py` and `own.yaml`, as on a machine with one core."""
    (tmp_path / "own.py").write_text(PROGRAM)
    (tmp_path / "own.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setenv("COLUMNS", "100")
    for name in ("MTDLAB_STORAGE", "OPTUNA_STORAGE", "MTDLAB_DATA", "MTDLAB_IMPORT"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    user_code.execute.cache_clear()
    worker.open_in_process.cache_clear()
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in that folder, as in a new process, and asserts its exit code."""
    del folder

    def call(line: str, code: int = 0) -> Printed:
        user_code.execute.cache_clear()
        worker.open_in_process.cache_clear()
        monkeypatch.setattr(sys, "argv", ["mtdlab", *shlex.split(line)])
        with pytest.raises(SystemExit, match=r"^\w*$") as ended:
            main()
        done = Printed(*capsys.readouterr())
        assert (ended.value.code or 0) == code, done.stdout + done.stderr
        return done

    return call
