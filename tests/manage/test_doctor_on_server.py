"""`mtdlab doctor` on PostgreSQL: the same invariants, read over a connection that cannot write."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_postgresql.executors import PostgreSQLExecutor
from sqlalchemy import create_engine, text

from mtdlab.errors import NothingToReport
from mtdlab.manage.doctor import Examination, examine
from mtdlab.store.claims import Result
from mtdlab.store.store import Store
from mtdlab.trial.results import save_result
from tests.manage.test_doctor import BROKEN, make_study, matches, save_model
from tests.postgresql import janitor, url_of


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


def execute(url: str, statement: str) -> Any:
    """The first value that a statement finds, if it reads."""
    engine = create_engine(url)
    with engine.begin() as connection:
        found = connection.execute(text(statement.replace(":", "\\:")))
        value = found.scalar() if found.returns_rows else None
    engine.dispose()
    return value


def check(study: tuple[str, Path]) -> Examination:
    url, models = study
    return examine(url, models, "a")


@pytest.mark.slow
def test_a_healthy_study_on_a_server_has_no_problem(study: tuple[str, Path]) -> None:
    found = check(study)
    assert (found.holds, found.database, found.studies) == (True, (), {"a": ()})
    assert "pass-w0rd" not in found.storage
    assert set(found.machine["disk"]) == {"models"}
    with pytest.raises(NothingToReport, match=r"no study b in .*\*\*\*@127"):
        examine(study[0], study[1], "b")
    # a model that is kept on another machine, and a result that is kept until it is recorded
    shutil.rmtree(study[1] / "a")
    waiting = "SELECT configuration FROM mtdlab_trials WHERE state = 'WAITING'"
    configuration = execute(study[0], waiting)
    save_result(study[1] / ".checkpoints" / "a" / f"{configuration}-1", Result("COMPLETE"), "{}")
    Store(study[0], 1).record_model(1, "gpu-7", "/models/a")
    found = check(study)
    assert found.holds
    elsewhere, result = found.notes["a"]
    assert elsewhere == "the model of trial 1 is on host gpu-7 in folder /models/a"
    assert matches(f"{configuration}-1/result holds the result of a trial, which the next", result)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("every running trial has a living owner", marks=pytest.mark.slow),
        "every complete trial has its results",
        "mtdlab's and Optuna's tables agree",
        "deleted through Optuna",
        "Optuna has no trials of its own",
    ],
)
def test_a_broken_record_on_a_server_is_found(study: tuple[str, Path], name: str) -> None:
    _, found, *statements = BROKEN[name]
    for statement in statements:
        execute(study[0], statement)
    examined = check(study)
    assert not examined.holds
    assert any(matches(found, problem.found) for problem in examined.studies["a"]), examined.studies


def test_what_is_left_over_beside_a_study_on_a_server_is_found(study: tuple[str, Path]) -> None:
    save_model(study[1] / "a", "a", 0)
    save_result(study[1] / ".checkpoints" / "a" / "other-0", Result("COMPLETE"), "{}")
    wrong, left = check(study).studies["a"]
    assert matches("models/a holds trial 0, the best is trial 1", wrong.found)
    assert matches("other-0 holds checkpoints of a trial that has ended", left.found)
