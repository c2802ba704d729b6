"""The end of a sweep: best trial, model, failures with reasons, the next command."""

import json
import platform
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.runs import mtd_value
from mtdlab.commands.sweep_summary import summary_fields, summary_lines
from mtdlab.store.ranking import FinishedTrial, SavedModel
from mtdlab.sweep.run import SweepResult
from tests.commands.conftest import Command, Recorded

SWEEP = Invocation("sweep", ("a.yaml",))
COMMAND = str(SWEEP)
BEST = FinishedTrial(7, 3, {"ema_decay": 0.9}, "COMPLETE", "", 14.000000000000002, 51.25, 55.5)
FAILED = [FinishedTrial(number, 0, {}, "FAIL", "oom: out of memory") for number in range(12)]
RESULT = SweepResult(
    name="a",
    description="",
    metric="sts_test",
    select_by="sts_dev",
    counts={"COMPLETE": 8},
    begun=8,
    best=BEST,
    last=None,
    model=None,
    reason_codes=frozenset(),
    storage="sqlite:///mtdlab.db",
    ran=8,
    seconds=65.04,
    exit_code=0,
)


@pytest.fixture(autouse=True)
def recorded_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trials of these results are in no database."""
    monkeypatch.setattr("mtdlab.store.recorded.is_recorded", lambda *_: True)


def saved_model(models: Path, trial: int) -> None:
    (models / "a" / "mtdlab").mkdir(parents=True)
    (models / "a" / "mtdlab" / "run.json").write_text(json.dumps({"trial": trial}))


def test_a_complete_sweep_names_the_best_trial_its_model_and_the_report(tmp_path: Path) -> None:
    saved_model(tmp_path, 7)
    assert summary_lines(RESULT, tmp_path, SWEEP) == [
        "study a in sqlite:///mtdlab.db: complete, 8 of 8 trials done; 8 run now in 65 s",
        "best trial by sts_dev: 7 (MTD 14), sts_dev 55.50, sts_test 51.25",
        f"model: {tmp_path / 'a'}",
        "next: mtdlab report --study a",
    ]
    fields = summary_fields(RESULT, tmp_path, SWEEP)
    best = fields["best"]
    assert (best["trial"], best["select_by_score"], best["score"]) == (7, 55.5, 51.25)
    assert (best["seed"], best["parameters"]) == (3, {"ema_decay": 0.9})
    assert json.dumps(best["mtd"]) == "14"
    assert (fields["model"], fields["failures"]) == (str(tmp_path / "a"), [])
    assert json.loads(json.dumps(fields)) == fields


def test_another_trials_model_is_not_named(tmp_path: Path) -> None:
    saved_model(tmp_path, 3)
    assert summary_fields(RESULT, tmp_path, SWEEP)["model"] is None
    [line] = [line for line in summary_lines(RESULT, tmp_path, SWEEP) if line.startswith("model")]
    absent = "another machine has it, or it could not be saved"
    assert line == f"model: not in {tmp_path / 'a'}: {absent}"
    saved = replace(RESULT, model=SavedModel(7, platform.node(), str(tmp_path / "a")))
    lines = summary_lines(saved, tmp_path, SWEEP)
    assert f"model: no longer in {tmp_path / 'a'}, where it was saved" in lines


def test_failures_are_listed_by_reason_with_the_command_that_retries(tmp_path: Path) -> None:
    other = replace(FAILED[0], number=30, reason="the loss is nan at step 3")
    counts = {"COMPLETE": 8, "FAIL": 13}
    failed = {"failures": (*FAILED, other), "reason_codes": {"oom", "nan_loss"}}
    result = replace(RESULT, counts=counts, **failed, exit_code=3)
    lines = summary_lines(result, tmp_path, SWEEP)
    assert lines[0].startswith("study a in sqlite:///mtdlab.db: 8 of 21 trials done (13 fail)")
    listed = "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    assert f"failed: trials {listed}: oom: out of memory" in lines
    assert "failed: trial 30: the loss is nan at step 3" in lines
    assert lines[-2:] == [
        "next: mtdlab sweep a.yaml --retry-failed",
        "next: mtdlab report --study a",
    ]
    fields = summary_fields(result, tmp_path, SWEEP)
    assert len(fields["failures"]) == 13
    assert fields["failures"][-1]["reason"] == "the loss is nan at step 3"
    none_done = replace(result, best=None)
    assert summary_fields(none_done, tmp_path, SWEEP)["next"] == [f"{COMMAND} --retry-failed"]
    come_again = replace(none_done, reason_codes={"nan_loss"})
    assert summary_fields(come_again, tmp_path, SWEEP)["next"] == ["mtdlab report --study a"]
    own = SWEEP.giving("import", "own.py")
    mended = f"{own} --retry-failed --changed-code"
    assert summary_fields(come_again, tmp_path, own)["next"] == [mended]


def test_the_last_lines_of_a_sweep_with_failed_runs(
    command: Command, recorded: Recorded, tmp_path: Path
) -> None:
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(recorded.values))
    # it records its command, and other tests read that of the session's database
    storage = shutil.copy(recorded.storage, tmp_path / "copy.db")
    best, places = recorded.result.best, f"--storage {storage} --models {recorded.models}"
    assert best is not None
    first, *lines = command(f"sweep tiny.yaml {places}", code=3).stdout.splitlines()
    done = f"study tiny in sqlite:///{storage}: 2 of 4 trials done (2 fail); 0 run now in"
    assert re.fullmatch(rf"{re.escape(done)} [\d.]+ s", first)
    assert lines == [
        f"best trial by sts_dev: {best.number} (MTD 6), sts_dev {best.ranking:.2f}, "
        f"sts_test {best.score:.2f}",
        f"model: {recorded.models / 'tiny'}",
        "failed: trials 1, 3: the loss is nan at step 2",
        f"next: mtdlab report --study tiny --storage sqlite:///{storage}",
    ]


def test_an_interrupted_sweep_names_the_command_that_resumes(tmp_path: Path) -> None:
    result = replace(RESULT, counts={"COMPLETE": 2, "WAITING": 6}, exit_code=130)
    assert summary_lines(result, tmp_path, SWEEP)[-1] == f"next: {COMMAND}"


def test_another_database_is_part_of_the_next_command(tmp_path: Path) -> None:
    result = replace(RESULT, storage="sqlite:///other.db")
    line = summary_lines(result, tmp_path, SWEEP)[-1]
    assert line == "next: mtdlab report --study a --storage sqlite:///other.db"


def test_an_mtd_is_printed_without_the_last_bits() -> None:
    values = (None, 14.000000000000002, 26 / 3, 44 / 3)
    assert [mtd_value(value) for value in values] == [None, 14, 8.667, 14.667]
