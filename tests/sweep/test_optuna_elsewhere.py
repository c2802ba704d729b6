"""What another program does in Optuna's tables while a sweep runs or afterwards."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from stub_sweep import StubSweep

from mtdlab.store.invariants import Problem
from mtdlab.sweep.doctor import examine


def make(folder: Path, **options: object) -> StubSweep:
    return StubSweep(folder, configurations=2, seeds=1, steps=40, options=options)


def during(study: StubSweep, jobs: str, act: Callable[[str], None]) -> tuple[int, str]:
    """Act on the database while trials run; the exit code of the sweep, and its output."""
    with study.running("--jobs", jobs, attempts=int(jobs)) as process:
        act(f"sqlite:///{study.database}")
        output, error = process.communicate(timeout=120)
    return process.returncode, output + error


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
    return [each for each in found.studies["stubs"] if "Optuna" in each.invariant]
