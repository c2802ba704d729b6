"""Damaged databases: each command succeeds or refuses in a sentence, and changes nothing."""

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from mtdlab.cli import main
from mtdlab.errors import StorageError
from mtdlab.store.database import refuse_damaged
from mtdlab.store.progress import list_studies
from mtdlab.store.store import Store
from mtdlab.trial import trainer
from mtdlab.trial import worker as workers
from tests.store import damaging
from tests.store.make_database import GRID, replacement_of_training, restore

COMMANDS = ("sweep study.yaml --jobs 1", "studies", "show grid", "report grid")
LONG = int(os.environ.get("MTDLAB_DAMAGED", "500"))


@pytest.fixture(autouse=True)
def folder(no_inputs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("mtdlab.store.database.CREATION_SECONDS", 0.0)
    (no_inputs / "study.yaml").write_text(GRID)
    yield
    workers.open_in_process.cache_clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database to damage."""
    return restore(tmp_path / "damaged.db")


@pytest.fixture
def refusal(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], str]:
    """What a command on the database prints, which refuses it."""

    def refuse(command: str) -> str:
        monkeypatch.setattr("sys.argv", ["mtdlab", *command.split(), "--storage", str(path)])
        with pytest.raises(SystemExit, match="4"):
            main()
        return capsys.readouterr().err

    return refuse


def contents(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b"a folder"


def try_commands(
    path: Path, commands: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Run commands on a database; returns what is wrong with their ends, none if nothing is."""
    wrong, before = [], contents(path)
    for command in commands:
        done = enumerate([("COMPLETE", "")] * 20, start=100)
        monkeypatch.setattr(trainer, "train_trial", replacement_of_training(done))
        monkeypatch.setattr("sys.argv", ["mtdlab", *command.split(), "--storage", str(path)])
        try:
            main()
        except SystemExit as ended:
            if ended.code not in (0, 2, 3, 4, 5):
                wrong.append(f"{command}: exit code {ended.code}")
            if ended.code == 4 and contents(path) != before:
                wrong.append(f"{command}: refused, but the file was changed")
        except Exception as error:
            wrong.append(f"{command}: {type(error).__name__}: {error}")
        workers.open_in_process.cache_clear()
        if command.startswith("sweep") and contents(path) != before:
            # the sweep succeeded on a database whose damage it does not read
            before = contents(path)
    return wrong


@pytest.mark.parametrize("damage", damaging.DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_database_is_refused_in_a_sentence_and_not_changed(
    damage: Callable[[Path, Random], None], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage(path, Random(1))
    assert try_commands(path, COMMANDS[:2], monkeypatch) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "table",
    # of Optuna's tables, and of what says which tables there are
    ["mtdlab_scores", "trials", "trial_values", "mtdlab_schema"],
)
def test_a_sweep_does_not_create_a_lost_table_anew(
    table: str, path: Path, refusal: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaging, "TABLES", (table,))
    damaging.drop_table(path, Random(0))
    before = path.read_bytes()
    assert "is damaged: " in refusal("sweep study.yaml")
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "value", "command"),
    [
        ("UPDATE mtdlab_trials SET settings = ?", "{", "report grid"),
        ("UPDATE mtdlab_trials SET ended = ?", "no date", "studies"),
        ('UPDATE mtdlab_arrays SET "values" = CAST(? AS BLOB)', "x", "report grid"),
    ],
    ids=["json", "date", "array"],
)
def test_a_value_that_cannot_be_read_is_named(
    statement: str, value: str, command: str, path: Path, refusal: Callable[[str], str]
) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, (value,))
    assert "is damaged: a record cannot be read (" in refusal(command)


def test_a_database_that_another_process_locks_is_named_with_the_time(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F9: less than the timeout, and more."""
    monkeypatch.setattr("mtdlab.store.database.LOCK_TIMEOUT_SECONDS", 0.5)
    store = Store(f"sqlite:///{path}", study_id=1)
    before = store.counts()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match=r"damaged\.db: database is locked after \d s; stop"):
            store.counts()
        releasing = threading.Timer(0.1, other.rollback)
        releasing.start()
        assert store.counts() == before
        releasing.join()


def test_a_schema_that_is_not_text_is_named(path: Path, refusal: Callable[[str], str]) -> None:
    """SQLite's message quotes the damaged schema, which is then no UTF-8 either."""
    content = path.read_bytes()
    assert b"CREATE TABLE studies" in content
    path.write_bytes(content.replace(b"CREATE TABLE studies", b"CREATE TABL\xe3 studies"))
    damaged = path.read_bytes()
    for command in COMMANDS[:2]:
        assert "is damaged" in refusal(command)
    assert path.read_bytes() == damaged


def test_pages_of_other_content_are_said_with_what_to_do(
    path: Path, refusal: Callable[[str], str]
) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"Z" * (len(content) - 4096))
    for command in ("studies", "doctor"):
        assert "disk image is malformed; restore it from a backup" in refusal(command)


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn")
def test_many_damaged_databases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for number in range(LONG):
        random, path = Random(number), restore(tmp_path / f"{number}.db")
        damage = random.choice([*damaging.DAMAGES, *damaging.COMMON * 3])
        damage(path, random)
        for problem in try_commands(path, COMMANDS, monkeypatch):
            wrong.append(f"{damage.__name__} {number}: {problem}")
        capsys.readouterr()
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with capsys.disabled():
        print(f"\n{LONG} damaged databases, {len(COMMANDS)} commands each: {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)


def test_a_transaction_of_a_killed_process_is_rolled_back(path: Path) -> None:
    """Its journal is left, which no read-only connection can undo."""
    before = list_studies(f"sqlite:///{path}")
    script = f"""
import os, signal, sqlite3
connection = sqlite3.connect({str(path)!r})
connection.execute("PRAGMA cache_size = 2")
connection.execute("UPDATE mtdlab_arrays SET name = name || 'x'")
connection.execute("UPDATE mtdlab_trials SET state = 'FAIL', reason = hex(randomblob(9999))")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], check=False)
    assert path.with_name("damaged.db-journal").exists()
    copies = [path.with_name(f"{name}.db") for name in ("read", "swept")]
    for copy in copies:
        shutil.copy(path, copy)
        shutil.copy(f"{path}-journal", f"{copy}-journal")
    assert list_studies(f"sqlite:///{copies[0]}") == before
    refuse_damaged(f"sqlite:///{copies[1]}")
    assert list_studies(f"sqlite:///{copies[1]}") == before
