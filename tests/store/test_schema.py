"""The schema of the database: a recorded study is read, resumed and reproduced; others refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest
from stub_store import new_store, study_row

from mtdlab import load_study
from mtdlab.errors import StorageError
from mtdlab.store.database import open_to_read, open_to_write
from mtdlab.store.progress import list_studies
from mtdlab.sweep import run as runs
from tests.conftest import Written
from tests.store.make_database import DRAWN, GRID, make, restore

pytestmark = pytest.mark.usefixtures("no_training")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return restore(tmp_path / "studies.db")


def test_a_recorded_study_is_read_without_a_change_to_its_file(database: Path) -> None:
    before = database.read_bytes()
    drawn, grid = list_studies(str(database))
    assert (grid.name, grid.planned, grid.state) == ("grid", 8, "paused")
    assert grid.counts == {"COMPLETE": 5, "FAIL": 1, "WAITING": 2}
    assert (drawn.planned, drawn.counts["COMPLETE"], drawn.counts["PRUNED"]) == (6, 1, 1)

    study = load_study("grid", str(database))
    assert (study.planned, study.sampler, study.study_file) == (8, "grid", GRID)
    assert study.trials["number"].tolist() == [*range(7)]
    assert study.trials["reason"].tolist() == ["", "the loss is nan at step 3", *[""] * 5]
    noted = study.trials["note"].str.contains("No space left")
    assert noted.tolist() == [False, False, True, *[False] * 4]
    assert study.trials["mtd"].tolist() == [3, 4, 5, 6, 3, 4, 5]
    assert study.trials["score"].isna().sum() == 2
    assert len(study.curves) == 5 * 4
    assert study.spectra.shape == (10, 5)
    environment = study.environment.set_index("number")
    assert len(environment) == 6
    facts = environment.loc[0, ["device", "precision", "threads"]]
    assert facts.tolist() == ["cpu", "float32", "1"]
    assert len(study.scores) == 10

    assert "note" not in load_study("drawn", str(database)).trials
    assert database.read_bytes() == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]


def test_another_schema_is_refused_and_not_modified(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("UPDATE mtdlab_schema SET version = 99")
        connection.commit()
    before = database.read_bytes()
    for opening in (open_to_read, open_to_write):
        with pytest.raises(StorageError, match="has schema 99, this version of mtdlab supports"):
            opening(f"sqlite:///{database}")
    assert database.read_bytes() == before


def test_a_sweep_resumes_a_recorded_study(database: Path, written: Written) -> None:
    before = load_study("grid", str(database)).trials
    for text, ran, counts in (
        (GRID, 2, {"COMPLETE": 7, "FAIL": 1}),
        (DRAWN, 4, {"COMPLETE": 5, "PRUNED": 1}),
    ):
        result = runs.sweep(written(text), f"sqlite:///{database}", runs.Execution(jobs=1))
        assert (result.ran, result.counts) == (ran, counts)
    after = load_study("grid", str(database)).trials
    assert len(after) == 8
    finished = before[before["state"] != "WAITING"]
    columns = list(before.columns)
    pd.testing.assert_frame_equal(after[columns].iloc[: len(finished)], finished)


def test_the_recorded_database_is_that_of_this_version(database: Path, tmp_path: Path) -> None:
    """After a change of the tables: python tests/store/make_database.py."""
    make(tmp_path / "again.db")
    tables = (
        "SELECT name, sql FROM sqlite_master WHERE name LIKE 'mtdlab%' AND "
        "tbl_name <> 'mtdlab_facts' ORDER BY name"
    )
    shapes = []
    for path in (database, tmp_path / "again.db"):
        with closing(sqlite3.connect(path)) as connection:
            shapes.append(connection.execute(tables).fetchall())
    assert shapes[0] == shapes[1]
    for name in ("grid", "drawn"):
        kept, again = (load_study(name, str(path)) for path in (database, tmp_path / "again.db"))
        columns = ["number", "state", "reason", "seed", "mtd", "score", "best_step"]
        pd.testing.assert_frame_equal(kept.trials[columns], again.trials[columns])
        pd.testing.assert_frame_equal(kept.curves, again.curves)
        assert kept.planned == again.planned


def test_the_record_of_a_study_is_read_back(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    store = new_store(url, description="Why", imports={"m": "0f"})
    assert store.record_once("precision", "bfloat16") == "bfloat16"
    assert store.record_once("precision", "float32") == "bfloat16"
    # a newer study file does not change the recorded precision
    store.write_study(study_row(description="Why not", imports={}))
    row = store.study()
    assert (row.description, row.imports, row.precision) == ("Why not", {}, "bfloat16")
