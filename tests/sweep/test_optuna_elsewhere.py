"""What another program does in Optuna's tables while a sweep runs or afterwards."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from stub_sweep import StubSweep

from mtdlab.errors import NothingToReport, StorageError
from mtdlab.manage.doctor import examine
from mtdlab.manage.exchange import delete_study, export_study, rename_study
from mtdlab.store.invariants import Problem
from mtdlab.store.store import record_plan


def make(folder: Path, **options: object) -> StubSweep:
    return StubSweep(folder, configurations=2, seeds=1, steps=40, options=options)


def during(study: StubSweep, jobs: str, act: Callable[[str], None]) -> tuple[int, str]:
    """Act on the database while trials run; the exit code of the sweep, and its output."""
    with study.running("--jobs", jobs, attempts=int(jobs)) as process:
        act(f"sqlite:///{study.database}")
        output, error = process.communicate(timeout=120)
    return process.returncode, output + error


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_study_deleted_through_optuna_loses_nothing(tmp_path: Path, jobs: str) -> None:
    study = make(tmp_path, seconds=0.05)
    code, printed = during(
        study, jobs, lambda url: optuna.delete_study(study_name="stubs", storage=url)
    )
    assert (code, "Traceback" in printed) == (0, False)
    [problem] = disagreements(study)
    assert problem.repair.endswith("which writes it again")
    study.run("--jobs", jobs)
    study.assert_complete()


def tell(url: str) -> None:
    """Record a trial of another program."""
    study = optuna.load_study(study_name="stubs", storage=url)
    study.tell(study.ask(), 7.0)


@pytest.mark.slow
def test_a_trial_of_another_program_is_replaced_by_ours(tmp_path: Path) -> None:
    """It has the number of the trial that runs."""
    study = make(tmp_path, seconds=0.02)
    code, printed = during(study, "1", tell)
    assert (code, "Traceback" in printed) == (0, False)
    assert disagreements(study) == []
    tell(f"sqlite:///{study.database}")
    [problem] = disagreements(study)
    assert problem.found == "trial 2 is COMPLETE in Optuna's tables and not planned"
    assert "Optuna's tables had another end of 1 of its trials; mtdlab's record" in study.run()
    assert disagreements(study) == []
    study.assert_complete()


def disagreements(study: StubSweep) -> list[Problem]:
    """Of the two records."""
    found = examine(f"sqlite:///{study.database}", study.folder / "models", "stubs")
    return [problem for problem in found.studies["stubs"] if "Optuna" in problem.invariant]


def snapshot(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return "\n".join(connection.iterdump())


@pytest.mark.slow
@pytest.mark.parametrize(("direction", "trials"), [("minimize", 3), ("maximize", 0)])
def test_a_study_of_another_program_is_not_taken_over(
    tmp_path: Path, direction: str, trials: int
) -> None:
    study = make(tmp_path)
    url = f"sqlite:///{study.database}"
    optuna.create_study(study_name="stubs", storage=url, direction=direction).optimize(
        lambda trial: trial.suggest_float("x", 0, 1), n_trials=trials
    )
    before = snapshot(study.database)
    printed = study.run(code=4)
    assert "has a study stubs in Optuna's tables that mtdlab did not write" in printed
    with pytest.raises(StorageError, match=r"optuna delete-study --study-name stubs$"):
        record_plan(url, "stubs", {}, "0" * 64)
    assert snapshot(study.database) == before


def test_what_mtdlab_did_not_record_is_neither_deleted_nor_renamed(tmp_path: Path) -> None:
    study = make(tmp_path)
    study.run()
    url, models = f"sqlite:///{study.database}", study.folder / "models"
    optuna.create_study(study_name="other", storage=url)
    for act in (
        lambda: delete_study("other", url, models),
        lambda: rename_study("other", "new", url, models),
        lambda: export_study("other", url, tmp_path / "out.db"),
    ):
        with pytest.raises(NothingToReport, match=r"study other of .* is in Optuna's tables alone"):
            act()
    # another program's takes the place of the copy
    optuna.delete_study(study_name="stubs", storage=url)
    theirs = optuna.create_study(study_name="stubs", storage=url)
    theirs.tell(theirs.ask(), 7.0)
    [problem] = disagreements(study)
    assert problem.found == "Optuna's tables have a study of this name that mtdlab did not write"
    assert "stubs in Optuna's tables that mtdlab did not write" in study.run(code=4)
    rename_study("stubs", "new", url, models)
    delete_study("new", url, models)
    assert theirs.trials[0].value == 7.0
    assert set(optuna.get_all_study_names(url)) == {"other", "stubs"}


@pytest.mark.slow
def test_the_direction_of_a_copy_is_repaired(tmp_path: Path) -> None:
    """TPE would minimise the score."""
    study = make(tmp_path)
    study.run()
    with closing(sqlite3.connect(study.database)) as connection, connection:
        connection.execute("UPDATE study_directions SET direction = 'MINIMIZE'")
    study.run()
    assert disagreements(study) == []
    copy = optuna.load_study(study_name="stubs", storage=f"sqlite:///{study.database}")
    assert copy.direction == optuna.study.StudyDirection.MAXIMIZE


def test_trials_that_were_deleted_by_hand_are_written_again(tmp_path: Path) -> None:
    """Their parameters and values are left, under ids that SQLite gives again."""
    study = make(tmp_path)
    study.run()
    with closing(sqlite3.connect(study.database)) as connection, connection:
        connection.execute("DELETE FROM trials")
    study.run()
    study.assert_complete()
    assert disagreements(study) == []
