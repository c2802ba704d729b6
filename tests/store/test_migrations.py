"""Databases of every schema version: reading without modification, copying, migration."""

import functools
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import optuna
import pandas as pd
import pytest
from sqlalchemy import inspect

from analysis.best_trial import compute_choices
from analysis.frames import StudyFrames
from mtdlab import load_study
from mtdlab.config import read_study
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.store import Store, list_studies, migrations, setting_names
from mtdlab.store.database import reading_engine, writing_engine
from mtdlab.store.tables import SCHEMA_VERSION, Base
from mtdlab.sweep import run as runs
from mtdlab.sweep import trainer
from mtdlab.sweep import worker as workers
from tests.store.make_database import DRAWN, GRID, make, replacement_of_training
from tests.store.test_stored_items import assert_same_items

DATA = Path(__file__).parent / "data"
VERSIONS = range(1, SCHEMA_VERSION + 1)
OLDER = [version for version in VERSIONS if version < SCHEMA_VERSION]


@pytest.fixture
def database(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of the database of schema 1, or of the version in an indirect parameter."""
    path = tmp_path / "studies.db"
    shutil.copy(DATA / f"schema-{getattr(request, 'param', 1)}.db", path)
    return path


@pytest.fixture(autouse=True)
def no_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mtdlab.training.inputs.check_inputs", lambda *_: {})
    done = enumerate([("COMPLETE", "")] * 20, start=100)
    monkeypatch.setattr(trainer, "train_trial", replacement_of_training(done))
    yield
    workers.open_in_process.cache_clear()


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def migrate(path: Path) -> None:
    writing_engine(url_of(path)).dispose()


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("SELECT version FROM mtdlab_schema").fetchone()[0])


def copies(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if ".bak" in each.name)


def study_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    return path


def assert_same_study(first: StudyFrames, second: StudyFrames) -> None:
    for field in fields(StudyFrames):
        left, right = getattr(first, field.name), getattr(second, field.name)
        if field.name == "load_items":
            assert_same_items(left(), right())
        elif isinstance(left, pd.DataFrame):
            pd.testing.assert_frame_equal(left, right)
        else:
            assert left == right, field.name


def test_every_version_has_its_database() -> None:
    assert [version_of(DATA / f"schema-{version}.db") for version in VERSIONS] == [*VERSIONS]
    assert len(migrations.MIGRATIONS) == SCHEMA_VERSION - 1


@pytest.mark.parametrize("database", VERSIONS, indirect=True)
def test_a_study_of_every_version_is_read_without_a_change_to_its_file(database: Path) -> None:
    before = database.read_bytes()
    drawn, grid = list_studies(str(database))
    assert (grid.name, grid.planned, grid.state) == ("grid", 8, "paused")
    assert grid.counts == {"COMPLETE": 5, "FAIL": 1, "WAITING": 2}
    assert (drawn.planned, drawn.counts["COMPLETE"], drawn.counts["PRUNED"]) == (6, 1, 1)

    study = load_study("grid", str(database))
    assert (study.planned, study.sampler, study.study_file) == (8, "grid", GRID)
    assert study.trials["number"].tolist() == [*range(7)]
    assert study.trials["reason"].tolist() == ["", "the loss is nan at step 3", *[""] * 5]
    assert (
        study.trials["note"].str.contains("No space left").tolist()
        == [False, False, True] + [False] * 4
    )
    assert study.trials["mtd"].tolist() == [3, 4, 5, 6, 3, 4, 5]
    assert study.trials["score"].isna().sum() == 2
    assert len(study.curves) == 5 * 4
    assert study.spectra.shape == (10, 5)
    environment = study.environment.set_index("number")
    assert len(environment) == 6
    assert environment.loc[0].to_dict() == {
        "device": "cpu",
        "precision": "float32",
        "threads": "1",
        "processor": "",
        "versions": "",
    }
    assert len(study.scores) == 10

    assert "note" not in load_study("drawn", str(database)).trials
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


@pytest.mark.parametrize("database", OLDER, indirect=True)
def test_migration_changes_nothing_that_is_read(database: Path) -> None:
    before = {name: load_study(name, str(database)) for name in ("grid", "drawn")}
    migrate(database)
    assert version_of(database) == SCHEMA_VERSION
    for name, study in before.items():
        assert_same_study(study, load_study(name, str(database)))


@pytest.mark.parametrize("database", OLDER, indirect=True)
def test_migrated_tables_are_those_of_a_new_database(database: Path, tmp_path: Path) -> None:
    migrate(database)
    new = tmp_path / "new.db"
    migrate(new)
    shapes = [
        {
            (table, column["name"]): (str(column["type"]), column["nullable"], column["default"])
            for table in Base.metadata.tables
            for column in inspect(reading_engine(url_of(path))).get_columns(table)
        }
        for path in (database, new)
    ]
    assert shapes[0] == shapes[1]


def test_the_file_is_copied_once_before_it_is_migrated(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = load_study("grid", str(database))
    migrate(database)
    name = "studies.db.schema-1.bak"
    assert copies(database) == [name]
    message = capsys.readouterr().err
    assert re.search(rf"migrated from schema 1 to {SCHEMA_VERSION}; .*/{name}$", message.strip())
    copy = database.with_name(name)
    assert version_of(copy) == 1
    assert_same_study(before, load_study("grid", str(copy)))

    migrate(database)
    assert copies(database) == [name]
    assert capsys.readouterr().err == ""


def test_an_existing_backup_is_not_overwritten(database: Path) -> None:
    earlier = database.with_name("studies.db.schema-1.bak")
    earlier.write_text("an earlier copy")
    migrate(database)
    assert earlier.read_text() == "an earlier copy"
    assert copies(database) == ["studies.db.schema-1-2.bak", earlier.name]


def test_if_the_copy_fails_nothing_is_migrated(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_path: Path) -> None:
        raise OSError(28, "No space left on device")

    before = database.read_bytes()
    monkeypatch.setattr(migrations, "sync", full)
    with pytest.raises(StorageError, match=r"cannot be copied first.*No space left"):
        migrate(database)
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_a_failed_migration_keeps_the_old_schema(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(operations: object) -> None:
        migrations._to_version_2(operations)  # type: ignore[arg-type]
        raise RuntimeError("in the middle")

    monkeypatch.setattr(migrations, "MIGRATIONS", (broken,))
    with pytest.raises(RuntimeError, match="in the middle"):
        migrate(database)
    monkeypatch.undo()
    assert version_of(database) == 1
    assert load_study("grid", str(database)).planned == 8


def test_a_newer_schema_is_refused_and_not_modified(database: Path) -> None:
    migrate(database)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE mtdlab_schema SET version = 99")
        connection.commit()
    before = database.read_bytes()
    for opened in (reading_engine, writing_engine):
        with pytest.raises(StorageError, match="has schema 99, this version of mtdlab supports"):
            opened(url_of(database))
    assert database.read_bytes() == before


def test_a_damaged_older_database_is_an_error_and_not_modified(database: Path) -> None:
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    for opened in (reading_engine, writing_engine):
        with pytest.raises(StorageError, match="malformed"):
            opened(url_of(database))
    assert database.read_bytes() == whole[: len(whole) // 2]
    assert copies(database) == []


OPEN = "import sys; from mtdlab.store.database import writing_engine; writing_engine(sys.argv[1])"


def test_two_processes_migrate_at_once(database: Path) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, url_of(database)], stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    messages = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], messages
    assert sum("migrated from schema 1" in message for message in messages) == 1
    assert version_of(database) == SCHEMA_VERSION
    assert copies(database) == ["studies.db.schema-1.bak"]


@pytest.mark.parametrize("database", [1, 2], indirect=True)
def test_a_study_without_select_by_keeps_ranking_by_its_metric(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Optuna's values of earlier trials must not be mixed with another score."""
    sweep = functools.partial(runs.sweep, url=url_of(database), jobs=1)
    with pytest.raises(MtdlabError, match=r"\(select_by: was sts_test, now sts_dev\)"):
        sweep(read_study(study_file(tmp_path, GRID + "select_by: sts_dev\n")))
    result = sweep(read_study(study_file(tmp_path, GRID)))
    assert result.ran == 2
    message = "study grid was begun without select_by: its trials are still ranked by its metric"
    assert message in capsys.readouterr().err

    study = load_study("grid", str(database))
    done = study.trials[study.trials["state"] == "COMPLETE"]
    opened = optuna.load_study(study_name="grid", storage=url_of(database))
    values = [trial.value for trial in opened.trials if trial.state.name == "COMPLETE"]
    assert values == done["score"].tolist()
    dev = study.scores[study.scores["task"] == "sts_dev"]["score"]
    assert (dev.to_numpy() == done["score"].to_numpy() + 1).all()
    best = done.loc[done["score"].idxmax()]
    assert result.best is not None
    assert (result.best.number, result.best.ranking) == (best["number"], best["score"])
    assert (result.select_by, study.select_by) == ("sts_test", "")
    listed = {row.name: row.select_by for row in list_studies(str(database))}
    assert listed == {"grid": "sts_test", "drawn": "sts_dev"}
    choices = compute_choices(study)
    assert [choice.chosen_by for choice in choices] == ["sts_test", "sts_dev"]

    # also where the file names the metric, and when it is left out again
    for text in (GRID + "select_by: sts_test\n", GRID):
        assert sweep(read_study(study_file(tmp_path, text))).select_by == "sts_test"
    assert load_study("grid", str(database)).select_by == ""


@pytest.mark.parametrize("database", VERSIONS, indirect=True)
def test_a_sweep_resumes_a_study_of_every_version(database: Path, tmp_path: Path) -> None:
    before = load_study("grid", str(database)).trials
    for text, ran, counts in (
        (GRID, 2, {"COMPLETE": 7, "FAIL": 1}),
        (DRAWN, 4, {"COMPLETE": 5, "PRUNED": 1}),
    ):
        result = runs.sweep(read_study(study_file(tmp_path, text)), url_of(database), jobs=1)
        assert (result.ran, result.counts) == (ran, counts)
    after = load_study("grid", str(database)).trials
    assert len(after) == 8
    finished = before[before["state"] != "WAITING"]
    columns = list(before.columns)
    pd.testing.assert_frame_equal(after[columns].iloc[: len(finished)], finished)


def test_the_precision_of_a_study_comes_from_its_first_trial(database: Path) -> None:
    """Version 1 resolved `auto` for each trial and recorded the result in its device line."""
    with closing(sqlite3.connect(database)) as connection:
        for place, (number, precision) in enumerate([(1, "float32"), (0, "bfloat16")]):
            connection.execute(
                "UPDATE mtdlab_trials SET environment = json_set(environment, '$.device', ?) "
                "WHERE number = ? AND study_id = (SELECT id FROM mtdlab_studies WHERE name = ?)",
                (f"cpu, {precision}, threads a trial: {place}", number, "grid"),
            )
        connection.commit()
    migrate(database)
    with closing(sqlite3.connect(database)) as connection:
        found = dict(connection.execute("SELECT name, precision FROM mtdlab_studies"))
    assert found == {"grid": "bfloat16", "drawn": "float32"}


def test_a_setting_that_was_renamed_or_removed_is_mapped(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tau` as an earlier name of `temperature`, and `heat` as a removed setting."""
    with closing(sqlite3.connect(database)) as connection:
        for table, path in (("studies SET identity", "trainer."), ("trials SET settings", "")):
            column = table.split()[-1]
            connection.execute(
                f"UPDATE mtdlab_{table} = json_remove(json_set({column}, '$.{path}tau', 0.05, "
                f"'$.{path}heat', 1), '$.{path}temperature') WHERE {column} IS NOT NULL"
            )
        connection.commit()
    spec = read_study(study_file(tmp_path, GRID))
    with pytest.raises(MtdlabError, match=r"trainer.heat: was 1, now None; trainer.tau"):
        runs.sweep(spec, url_of(database), jobs=1)
    assert {"tau", "heat"} <= set(load_study("grid", str(database)).trials)

    monkeypatch.setattr(setting_names, "REPLACED", {"tau": "temperature", "heat": None})
    trials = load_study("grid", str(database)).trials
    assert {"tau", "heat"}.isdisjoint(trials)
    assert trials["temperature"].tolist() == [0.05] * 7
    assert runs.sweep(spec, url_of(database), jobs=1).counts == {"COMPLETE": 7, "FAIL": 1}


def test_the_database_of_the_present_version_is_reproducible(tmp_path: Path) -> None:
    make(tmp_path / "again.db")
    for name in ("grid", "drawn"):
        kept, again = (
            load_study(name, str(path))
            for path in (DATA / f"schema-{SCHEMA_VERSION}.db", tmp_path / "again.db")
        )
        columns = ["number", "state", "reason", "seed", "mtd", "score", "best_step"]
        pd.testing.assert_frame_equal(kept.trials[columns], again.trials[columns])
        pd.testing.assert_frame_equal(kept.curves, again.curves)
        assert kept.planned == again.planned


def test_the_record_of_a_study_is_read_back(tmp_path: Path) -> None:
    store = Store(url_of(tmp_path / "a.db"), study_id=1)
    identity = {"sampler": "grid"}
    store.write_study("a", "sts_test", identity, "", "", description="Why", imports={"m": "0f"})
    assert store.record_precision("bfloat16") == "bfloat16"
    assert store.record_precision("float32") == "bfloat16"
    # a newer study file does not change the recorded precision
    store.write_study("a", "sts_test", identity, "", "", description="Why not")
    row = store.study()
    assert row is not None
    assert (row.description, row.imports, row.precision) == ("Why not", {}, "bfloat16")


def test_a_failure_of_an_older_version_gets_the_code_of_its_reason(database: Path) -> None:
    reasons = {
        "the loss is nan at step 3": "nan_loss",
        "sentence vectors are not finite": "nan_loss",
        "oom: out of memory": "oom",
        "no sts_test: collapsed: every cosine is the same": "collapsed",
        "ZeroDivisionError: division by zero": "error",
    }
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id FROM mtdlab_trials ORDER BY id").fetchall()
        for (row,), reason in zip(rows, reasons, strict=False):
            connection.execute(
                "UPDATE mtdlab_trials SET state = 'FAIL', reason = ? WHERE id = ?", (reason, row)
            )
        connection.commit()
    migrate(database)
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(
            "SELECT reason, reason_code, deaths FROM mtdlab_trials WHERE state = 'FAIL' ORDER BY id"
        ).fetchall()
    assert found[: len(reasons)] == [(reason, code, 0) for reason, code in reasons.items()]
