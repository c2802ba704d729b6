"""Whole studies deleted, renamed, exported and imported, on both databases."""

import platform
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import optuna
import pandas as pd
import pytest
from pytest_postgresql.executors import PostgreSQLExecutor
from sqlalchemy import update
from stub_store import claim_trial

from mtdlab import load_study
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.cli import main
from mtdlab.config.reader import parse_study
from mtdlab.errors import MtdlabError, NothingToReport, StorageError
from mtdlab.manage.doctor import examine
from mtdlab.manage.exchange import (
    adapt,
    delete_study,
    export_study,
    import_study,
    rename_study,
)
from mtdlab.store import records
from mtdlab.store.claims import Result
from mtdlab.store.exchange import read_records
from mtdlab.store.owner import this_process
from mtdlab.store.recorded import names_in, planned_names, study_names
from mtdlab.store.store import Store, open_store, record_plan
from mtdlab.store.tables import ScoreRow, TrialRow
from mtdlab.sweep.open_study import open_study
from mtdlab.trial.heartbeat import recorded_sweep
from mtdlab.trial.signals import StopRequest
from tests.postgresql import janitor, optuna_storage, url_of
from tests.store.make_database import restore
from tests.store.test_stored_items import assert_same_items


def assert_equal(first: StudyFrames, second: StudyFrames) -> None:
    """The same but for the storage of the command, which is that of the database."""
    assert first.invocation.without("storage") == second.invocation.without("storage")
    for field in fields(StudyFrames):
        if field.name == "invocation":
            continue
        left, right = getattr(first, field.name), getattr(second, field.name)
        if field.name == "load_items":
            assert_same_items(left(), right())
        elif isinstance(left, pd.DataFrame):
            pd.testing.assert_frame_equal(left, right)
        else:
            assert left == right, field.name


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with GRID.db and DRAWN.db, exported, and the database that they come from."""
    folder = tmp_path_factory.mktemp("exported")
    restore(folder / "recorded.db")
    for name in ("grid", "drawn"):
        export_study(name, f"sqlite:///{folder / 'recorded.db'}", folder / f"{name}.db")
    return folder


@pytest.fixture(scope="session")
def both_on_server(
    postgresql_server: PostgreSQLExecutor, postgresql_template: str, exported: Path
) -> Iterator[str]:
    """A PostgreSQL database with the imported studies, which is copied for each test."""
    with janitor(postgresql_server, "both", postgresql_template):
        for name in ("grid", "drawn"):
            found = import_study(exported / f"{name}.db", url_of(postgresql_server, "both"))
            assert found == name
        # as if its trials had run there
        with Store(url_of(postgresql_server, "both"), 0).database.writing() as session:
            session.execute(update(TrialRow).values(sweep=None))
        yield "both"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def two(request: pytest.FixtureRequest, tmp_path: Path, exported: Path) -> Iterator[str]:
    """A database with the studies grid and drawn; on PostgreSQL they are imported."""
    if request.param == "sqlite":
        shutil.copy(exported / "recorded.db", tmp_path / "studies.db")
        yield f"sqlite:///{tmp_path / 'studies.db'}"
        return
    server = request.getfixturevalue("postgresql_server")
    with janitor(server, "copy_of_both", request.getfixturevalue("both_on_server")):
        yield url_of(server, "copy_of_both")


def optuna_study(name: str, url: str) -> optuna.Study:
    return optuna.load_study(study_name=name, storage=optuna_storage(url))


@pytest.mark.parametrize(
    "two", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_a_study_is_the_same_after_export_and_import(
    two: str, exported: Path, tmp_path: Path
) -> None:
    for name in ("grid", "drawn"):
        before = load_study(name, str(exported / "recorded.db"))
        assert_equal(load_study(name, two), before)
        assert study_names(str(exported / f"{name}.db")) == [name]
        assert_equal(load_study(name, str(exported / f"{name}.db")), before)
        old = optuna_study(name, f"sqlite:///{exported / 'recorded.db'}")
        new = optuna_study(name, two)
        assert new.user_attrs == old.user_attrs
        ended = ([trial for trial in of.trials if trial.state.is_finished()] for of in (old, new))
        names = ("number", "state", "values", "params", "user_attrs", "datetime_complete")
        for first, second in zip(*ended, strict=True):
            for attribute in names:
                assert getattr(first, attribute) == getattr(second, attribute), attribute
    # out of this database, and into a SQLite file again
    export_study("grid", two, tmp_path / "out.db")
    import_study(tmp_path / "out.db", f"sqlite:///{tmp_path / 'again.db'}")
    assert_equal(load_study("grid", str(tmp_path / "again.db")), load_study("grid", two))


def test_items_that_do_not_fit_are_neither_exported_nor_imported(
    exported: Path, tmp_path: Path
) -> None:
    damages = {
        "DELETE FROM mtdlab_items": "nothing is recorded of these items",
        "UPDATE mtdlab_items SET gold = x'000000000000F03F'": "1 values of 8 evaluation items",
        "UPDATE mtdlab_arrays SET \"values\" = zeroblob(28) WHERE name LIKE 'items/%'": "7 values",
    }
    for number, (statement, message) in enumerate(damages.items()):
        file = tmp_path / f"{number}.db"
        shutil.copy(exported / "grid.db", file)
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(statement)
        with pytest.raises(MtdlabError, match=rf"items/sts_test/.*{message}"):
            import_study(file, f"sqlite:///{tmp_path / 'into.db'}")
        with pytest.raises(StorageError, match=message):
            export_study("grid", f"sqlite:///{file}", tmp_path / "out.db")
        assert not (tmp_path / "into.db").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM mtdlab_trials WHERE number = 3",
        "UPDATE mtdlab_trials SET score = score + 5 WHERE number = 3",
        "DELETE FROM mtdlab_scores WHERE task = 'sts_dev'",
        "UPDATE mtdlab_trials SET ended = began - 100 WHERE number = 3",
        "INSERT INTO mtdlab_plans SELECT study, 1, 5, plan, sha256 FROM mtdlab_plans LIMIT 1",
    ],
)
def test_an_export_whose_rows_were_changed_is_refused(
    statement: str, exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each row may hold by itself, and all together; what they were is known by their digest."""
    file, into = tmp_path / "grid.db", f"sqlite:///{tmp_path / 'into.db'}"
    shutil.copy(exported / "grid.db", file)
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("PRAGMA foreign_keys = ON")
        assert database.execute(statement).rowcount > 0
    with pytest.raises(
        MtdlabError, match=r"changed.*its rows are not those that were exported; im"
    ):
        import_study(file, into)
    assert not (tmp_path / "into.db").exists()
    [problem] = examine(f"sqlite:///{file}", tmp_path).database
    assert problem.invariant == "an export has the rows it was written with"
    assert capsys.readouterr().err == ""
    # an export of an earlier version has no digest, and is imported as it is
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DROP TABLE mtdlab_facts")
    assert import_study(file, into) == "grid"
    assert f"{file} has no digest of its rows" in capsys.readouterr().err


def test_an_export_that_is_used_as_a_database_has_no_digest(
    exported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "grid.db"
    shutil.copy(exported / "grid.db", file)
    assert examine(f"sqlite:///{file}", tmp_path).database == ()
    export_study("grid", f"sqlite:///{file}", tmp_path / "again.db")
    assert import_study(tmp_path / "again.db", f"sqlite:///{tmp_path / 'into.db'}") == "grid"
    assert capsys.readouterr().err == ""
    rename_study("grid", "mine", f"sqlite:///{file}", tmp_path)
    assert examine(f"sqlite:///{file}", tmp_path).database == ()
    assert import_study(file, f"sqlite:///{tmp_path / 'into.db'}") == "mine"
    assert "has no digest of its rows" in capsys.readouterr().err


def test_an_import_is_refused_or_takes_another_name(
    two: str, exported: Path, tmp_path: Path
) -> None:
    file = exported / "grid.db"
    before = file.read_bytes()
    with pytest.raises(MtdlabError, match=r"has a study grid already; .* with --name"):
        import_study(file, two)
    assert import_study(file, two, "grid-2") == "grid-2"
    assert names_in(two) == {"grid", "grid-2", "drawn"}
    pd.testing.assert_frame_equal(load_study("grid-2", two).trials, load_study("grid", two).trials)
    assert file.read_bytes() == before
    with pytest.raises(MtdlabError, match=r"holds 2 studies"):
        import_study(exported / "recorded.db", two)
    with pytest.raises(MtdlabError, match=r"'\.\./x': not a name of a study"):
        import_study(file, two, "../x")
    (tmp_path / "text.db").write_text("some text, longer than a header")
    with pytest.raises(MtdlabError, match=r"text\.db is not a SQLite database; import a file of"):
        import_study(tmp_path / "text.db", two)
    with pytest.raises(
        MtdlabError, match=r"gone\.db: no such file; import a file of mtdlab export"
    ):
        import_study(tmp_path / "gone.db", two)


def test_an_export_never_overwrites(two: str, tmp_path: Path) -> None:
    out = tmp_path / "mine.txt"
    out.write_text("mine")
    with pytest.raises(MtdlabError, match=r"mine\.txt exists; choose another file"):
        export_study("grid", two, out)
    assert out.read_text() == "mine"
    with pytest.raises(MtdlabError, match=r"no such file or directory"):
        export_study("grid", two, tmp_path / "missing" / "a.db")
    with pytest.raises(NothingToReport, match=r"no study grit .*did you mean grid"):
        export_study("grit", two, tmp_path / "a.db")
    assert not list(tmp_path.glob(".*writing*"))


def test_a_deleted_study_leaves_no_row_and_no_checkpoint(two: str, tmp_path: Path) -> None:
    models = tmp_path / "models"
    checkpoints = {
        name: models / ".checkpoints" / open_store(two, name).identity() / name
        for name in ("grid", "drawn")
    }
    # that of another database's study of this name
    other = models / ".checkpoints" / "0123456789abcdef" / "grid"
    for folder in (*checkpoints.values(), other):
        (folder / "a-0").mkdir(parents=True)
    kept = load_study("drawn", two)
    delete_study("grid", two, tmp_path / "models")
    assert names_in(two) == {"drawn"}
    assert_equal(load_study("drawn", two), kept)
    assert [folder.exists() for folder in checkpoints.values()] == [False, True]
    assert other.exists()
    kept_records = read_records(two, "drawn")
    with Store(two, 0).database.engine.connect() as connection:
        for table, rows in kept_records.items():
            name = table.__tablename__
            count = connection.exec_driver_sql(f"SELECT count(*) FROM {name}").scalar()
            assert count == len(rows), name
    with pytest.raises(NothingToReport, match=r"no study grid"):
        delete_study("grid", two, tmp_path / "models")


def test_a_renamed_study_keeps_everything(two: str, tmp_path: Path) -> None:
    models = tmp_path / "models"
    (models / "grid").mkdir(parents=True)
    before = load_study("grid", two)
    with pytest.raises(MtdlabError, match=r"has a study drawn already") as refused:
        rename_study("grid", "drawn", two, models)
    # as an import under a name that is taken
    assert refused.value.exit_code == 2
    assert rename_study("grid", "other", two, models) == [models / "other"]
    after = load_study("other", two)
    assert str(after.invocation.without("storage")) == "mtdlab sweep grid.yaml --set study=other"
    pd.testing.assert_frame_equal(after.trials, before.trials)
    ended = before.trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"]).sum()
    assert len(optuna_study("other", two).trials) == ended
    assert names_in(two) == {"other", "drawn"}
    assert after.plans == before.plans


def test_an_imported_study_has_no_folder_until_a_trial_is_claimed(
    exported: Path, tmp_path: Path
) -> None:
    """Those of its name are of the study that was exported, in another database."""
    copy, models = f"sqlite:///{tmp_path / 'copy.db'}", tmp_path / "models"
    (models / ".checkpoints" / "grid" / "a-0").mkdir(parents=True)
    (models / "grid" / "mtdlab").mkdir(parents=True)
    (models / "grid" / "mtdlab" / "run.json").write_text('{"trial": 0}')
    import_study(exported / "grid.db", copy)
    store = open_store(copy, "grid")
    store.record_model(0, platform.node(), str(models / "grid"))
    assert not any(examine(copy, models).studies.values())
    assert rename_study("grid", "copied", copy, models) == []
    assert load_study("copied", copy).model["folder"] == str(models / "grid")
    rename_study("copied", "grid", copy, models)
    assert not delete_study("grid", copy, models)
    assert (models / ".checkpoints" / "grid" / "a-0").exists()
    # a claimed trial of its own, and the model of another study's trial
    import_study(exported / "grid.db", copy)
    store = open_store(copy, "grid")
    store.release(claim_trial(store))
    (models / ".checkpoints" / store.identity() / "grid" / "b-0").mkdir(parents=True)
    renamed = rename_study("grid", "copied", copy, models)
    assert renamed == [models / ".checkpoints" / store.identity() / "copied"]
    assert delete_study("copied", copy, models)
    assert [path.name for path in (models / ".checkpoints").iterdir()] == ["grid"]


def assert_kept(url: str, models: Path) -> None:
    """The study grid can be neither deleted nor renamed."""
    run_by_a_sweep = r"study grid is run by a sweep \(on .*\); stop it"
    with pytest.raises(MtdlabError, match=run_by_a_sweep):
        delete_study("grid", url, models)
    with pytest.raises(MtdlabError, match=run_by_a_sweep):
        rename_study("grid", "other", url, models)


def test_a_study_that_a_sweep_runs_is_neither_deleted_nor_renamed(two: str, tmp_path: Path) -> None:
    store = open_store(two, "grid")
    claim = claim_trial(store)
    assert_kept(two, tmp_path)
    export_study("grid", two, tmp_path / "running.db")
    trials = read_records(f"sqlite:///{tmp_path / 'running.db'}", "grid")[TrialRow]
    [trial] = [
        t for t in trials if (t["configuration"], t["seed"]) == (claim.configuration, claim.seed)
    ]
    assert (trial["state"], trial["owner"]) == ("WAITING", None)


def test_a_sweep_between_two_trials_keeps_its_study(two: str, tmp_path: Path) -> None:
    """No trial is running; its owner on another machine is alive by its heartbeat alone."""
    store = open_store(two, "grid")
    with recorded_sweep(store, StopRequest()):
        assert_kept(two, tmp_path)
    assert store.live_sweeps() == []
    elsewhere = store.begin_sweep({"host": "elsewhere", "pid": 1})
    assert store.live_sweeps() == [{"host": "elsewhere", "pid": 1}]
    with store.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE mtdlab_sweeps SET heartbeat = heartbeat - 700")
    assert store.live_sweeps() == []
    store.continue_sweep(elsewhere)
    assert len(store.live_sweeps()) == 1
    store.end_sweep(elsewhere)
    killed = this_process() | {"started": "0"}
    store.begin_sweep(killed)
    assert rename_study("grid", "other", two, tmp_path) == []
    # the next sweep removes the row that the killed one left
    store.end_sweep(store.begin_sweep(this_process()))
    with store.database.engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM mtdlab_sweeps").scalar() == 0
    delete_study("other", two, tmp_path)
    with pytest.raises(MtdlabError, match=r"the study was deleted while this sweep started"):
        store.begin_sweep(this_process())


def test_a_heartbeat_in_the_future_keeps_no_study(two: str, tmp_path: Path) -> None:
    """The clock was a day ahead when a sweep on another machine was killed."""
    store = open_store(two, "grid")
    elsewhere = {"host": "elsewhere", "pid": 1}
    store.begin_sweep(elsewhere)
    assert store.claim(elsewhere) is not None
    with store.database.engine.begin() as connection:
        for table in ("sweeps", "trials"):
            connection.exec_driver_sql(f"UPDATE mtdlab_{table} SET heartbeat = heartbeat + 86400")
    assert store.live_sweeps() == []
    delete_study("grid", two, tmp_path)


def test_an_export_reads_one_moment_and_locks_nobody(
    two: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial begins and ends after its row was read, before its scores are."""
    store = open_store(two, "grid")
    select, ended = records.select, []

    def end_a_trial() -> None:
        claim = claim_trial(store)
        values, arrays = {"score": 1.0}, {"curve/loss": np.ones(4, np.float32)}
        scores = {"sts_dev": 2.0, "sts_test": 1.0}
        result = Result("COMPLETE", values=values, scores=scores, arrays=arrays)
        assert store.finish(claim, result)
        ended.append(claim)

    def interrupted(*columns: Any) -> Any:
        if columns[0] is ScoreRow and not ended:
            # SQLite commits when it is read: the write itself does not wait
            thread = threading.Thread(target=end_a_trial)
            thread.start()
            thread.join(0.5)
            threads.append(thread)
        return select(*columns)

    threads: list[threading.Thread] = []
    before = load_study("grid", two)
    monkeypatch.setattr(records, "select", interrupted)
    export_study("grid", two, tmp_path / "out.db")
    [thread] = threads
    thread.join(30)
    assert len(ended) == 1
    assert_equal(load_study("grid", str(tmp_path / "out.db")), before)
    assert examine(f"sqlite:///{tmp_path / 'out.db'}", tmp_path / "models").holds
    assert len(load_study("grid", two).scores) == len(before.scores) + 2


def test_a_reader_of_an_export_takes_no_write_lock(
    two: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that writes keeps nobody from exporting, and the other way round."""
    monkeypatch.setattr("mtdlab.store.database.LOCK_TIMEOUT_SECONDS", 0.5)
    with Store(two, 0).database.engine.begin() as writer:
        writer.exec_driver_sql("UPDATE mtdlab_trials SET step = step")
        export_study("grid", two, tmp_path / "out.db")
    assert load_study("grid", str(tmp_path / "out.db")).planned == 8


def test_a_study_that_was_deleted_through_optuna_is_exported_and_stays_what_it_is(
    two: str, exported: Path, tmp_path: Path
) -> None:
    """Optuna's tables have a copy; SQLite gives the id of the deleted one to the imported one."""
    before = load_study("drawn", two)
    optuna.delete_study(study_name="drawn", storage=optuna_storage(two))
    export_study("drawn", two, tmp_path / "a.db")
    assert import_study(exported / "grid.db", two, "third") == "third"
    assert_equal(load_study("drawn", two), before)
    assert_equal(load_study("drawn", str(tmp_path / "a.db")), before)
    assert len(optuna_study("drawn", f"sqlite:///{tmp_path / 'a.db'}").trials) == 2


def test_names_that_differ_in_case_only_are_refused(two: str, exported: Path) -> None:
    """They would share the folders of models where file names ignore case."""
    twin = r"has a study grid, with which Grid would share its folders .*another name"
    with pytest.raises(MtdlabError, match=twin):
        import_study(exported / "drawn.db", two, "Grid")
    with pytest.raises(MtdlabError, match=twin):
        rename_study("drawn", "Grid", two, exported / "models")
    spec = parse_study("Grid", "study: Grid\nsearch: {ema_decay: [0.5]}\n", [])
    with pytest.raises(MtdlabError, match=twin):
        open_study(spec, two)
    assert names_in(two) == {"grid", "drawn"}
    assert rename_study("grid", "Grid", two, exported / "models") == []
    # a study that is there already is resumed
    for _ in range(2):
        open_study(parse_study("other", "study: other\nsearch: {ema_decay: [0.5]}\n", []), two)


def test_a_recorded_plan_is_not_replaced(two: str, exported: Path, tmp_path: Path) -> None:
    record_plan(two, "planned", {"margin": 0.25, "alpha": 0.05}, "sha")
    match = r"has a plan of study planned, which would be lost \(mtdlab delete planned deletes it"
    with pytest.raises(MtdlabError, match=match):
        import_study(exported / "grid.db", two, "planned")
    with pytest.raises(MtdlabError, match=match):
        rename_study("grid", "planned", two, tmp_path)
    assert names_in(two) == {"grid", "drawn"}
    no_trials = r"study planned of .* has a recorded plan and no trials yet; .*mtdlab sweep FILE"
    with pytest.raises(NothingToReport, match=no_trials):
        load_study("planned", two)
    with pytest.raises(NothingToReport, match=no_trials):
        rename_study("planned", "other", two, tmp_path)
    delete_study("planned", two, tmp_path)
    assert rename_study("grid", "planned", two, tmp_path) == []


def test_a_folder_that_cannot_be_renamed_is_named(
    two: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "grid").mkdir()
    refuse = Mock(side_effect=PermissionError(13, "Permission denied"))
    monkeypatch.setattr(Path, "rename", refuse)
    match = r"grid is renamed to new, but .*/grid could not be renamed: permission denied; rename"
    with pytest.raises(MtdlabError, match=match):
        rename_study("grid", "new", two, tmp_path)
    assert names_in(two) == {"new", "drawn"}


def test_a_renamed_folder_of_a_model_is_recorded(two: str, tmp_path: Path) -> None:
    store = open_store(two, "grid")
    (tmp_path / "grid").mkdir()
    store.record_model(3, platform.node(), str(tmp_path / "grid"))
    rename_study("grid", "new", two, tmp_path)
    assert load_study("new", two).model["folder"] == str(tmp_path / "new")
    store.record_model(3, "elsewhere", "/models/new")
    rename_study("new", "newer", two, tmp_path)
    assert load_study("newer", two).model["folder"] == "/models/new"


@pytest.mark.parametrize(
    ("options", "name", "storage", "adapted"),
    [
        ({}, "", "", "mtdlab sweep a.yaml"),
        ({"set": ("study=b",)}, "c", "", "mtdlab sweep a.yaml --set study=c"),
        (
            {"set": ("study=b", "seeds=[0]"), "retry-failed": ()},
            "c",
            "",
            "mtdlab sweep a.yaml --retry-failed --set 'seeds=[0]' --set study=c",
        ),
        ({"storage": ("x.db",)}, "", "sqlite:///mtdlab.db", "mtdlab sweep a.yaml"),
        (
            {"storage": ("x.db",), "jobs": ("2",)},
            "c",
            "postgresql+psycopg://u:secret@h/d",
            "mtdlab sweep a.yaml --jobs 2 --set study=c --storage 'postgresql+psycopg://u:***@h/d'",
        ),
    ],
)
def test_the_command_of_a_renamed_or_imported_study(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, tuple[str, ...]],
    name: str,
    storage: str,
    adapted: str,
) -> None:
    for variable in ("MTDLAB_STORAGE", "OPTUNA_STORAGE"):
        monkeypatch.delenv(variable, raising=False)
    assert str(adapt(Invocation("sweep", ("a.yaml",), options), name, storage)) == adapted
    for other in (Invocation("confirm", ("a",)), NO_INVOCATION):
        assert adapt(other, storage=storage).command == other.command
        assert adapt(other, new_name="c", storage=storage) == NO_INVOCATION


def test_an_imported_study_is_resumed_under_its_name_in_its_database(
    two: str, exported: Path
) -> None:
    import_study(exported / "grid.db", two, "third")
    command = load_study("third", two).command
    assert command.startswith("mtdlab sweep grid.yaml --set study=third --storage ")
    assert "pass-w0rd" not in command


def run(words: list[str], monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["mtdlab", *words])
    with pytest.raises(SystemExit, match=r"\d") as ended:
        main()
    return int(str(ended.value.code))


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    restore(tmp_path / "mtdlab.db")
    assert run(["export-study", "grid", "--out", "g.db"], monkeypatch) == 0
    assert run(["import-study", "g.db"], monkeypatch) == 2
    assert run(["import-study", "g.db", "--name", "again"], monkeypatch) == 0
    assert run(["rename", "again", "third"], monkeypatch) == 0
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert run(["delete", "third"], monkeypatch) == 2
    assert study_names("mtdlab.db") == ["drawn", "grid", "third"]
    (tmp_path / "models" / "third").mkdir(parents=True)
    assert run(["delete", "third", "--yes"], monkeypatch) == 0
    assert study_names("mtdlab.db") == ["drawn", "grid"]
    printed = capsys.readouterr()
    assert "resume it with: mtdlab sweep FILE --set study=third" in printed.out
    assert "kept: models/third" in printed.out
    assert "mtdlab: study third was not deleted" in printed.err


@pytest.mark.parametrize("name", ["..", "{folder}/kept"])
def test_a_name_that_is_a_path_removes_no_folder(tmp_path: Path, name: str) -> None:
    """A database that was changed may have any name."""
    kept, models = tmp_path / "kept", tmp_path / "models"
    (models / ".checkpoints").mkdir(parents=True)
    kept.mkdir()
    database, name = f"sqlite:///{tmp_path / 'a.db'}", name.format(folder=tmp_path)
    record_plan(database, name, {}, "0" * 64)
    delete_study(name, database, models)
    assert kept.is_dir()
    assert models.is_dir()
    assert planned_names(database) == []
