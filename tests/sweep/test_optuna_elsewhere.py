"""What another program does in Optuna's tables while a sweep runs or afterwards."""

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from stub_sweep import StubSweep, ended_at_last

from mtdlab.store.invariants import Problem
from mtdlab.sweep.doctor import examine


def make(folder: Path, **options: object) -> StubSweep:
    return StubSweep(folder, configurations=2, seeds=1, steps=40, options=options)


def during(study: StubSweep, jobs: str, act: Callable[[str], None]) -> tuple[int, str]:
    """Act on the database while trials run; the exit code of the sweep, and its output."""
    process = study.start("--jobs", jobs)
    with ended_at_last(process):
        assert study.wait_until(lambda: len(study.attempts()) == int(jobs), process, 120)
        act(f"sqlite:///{study.database}")
        output, error = process.communicate(timeout=120)
    return process.returncode, output + error


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_study_deleted_through_optuna_ends_its_sweep_in_a_sentence(
    tmp_path: Path, jobs: str
) -> None:
    study = make(tmp_path, seconds=0.05)
    code, printed = during(
        study, jobs, lambda url: optuna.delete_study(study_name="stubs", storage=url)
    )
    assert "Traceback" not in printed
    assert code == 2
    assert (
        "mtdlab: study stubs was deleted through Optuna while this sweep ran; rerun it, which "
        "begins the study again\n" in printed
    )
    study.set_options({})
    study.run("--jobs", jobs)
    study.assert_complete()


def tell(url: str) -> None:
    """End the running trial with another value."""
    study = optuna.load_study(study_name="stubs", storage=url)
    study.tell(study.get_trials(states=[optuna.trial.TrialState.RUNNING])[0].number, 7.0)


def test_a_value_told_to_optuna_is_replaced_by_ours(tmp_path: Path) -> None:
    study = make(tmp_path, seconds=0.02)
    code, printed = during(study, "1", tell)
    assert (code, "Traceback" in printed) == (0, False)
    [problem] = disagreements(study)
    assert "in Optuna 7.0" in problem.found
    assert "rerun mtdlab sweep on its file, which writes mtdlab's record over" in problem.repair
    assert "Optuna's tables had another end of 1 of its trials; mtdlab's record" in study.run()
    assert disagreements(study) == []
    study.assert_complete()


def disagreements(study: StubSweep) -> list[Problem]:
    """Of the two records."""
    found = examine(f"sqlite:///{study.database}", study.folder / "models", "stubs")
    return [each for each in found.studies["stubs"] if "Optuna" in each.invariant]
