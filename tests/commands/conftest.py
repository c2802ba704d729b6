"""Commands run in the test's process, and a small recorded study."""

import os
import shlex
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import mtdlab
from mtdlab.cli import main
from mtdlab.sweep.run import SweepResult


class Printed(NamedTuple):
    """What a command printed."""

    stdout: str
    stderr: str


Command = Callable[..., Printed]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, in which no variable names a database, data or methods."""
    monkeypatch.chdir(tmp_path)
    for name in ("MTDLAB_STORAGE", "OPTUNA_STORAGE", "MTDLAB_DATA", "MTDLAB_IMPORT"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def command(
    folder: Path,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Command:
    """Runs a command in this process, in that folder, 80 columns wide, and asserts its exit code.

    A line is split as by a shell; words are taken as they are.
    """
    monkeypatch.setenv("COLUMNS", "80")

    def call(line: str | list[str], code: int | tuple[int, ...] = 0) -> Printed:
        words = shlex.split(line) if isinstance(line, str) else line
        monkeypatch.setattr(sys, "argv", ["mtdlab", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit, match=r"^\w*$") as ended:
            main()
        done = Printed(*capfd.readouterr())
        expected = (code,) if isinstance(code, int) else code
        assert (ended.value.code or 0) in expected, done.stdout + done.stderr
        return done

    return call


def query(folder: Path, statement: str, database: str = "mtdlab.db") -> list[Any]:
    """The rows of a query; none before there are tables."""
    try:
        with closing(sqlite3.connect(f"file:{folder / database}?mode=ro", uri=True)) as opened:
            return opened.execute(statement).fetchall()
    except sqlite3.OperationalError:
        return []


@dataclass(frozen=True)
class Recorded:
    """A study of four trials of three steps: its values, database and result.

    The trials of one of its two learning rates fail, since the loss is no number.
    """

    values: dict[str, Any]
    storage: Path
    models: Path
    result: SweepResult


@pytest.fixture(scope="session")
def recorded(
    tmp_path_factory: pytest.TempPathFactory,
    tiny_encoder: Path,
    tiny_corpus: Path,
    tiny_pairs: Path,
) -> Recorded:
    """Run by the Python interface, in this process."""
    folder = tmp_path_factory.mktemp("recorded")
    values = {
        "study": "tiny",
        "description": "Does a learning rate of 1e18 work?",
        "trainer": {
            "encoder": str(tiny_encoder),
            "corpus": str(tiny_corpus),
            "evaluation": str(tiny_pairs),
            "batch_size": 8,
            "steps": 4,
            "evaluate_every": 4,
            "queue_size": 16,
            "initial_queue_size": 8,
            "ema_decay": 0.75,
            "max_length": 16,
            "precision": "float32",
        },
        "search": {"learning_rate": [1e-3, 1e18]},
        "seeds": [0, 1],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "cpu_count", lambda: 1)
        result = mtdlab.run_study(
            values, storage=str(folder / "tiny.db"), models=folder / "models", jobs=1
        )
    return Recorded(values, folder / "tiny.db", folder / "models", result)
