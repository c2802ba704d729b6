"""`mtdlab doctor` on PostgreSQL: the same invariants, read over a connection that cannot write."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_postgresql.executors import PostgreSQLExecutor
from sqlalchemy import create_engine, text

from mtdlab.errors import NothingToReport
from mtdlab.store import Result, Store
from mtdlab.sweep.doctor import Examination, examine
from mtdlab.sweep.spool import save_result
from tests.postgresql import janitor, url_of
from tests.sweep.test_doctor import DEAD, TRIALS, make_study, matches, save_model


@pytest.fixture(scope="module")
def finished(
    postgresql_server: PostgreSQLExecutor,
    postgresql_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Path]]:
    """A database to copy, with a study of which two trials are complete, and its folder."""
    folder = tmp_path_factory.mktemp("on-server")
    with janitor(postgresql_server, "doctor", postgresql_template):
        make_study(folder, url_of(postgresql_server, "doctor"))
        yield "doctor", folder


@pytest.fixture
def study(
    postgresql_server: PostgreSQLExecutor, finished: tuple[str, Path], tmp_path: Path
) -> Iterator[tuple[str, Path]]:
    """A copy to break: the URL of the database, and the folder of models."""
    template, folder = finished
    shutil.copytree(folder / "models", tmp_path / "models")
    with janitor(postgresql_server, "doctor_copy", template):
        yield url_of(postgresql_server, "doctor_copy"), tmp_path / "models"


def change(url: str, statement: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(statement.replace(":", "\\:")))
    engine.dispose()


def check(study: tuple[str, Path]) -> Examination:
    url, models = study
    return examine(url, models, "a")


def test_a_healthy_study_on_a_server_has_no_problem(study: tuple[str, Path]) -> None:
    found = check(study)
    assert (found.holds, found.database, found.studies) == (True, (), {"a": ()})
    assert "pass-w0rd" not in found.storage
    assert set(found.machine["disk"]) == {"models"}
    with pytest.raises(NothingToReport, match=r"no study b in .*\*\*\*@127"):
        examine(study[0], study[1], "b")
    # a model that is kept on another machine, and a result that is kept until it is recorded
    shutil.rmtree(study[1] / "a")
    [setting] = {row[0] for row in rows(study[0])}
    save_result(study[1] / ".checkpoints" / "a" / f"{setting}-1", Result("COMPLETE"), "{}")
    Store(study[0], 1).record_model(1, "gpu-7", "/models/a")
    found = check(study)
    assert found.holds
    elsewhere, result = found.notes["a"]
    assert elsewhere == "the model of trial 1 is on host gpu-7 in folder /models/a"
    assert matches(f"{setting}-1/result holds the result of a trial, which the next", result)


def rows(url: str) -> list[tuple[str]]:
    """The configuration of the trial that waits."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(
            text("SELECT setting FROM mtdlab_trials WHERE state = 'WAITING'")
        ).all()
    engine.dispose()
    return [(row[0],) for row in found]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            f"{TRIALS} state = 'RUNNING', owner = '{DEAD}', heartbeat = 1 WHERE state = 'WAITING'",
            r"is running, and its owner, process \d+ on .*, has ended",
        ),
        (f"{TRIALS} score = NULL WHERE number = 0", r"\(trial 0\) is complete without score"),
        (
            "UPDATE trials SET state = 'RUNNING' WHERE number = 0",
            r"\(trial 0\) is COMPLETE, in Optuna RUNNING",
        ),
        ("UPDATE studies SET study_name = 'b'", "it was deleted through Optuna"),
        (
            "INSERT INTO trials (number, study_id, state) "
            "SELECT 9, study_id, 'RUNNING' FROM studies",
            "trial 9 is RUNNING in Optuna's tables and not planned",
        ),
    ],
)
def test_a_broken_record_on_a_server_is_found(
    study: tuple[str, Path], statement: str, found: str
) -> None:
    change(study[0], statement)
    examined = check(study)
    assert not examined.holds
    assert any(matches(found, each.found) for each in examined.studies["a"]), examined.studies


def test_what_is_left_over_beside_a_study_on_a_server_is_found(study: tuple[str, Path]) -> None:
    save_model(study[1] / "a", "a", 0)
    save_result(study[1] / ".checkpoints" / "a" / "other-0", Result("COMPLETE"), "{}")
    wrong, left = check(study).studies["a"]
    assert matches("models/a holds trial 0, the best is trial 1", wrong.found)
    assert matches("other-0 holds checkpoints of a trial that has ended", left.found)
