"""Databases whose paths have characters with a meaning in URLs: every command, the file alone."""

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from stub_store import end_trial, new_store

from mtdlab.config.study import PlannedTrial
from mtdlab.errors import StorageError
from mtdlab.manage.exchange import export_study
from mtdlab.store.claims import Result
from mtdlab.store.database import create_tables
from mtdlab.store.progress import list_studies
from mtdlab.store.urls import absolute, mask, sqlite_file, sqlite_url, storage_url
from tests.commands.conftest import Command
from tests.programs.conftest import command, folder, run, working_folder

__all__ = ["command", "folder", "run", "working_folder"]

NAMES = (
    *("run%41", "100%", "%2e%2e", "C#", "a?b", "a?mode=memory", "a&password=x", "a=b", "u:p@h"),
    *("a b", "a\nb", "-x", "~", "ü日", "sqlite:", "file:x", "{0}", "'\"$x;`", "a\\b+"),
)
ALL = "run%41 C#a?mode=memory&password={0}:@"
QUICK = (ALL, "-x", "sqlite:")
"""What commands mistook once, in one name, and the oddest others; the long tests have each."""
STUDY = "study: own\nmetric: score\nsearch: {rate: [1.0, 2.0]}\nseeds: [0]\n"
PROGRAM = """
def train(settings, *, seed, checkpoints, report):
    return {"score": settings["rate"]}
"""
OTHER = b"another file"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of one trial, as `export-study` writes it."""
    folder = tmp_path_factory.mktemp("exported")
    url = sqlite_url(folder / "source.db")
    identity = {"sampler": "grid", "trainer": {}, "search": {}, "objective": "own:train"}
    store = new_store(
        url, PlannedTrial("x", 0, {"rate": 1.0}), name="own", metric="score", identity=identity
    )
    create_tables(url)
    curve = {name: np.ones(1, np.float32) for name in ("curve/step", "curve/score")}
    result = Result("COMPLETE", values={"score": 1.0}, scores={"score": 1.0}, arrays=curve)
    end_trial(store, result, settings={"method": "own:train", "rate": 1.0})
    export_study("own", url, folder / "own.db")
    return folder / "own.db"


def mistaken_for(name: str) -> set[str]:
    """The names that a part of a URL may mean instead."""
    return {unquote(name), *(name.partition(mark)[0] for mark in "?#")} - {name, ".."}


def run_all(run: Command, name: str, lines: Sequence[Sequence[str]]) -> None:
    """Run commands in a folder of this name on a database of this name.

    Beside both are others, with the names for which they may be mistaken.
    """
    here = Path(name)
    here.mkdir()
    for other in mistaken_for(name):
        Path(other).mkdir()
        (Path(other) / name).write_bytes(OTHER)
        (here / other).write_bytes(OTHER)
    beside = [*here.iterdir(), *(Path(other) / name for other in mistaken_for(name))]
    others = [path.absolute() for path in beside]
    os.chdir(here)
    before = set(Path().iterdir())
    for words in lines:
        run([*words, "--storage", name])
    made = {path.name for path in set(Path().iterdir()) - before}
    assert made <= {name, "copy.db", "reports", "models", "__pycache__"}
    assert [study.name for study in list_studies(f"{Path.cwd()}/{name}")] == ["other"]
    assert {path.read_bytes() for path in others} <= {OTHER}


@pytest.mark.parametrize(
    "name",
    [
        *QUICK,
        *(pytest.param(name, marks=pytest.mark.slow) for name in NAMES if name not in QUICK),
    ],
)
def test_a_database_of_any_name_is_that_file(
    folder: Path,  # noqa: ARG001
    run: Command,
    exported: Path,
    name: str,
) -> None:
    """Created, read, copied and changed by commands."""
    quick = ("import-study FILE", "studies", "show own", "doctor", "export-study own --out copy.db")
    changing = ("rename own other", "import-study FILE", "delete own --yes")
    lines = [line.replace("FILE", str(exported)).split() for line in (*quick, *changing)]
    run_all(run, name, lines)


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
@pytest.mark.slow
def test_the_other_commands_take_such_a_path_too(folder: Path, run: Command) -> None:
    (folder / "own.yaml").write_text(STUDY)
    (folder / "own.py").write_text(PROGRAM)
    study = "../own.yaml --objective own:train"
    lines = (
        *(f"sweep {study} --jobs 1", f"plan {study}", "show own 1", "compare own 0 1"),
        *("report own", "rename own other"),
    )
    run_all(run, ALL, [line.split() for line in lines])


@pytest.mark.parametrize("name", [*NAMES, ALL])
def test_the_url_of_a_path_is_that_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a message and in another process; a password is none of its parts."""
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    for url in (storage_url(name), mask(storage_url(name))):
        assert sqlite_file(url) == Path(name)
        assert sqlite_file(absolute(url)) == tmp_path / name / name


def test_a_path_that_is_not_utf_8_is_refused_in_a_sentence() -> None:
    with pytest.raises(StorageError, match=r"'a\\udcff.db' is a path that is not UTF-8; rename it"):
        storage_url("a\udcff.db")
