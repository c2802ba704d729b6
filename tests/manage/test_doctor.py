"""`mtdlab doctor`: a healthy study passes, and each invariant has a test that breaks it."""

import json
import re
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stub_store import end_trial

from mtdlab.cli import main
from mtdlab.config.reader import read_study
from mtdlab.errors import NothingToReport, StorageError
from mtdlab.manage.doctor import Examination, examine
from mtdlab.store.claims import Result
from mtdlab.store.owner import this_process
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.run import Execution, sweep
from mtdlab.trial import trainer
from mtdlab.trial.worker import open_in_process

STUDY = """\
study: a
trainer: {steps: 4}
search: {ema_decay: [0.5, 0.75]}
seeds: [0, 1]
"""


TRAINED = Result(
    "COMPLETE",
    values={"score": 31.0, "wall_seconds": 0.1},
    scores={"sts_dev": 30.0, "sts_test": 31.0},
    arrays={"curve/loss": np.ones(4, np.float32)},
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study: two trials are complete, one has failed, one waits; a saved model."""
    folder = tmp_path_factory.mktemp("healthy")
    make_study(folder, f"sqlite:///{folder / 'a.db'}")
    return folder


def make_study(folder: Path, url: str) -> None:
    """Write the study to a database, and its model to a folder."""
    (folder / "a.yaml").write_text(STUDY)
    spec = read_study(folder / "a.yaml")
    store = open_study(spec, url)
    for score in (40.0, 41.0):
        scores = {"sts_dev": score, "sts_test": score + 1}
        end_trial(store, replace(TRAINED, values={"score": score + 1}, scores=scores))
    end_trial(store, Result("FAIL"))
    save_model(folder / "models" / "a", "a", 1)


def save_model(folder: Path, study: str, trial: int, **others: object) -> None:
    """Write what the folder of a model says of the run of one of the first two trials."""
    run = {"study": study, "trial": trial, "seed": 0, "scores": {"sts_dev": 40.0 + trial}}
    (folder / "mtdlab").mkdir(parents=True, exist_ok=True)
    (folder / "mtdlab" / "run.json").write_text(json.dumps(run | others))


@pytest.fixture
def healthy(finished: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(finished, tmp_path / "study"))


def check(folder: Path, study: str | None = "a") -> Examination:
    return examine(f"sqlite:///{folder / 'a.db'}", folder / "models", study)


def snapshot(folder: Path) -> dict[Path, tuple[int, bytes]]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


@pytest.mark.parametrize("study", ["a", None])
def test_a_healthy_study_has_no_problem_and_nothing_is_changed(
    healthy: Path, study: str | None
) -> None:
    before = snapshot(healthy)
    found = check(healthy, study)
    assert found.holds
    assert (found.database, found.studies) == ((), {"a": ()})
    assert snapshot(healthy) == before


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / "a.db")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


DEAD = json.dumps({**this_process(), "started": "0"})
ELSEWHERE = json.dumps({**this_process(), "boot": "another"})
TRIALS = "UPDATE mtdlab_trials SET"
OPTUNAS_OWN = "INSERT INTO trials (number, study_id, state) SELECT 9, study_id, '{}' FROM studies"
RERUN = "rerun mtdlab sweep"
RESTORE = "restore the database"
BROKEN: dict[str, tuple[str, ...]] = {
    "each configuration and seed is planned once": (
        RESTORE,
        r"\{\"ema_decay\": 0.5\} with seed 0 is planned 2 times",
        f"{TRIALS} parameters = '{{\"ema_decay\": 0.5}}'",
    ),
    "every running trial has a living owner": (
        RERUN,
        r"is running, and its owner, process \d+ on .*, has ended",
        f"{TRIALS} state = 'RUNNING', owner = '{DEAD}', heartbeat = 1 WHERE state = 'WAITING'",
    ),
    "running without an owner": (
        RERUN,
        "is running and has no owner",
        f"{TRIALS} state = 'RUNNING' WHERE state = 'WAITING'",
    ),
    "an owner of a waiting trial": (
        RERUN,
        "is WAITING and has an owner",
        f"{TRIALS} owner = '{DEAD}' WHERE state = 'WAITING'",
    ),
    "every trial has a known state": (
        RESTORE,
        "is DONE",
        f"{TRIALS} state = 'DONE' WHERE state = 'WAITING'",
    ),
    "ended without having begun": (
        RESTORE,
        "is FAIL and never began",
        f"{TRIALS} state = 'FAIL' WHERE state = 'WAITING'",
    ),
    "every complete trial has its results": (
        "run its study again",
        r"\(trial 0\) is complete without score, ranking score, training curve",
        f"{TRIALS} score = NULL WHERE number = 0",
        "DELETE FROM mtdlab_scores WHERE task = 'sts_dev' AND score = 40",
        "DELETE FROM mtdlab_arrays WHERE trial_id = 1",
    ),
    "mtdlab's and Optuna's tables agree": (
        RERUN,
        r"\(trial 0\) is COMPLETE, in Optuna RUNNING",
        "UPDATE trials SET state = 'RUNNING' WHERE number = 0",
    ),
    "another value in Optuna": (
        f"{RERUN} on its file, which writes mtdlab's record over Optuna's",
        r"\(trial 0\) has the value 40.0, in Optuna 7.0",
        "UPDATE trial_values SET value = 7 WHERE value = 40",
    ),
    "another number in Optuna": (
        RERUN,
        r"\(trial 0\) is missing in Optuna's tables",
        "UPDATE trials SET number = 9 WHERE number = 0",
    ),
    "missing in Optuna": (
        RERUN,
        r"\(trial 0\) is missing in Optuna's tables",
        "DELETE FROM trial_values WHERE trial_id = 1",
        "DELETE FROM trials WHERE number = 0",
    ),
    "deleted through Optuna": (
        f"{RERUN} on its file, which writes it again",
        "Optuna's tables have no such study; it was deleted through Optuna",
        "UPDATE studies SET study_name = 'b'",
    ),
    "Optuna has no trials of its own": (
        RERUN,
        "trial 9 is RUNNING in Optuna's tables and not planned",
        OPTUNAS_OWN.format("RUNNING"),
    ),
    "Optuna has a finished trial of its own": (
        RERUN,
        "trial 9 is COMPLETE in Optuna's tables and not planned",
        OPTUNAS_OWN.format("COMPLETE"),
    ),
    "a waiting trial has ended in Optuna": (
        RERUN,
        "is WAITING, in Optuna COMPLETE",
        OPTUNAS_OWN.format("COMPLETE"),
        f"{TRIALS} number = 9 WHERE state = 'WAITING'",
    ),
    "another state in Optuna": (
        RERUN,
        r"\(trial 0\) is COMPLETE, in Optuna FAIL",
        "UPDATE trials SET state = 'FAIL' WHERE number = 0",
    ),
    "a clock that was set back": (
        RERUN,
        r"is running, and its last heartbeat is 1,4\d\d min ahead of the database's clock",
        f"{TRIALS} state = 'RUNNING', owner = '{ELSEWHERE}', "
        "heartbeat = strftime('%s', 'now') + 86400 WHERE state = 'WAITING'",
    ),
    "every row belongs to something": (
        RESTORE,
        "1 rows of mtdlab_scores without mtdlab_trials",
        "INSERT INTO mtdlab_scores (trial_id, task, score) VALUES (99, 'sts_dev', 1)",
    ),
}
"""What is repaired how, and found, after these statements."""


ALIKE = (
    *("another number in Optuna", "missing in Optuna", "another state in Optuna"),
    *("Optuna has a finished trial of its own", "a waiting trial has ended in Optuna"),
    "mtdlab's and Optuna's tables agree",
)
"""Differences from Optuna's copy that others stand for in the quick tests."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in BROKEN],
)
def test_a_broken_record_is_found_and_repaired_as_proposed(
    healthy: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    repair, found, *statements = BROKEN[name]
    change(healthy, *statements)
    before = snapshot(healthy)
    examined = check(healthy)
    assert not examined.holds
    problems = [*examined.database, *examined.studies["a"]]
    matching = [problem for problem in problems if matches(found, problem.found)]
    assert matching, problems
    assert repair in matching[0].repair
    assert snapshot(healthy) == before
    if repair.startswith(RERUN):
        monkeypatch.chdir(healthy)
        monkeypatch.setattr("mtdlab.trial.trainer.check_inputs", lambda *_, **__: {})
        monkeypatch.setattr(trainer, "train_trial", lambda *_: (TRAINED, None))
        sweep(read_study(healthy / "a.yaml"), f"sqlite:///{healthy / 'a.db'}", Execution(jobs=1))
        open_in_process.cache_clear()
        assert [problem.found for problem in check(healthy).studies["a"]] == []


def matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def leave_temporary(models: Path) -> None:
    (models / ".a.building-x1y2").mkdir()


def leave_checkpoint(models: Path) -> None:
    trial = models / ".checkpoints" / "a" / "0123456789abcdef-0"
    (trial / "step-0000000001").mkdir(parents=True)


def complete_none(models: Path) -> None:
    change(
        models.parent,
        f"{TRIALS} state = 'FAIL' WHERE state = 'COMPLETE'",
        "UPDATE trials SET state = 'FAIL' WHERE state = 'COMPLETE'",
    )


@pytest.mark.parametrize("name", ["x" * 10_000, "../../elsewhere"])
def test_a_name_that_no_study_can_have_is_a_problem_and_no_path(healthy: Path, name: str) -> None:
    change(healthy, f"UPDATE mtdlab_studies SET name = '{name}'")
    assert any("name" in problem.found for problem in check(healthy, None).studies[name])


def test_a_model_kept_elsewhere_is_no_problem(healthy: Path) -> None:
    shutil.rmtree(healthy / "models" / "a")
    assert check(healthy).holds


@pytest.mark.parametrize(
    ("change_models", "found", "repair"),
    [
        (
            lambda models: (models / "a" / "mtdlab" / "run.json").unlink(),
            r"models/a holds no model of trial 1, or a damaged one",
            "move .*models/a",
        ),
        (
            lambda models: save_model(models / "a", "a", 0),
            "models/a holds trial 0, the best is trial 1",
            "note of trial 1",
        ),
        *(
            (
                lambda models, other=other: save_model(models / "a", "a", 1, **other),
                "models/a holds a model whose seed and scores are not those of trial 1: it is of a",
                "move .*models/a away; mtdlab reproduce a 1",
            )
            for other in ({"seed": 3}, {"scores": {"sts_dev": 40.5}}, {"scores": {}})
        ),
        (complete_none, "models/a is there, but no trial is complete", "move .*models/a away"),
        (leave_checkpoint, "0123456789abcdef-0 holds checkpoints of a trial that has", "rerun"),
        (leave_temporary, r"\.a\.building-x1y2 was left by a process", r"rm -r .*building-x1y2"),
    ],
)
def test_what_is_left_over_is_found(
    healthy: Path, change_models: Callable[[Path], None], found: str, repair: str
) -> None:
    change_models(healthy / "models")
    [problem] = check(healthy).studies["a"]
    assert matches(found, problem.found)
    assert matches(repair, problem.repair)


def test_checkpoints_of_a_waiting_trial_and_files_of_a_running_one_are_no_problem(
    healthy: Path,
) -> None:
    with closing(sqlite3.connect(healthy / "a.db")) as connection:
        query = "SELECT configuration, seed FROM mtdlab_trials WHERE state = 'WAITING'"
        configuration, seed = connection.execute(query).fetchone()
    (healthy / "models" / ".checkpoints" / "a" / f"{configuration}-{seed}").mkdir(parents=True)
    owner = json.dumps(this_process())
    change(healthy, f"{TRIALS} state = 'RUNNING', owner = '{owner}' WHERE state = 'WAITING'")
    leave_temporary(healthy / "models")
    assert check(healthy).holds


def test_a_damaged_page_is_found(healthy: Path) -> None:
    path = healthy / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        [page] = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'ix_mtdlab_trials_state'"
        ).fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size + 8 : page * size] = b"\xff" * (size - 8)
    path.write_bytes(content)
    found = check(healthy)
    assert not found.holds
    assert any("PRAGMA quick_check: " in problem.found for problem in found.database)


def test_a_study_or_database_that_is_not_there(tmp_path: Path, healthy: Path) -> None:
    with pytest.raises(NothingToReport, match=r"no study b in .*; did you mean a|choose from a"):
        check(healthy, "b")
    with pytest.raises(StorageError, match="no database at"):
        check(tmp_path)
    found = check(tmp_path, None)
    assert (found.holds, found.studies) == (True, {})
    assert not (tmp_path / "a.db").exists()


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str]:
    monkeypatch.setattr(sys, "argv", ["mtdlab", "doctor", *arguments])
    with pytest.raises(SystemExit, match=r"^\w*$") as ended:
        main()
    return int(ended.value.code or 0), capsys.readouterr().out


def test_the_command_prints_problems_and_the_machine(
    healthy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(healthy)
    code, text = run(monkeypatch, capsys, "a", "--storage", "a.db")
    assert code == 0
    assert "sqlite:///a.db: 0 problems\nstudy a: 0 problems\nPython 3." in text
    assert "free disk: models " in text
    save_model(healthy / "models" / "a", "a", 0)
    code, text = run(monkeypatch, capsys, "--storage", "a.db")
    assert code == 6
    assert (
        "study a: 1 problem\n  models/a holds trial 0, the best is trial 1\n    expected: " in text
    )
    code, text = run(monkeypatch, capsys, "--storage", "a.db", "--json")
    fields = json.loads(text)
    assert (code, fields["holds"]) == (6, False)
    assert fields["studies"]["a"][0].keys() == {"invariant", "found", "repair"}
    assert {"python", "versions", "device", "threads", "disk"} <= fields["machine"].keys()
