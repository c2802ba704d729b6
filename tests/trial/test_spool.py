"""A finished trial's result survives a database that cannot be written at that moment."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Pool, event

from mtdlab import load_study
from mtdlab.analysis.data.environment import Environment, RecordedCorpus
from mtdlab.config.study import StudySpec
from mtdlab.errors import StorageError
from mtdlab.evaluation.items import similarities, values_in_points
from mtdlab.store.claims import Claim, Result
from mtdlab.store.store import Store
from mtdlab.sweep import run as runs
from mtdlab.trial import trainer
from mtdlab.trial import worker as workers
from mtdlab.trial.model_folders import RESULT, kept_trial
from mtdlab.trial.results import load_result, save_result
from tests.tiny_studies import TinyStudy

RESULT_OF_A_TRIAL = Result(
    "COMPLETE",
    values={"score": 41.5, "alignment": float("nan")},
    scores={"sts_dev": 41.0},
    arrays={"curve/loss": np.array([3, np.nan, 1], np.float32)},
    environment=Environment(
        corpus=RecordedCorpus("a", 2, "texts", "0f", "[UNK]", (0.5, 1)), device="cpu"
    ),
)


def test_a_result_is_read_back_for_the_same_settings_alone(tmp_path: Path) -> None:
    assert load_result(tmp_path, "{}") is None
    save_result(tmp_path, RESULT_OF_A_TRIAL, "{}")
    read = load_result(tmp_path, "{}")
    for name in ("state", "scores", "environment"):
        assert getattr(read, name) == getattr(RESULT_OF_A_TRIAL, name)
    assert read.values["score"] == 41.5
    np.testing.assert_array_equal(read.arrays["curve/loss"], [3, np.nan, 1])
    assert load_result(tmp_path, '{"steps": 2}') is None


def test_items_are_kept_with_a_result(tmp_path: Path) -> None:
    items = {"STS12": similarities([0.5, 1], [3, 4], "abc"), "MR": values_in_points([100, 0], "d")}
    save_result(tmp_path, replace(RESULT_OF_A_TRIAL, items=items), "{}")
    read = load_result(tmp_path, "{}")
    assert read.arrays.keys() == RESULT_OF_A_TRIAL.arrays.keys()
    assert read.items.keys() == items.keys()
    for task, part in read.items.items():
        assert (part.kind, part.digest) == (items[task].kind, items[task].digest)
        np.testing.assert_array_equal(part.values, items[task].values)
    np.testing.assert_array_equal(read.items["STS12"].gold, [3, 4])
    assert read.items["MR"].gold is None


@pytest.mark.parametrize("name", ["values.json", "arrays.safetensors"])
def test_a_damaged_result_is_not_used(tmp_path: Path, name: str) -> None:
    save_result(tmp_path, RESULT_OF_A_TRIAL, "{}")
    file = tmp_path / RESULT / name
    file.write_bytes(file.read_bytes()[:-3])
    assert load_result(tmp_path, "{}") is None


HOLD = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""


class Database:
    """The database of a sweep, which cannot be written to from the end of a trial on."""

    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"sqlite:///{path}"
        self._holder: subprocess.Popen[str] | None = None
        self._is_full = False

    def hold(self, seconds: float = 600) -> None:
        """Let another process lock the database, if none does."""
        if self._holder is None or self._holder.poll() is not None:
            self.free()
            command = [sys.executable, "-c", HOLD, str(self.path), str(seconds)]
            self._holder = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert self._holder.stdout is not None
            assert self._holder.stdout.readline() == "held\n"

    def fill(self) -> None:
        """Let the database have no more pages than it has."""
        self._is_full = True

    def limit_pages(self, connection: Any, *_: object) -> None:
        """Called for each connection that is used: a number below the present one is that one."""
        connection.execute(f"PRAGMA max_page_count = {1 if self._is_full else 2**32 - 2}")

    def free(self) -> None:
        """Let the database be written to again."""
        self._is_full = False
        if self._holder is not None:
            self._holder.kill()
            self._holder.communicate()
            self._holder = None


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "s.db")
    event.listen(Pool, "checkout", database.limit_pages)
    yield database
    event.remove(Pool, "checkout", database.limit_pages)
    database.free()


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The EMA decays with which trials were trained."""
    train, trained = trainer.train, list[float]()

    def counted(settings: Any, *arguments: Any) -> Any:
        trained.append(settings.ema_decay)
        return train(settings, *arguments)

    monkeypatch.setattr(trainer, "train", counted)
    return trained


@pytest.fixture
def spec(tiny_study: TinyStudy) -> StudySpec:
    return tiny_study(seeds=[0])


@pytest.mark.parametrize(
    ("prevent", "message"),
    [
        pytest.param(
            Database.hold,
            r"s\.db: database is locked after \d s; stop the process that has",
            marks=pytest.mark.slow,
        ),
        (Database.fill, r"s\.db: database or disk is full; [\d.]+ MB are free in /.*; free some"),
    ],
)
def test_a_trial_whose_result_could_not_be_recorded_is_not_trained_again(
    spec: StudySpec,
    database: Database,
    trained: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prevent: Callable[[Database], None],
    message: str,
) -> None:
    models, finish = tmp_path / "models", Store.finish

    def prevented(store: Store, claim: Claim, result: Result) -> bool:
        prevent(database)
        # more than fits the free space of the pages that there are
        arrays = {**result.arrays, "curve/long": np.zeros(9999, np.float32)}
        return finish(store, claim, replace(result, arrays=arrays))

    with monkeypatch.context() as patch:
        patch.setattr("mtdlab.store.database.LOCK_TIMEOUT_SECONDS", 0.5)
        patch.setattr(Store, "finish", prevented)
        with pytest.raises(StorageError, match=message):
            runs.sweep(spec, database.url, runs.Execution(jobs=1), models=models)
    workers.open_in_process.cache_clear()
    assert len(trained) == 1
    database.free()
    # the process that ran the trial would have ended
    monkeypatch.setattr("mtdlab.store.tables.is_dead", lambda *_: True)
    result = runs.sweep(spec, database.url, runs.Execution(jobs=1), models=models)
    assert (result.counts, result.ran) == ({"COMPLETE": 3}, 3)
    assert trained == [0.5, 0.75, 0.9]
    assert result.best is not None
    assert kept_trial(models / "kept", database.url) == result.best.number == 0
    trials = load_study("kept", database.url).trials
    assert trials["note"][0] == "its result was kept on the disk"
    assert trials["score"].notna().all()
    assert not list((models / ".checkpoints").glob("**/result"))


@pytest.mark.slow
def test_a_lock_that_ends_before_the_timeout_is_waited_for(
    spec: StudySpec,
    database: Database,
    trained: list[float],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    finish = Store.finish

    def late(*arguments: Any) -> bool:
        database.hold(seconds=0.3)
        return finish(*arguments)

    monkeypatch.setattr(Store, "finish", late)
    done = runs.sweep(spec, database.url, runs.Execution(jobs=1), models=tmp_path / "models")
    assert (done.exit_code, done.counts, len(trained)) == (0, {"COMPLETE": 3}, 3)
