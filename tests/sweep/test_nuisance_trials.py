"""A sweep chooses the values of nuisance settings, once, before what is compared begins."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mtdlab import load_study
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.warnings import list_warnings
from mtdlab.cli import main
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.manage.doctor import examine
from mtdlab.manage.exchange import export_study, import_study
from mtdlab.settings import TrainerSettings
from mtdlab.store.exchange import read_records
from mtdlab.store.store import Store
from mtdlab.store.tables import TrialRow
from mtdlab.sweep import run
from mtdlab.trial import worker
from tests.conftest import Written
from tests.sweep.conftest import Scored
from tests.tiny_studies import Killed

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
STUDY = """
study: a
trainer: {steps: 40}
search: {ema_decay: [0.5, 0.75]}
baseline: {method: simcse}
seeds: [0, 1]
nuisance: {learning_rate: [0.001, 0.002, 0.004], seeds: [8, 9]}
"""
BEST = {("mocose", 0.5): 0.001, ("mocose", 0.75): 0.004, ("simcse", None): 0.002}
ONE = run.Execution(jobs=1)


def key_of(settings: Any) -> tuple[str, float | None]:
    return settings.method, getattr(settings, "ema_decay", None)


def peaked(settings: TrainerSettings) -> float:
    """The score is highest at the learning rate that `BEST` has."""
    off = abs(settings.learning_rate - BEST[key_of(settings)])
    return 40.0 - 1000 * off + settings.seed / 10


def check(url: str) -> None:
    """The reported trials have the best rates, and the seeds of the study alone."""
    study = load_study("a", url)
    assert study.baseline is not None
    assert study.tuning is not None
    found = {
        (row["method"], row["ema_decay"] if row["method"] == "mocose" else None): rate
        for frame in (study.trials, study.baseline.trials)
        for (_, row), rate in zip(frame.iterrows(), frame["learning_rate"], strict=True)
    }
    assert found == BEST
    assert {*study.trials["seed"], *study.baseline.trials["seed"]} == {0, 1}
    assert {*study.tuning.trials["seed"]} == {8, 9}
    assert (study.planned, study.baseline.planned, study.tuning.planned) == (4, 2, 18)
    assert study.tuning.names == ("learning_rate",)
    assert study.tuning.trials["selected"].notna().all()


def test_it_is_chosen_before_what_is_compared_begins(
    scored: Scored, written: Written, url: str
) -> None:
    scored(peaked)
    result = run.sweep(written(STUDY), url, ONE)
    assert (result.counts, result.exit_code) == ({"COMPLETE": 24}, 0)
    # those of the choice have higher scores, since their seeds are higher
    assert result.best is not None
    assert result.best.seed == 1
    check(url)
    rows = read_records(url, "a")[TrialRow]
    last = max(row["number"] for row in rows if "tuning" in row["role"])
    assert min(row["number"] for row in rows if "tuning" not in row["role"]) == last + 1
    assert examine(url, Path("models")).holds
    worker.open_in_process.cache_clear()
    assert run.sweep(written(STUDY), url, ONE).ran == 0


@pytest.mark.parametrize(
    "step", [pytest.param("record_once", marks=pytest.mark.slow), "add_trials"]
)
def test_a_death_around_the_choice_is_made_good(
    scored: Scored, written: Written, url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Before the choice is recorded, and between that and the trials that have it."""
    scored(peaked)
    original, calls = getattr(Store, step), []

    def dies(self: Store, *given: Any) -> Any:
        calls.append(given)
        is_choice = given[0] == "chosen" if step == "record_once" else len(calls) == 2
        if is_choice:
            raise Killed
        return original(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(Store, step, dies)
        with pytest.raises(Killed):
            run.sweep(written(STUDY), url, ONE)
    worker.open_in_process.cache_clear()
    result = run.sweep(written(STUDY), url, ONE)
    assert (result.ran, result.counts) == (6, {"COMPLETE": 24})
    check(url)


@pytest.mark.slow
def test_the_choice_that_was_recorded_first_is_kept(
    scored: Scored, written: Written, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another sweep records one between the reading of the trials and the recording."""
    scored(peaked)
    original = Store.record_once

    def second(self: Store, name: Any, value: Any) -> Any:
        if name == "chosen":
            original(self, name, {group: {"learning_rate": 0.002} for group in value})
        return original(self, name, value)

    monkeypatch.setattr(Store, "record_once", second)
    run.sweep(written(STUDY), url, ONE)
    study = load_study("a", url)
    assert {*study.trials["learning_rate"]} == {0.002}
    assert study.tuning is not None
    assert {values["learning_rate"] for values in study.tuning.chosen.values()} == {0.002}


def test_other_values_are_refused_once_the_study_has_begun(
    scored: Scored, written: Written, url: str
) -> None:
    scored(peaked)
    run.sweep(written(STUDY), url, ONE)
    worker.open_in_process.cache_clear()
    with pytest.raises(MtdlabError, match=r"nuisance.learning_rate: was \[0.001, 0.002, 0.004\], "):
        run.sweep(written(STUDY.replace("0.004]", "0.004, 0.008]")), url, ONE)


@pytest.mark.parametrize(
    "until",
    [
        "",
        pytest.param(
            "until: {decided: true, max_seeds: 2, looks: [2]}\nbeyond_run: keep\n",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_value_that_diverges_is_not_chosen_and_all_of_them_hold_up_no_other_configuration(
    scored: Scored, written: Written, url: str, capsys: pytest.CaptureFixture[str], until: str
) -> None:
    def diverges(settings: TrainerSettings) -> float:
        if settings.learning_rate == BEST[key_of(settings)] and settings.seed == 9:
            raise TrialError("the loss is nan", "nan_loss")
        return peaked(settings)

    def always(settings: TrainerSettings) -> float:
        if settings.method == "simcse":
            raise TrialError("the loss is nan", "nan_loss")
        return diverges(settings)

    scored(always)
    for ran in (22, 0):
        result = run.sweep(written(STUDY + until), url, ONE)
        # 8 of the 18 trials to choose by, and what is compared of the two that have a choice
        assert (result.ran, result.exit_code) == (ran, 3)
        assert result.counts == {"COMPLETE": 14, "FAIL": 8}
        told = "no value of learning_rate can be chosen for 1 of 3 groups"
        assert capsys.readouterr().err.count(told) == 1
        worker.open_in_process.cache_clear()
    study = load_study("a", url)
    assert {*study.trials["learning_rate"]} == {0.002}
    assert study.baseline is None
    told = "All values of learning rate failed for 1 configuration, which is not compared."
    [warning] = [text for text in list_warnings(StudyContext(study)) if "was chosen on dev" in text]
    assert "by 2 other seeds" in warning
    [warning] = [text for text in list_warnings(StudyContext(study)) if told in text]
    assert warning.startswith(told)
    scored(diverges)
    result = run.sweep(written(STUDY + until), url, run.Execution(jobs=1, retry_failed=True))
    assert result.counts == {"COMPLETE": 21, "FAIL": 3}
    assert {*load_study("a", url).baseline.trials["learning_rate"]} == {0.001}


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_value_all_of_whose_runs_failed_is_told_in_the_terminal(
    scored: Scored,
    written: Written,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def diverges(settings: TrainerSettings) -> float:
        if settings.learning_rate > 0.003:
            raise TrialError("the loss is nan", "nan_loss")
        return peaked(settings)

    scored(diverges)
    run.sweep(written(STUDY), url, ONE)
    for command in ("show a --models none", f"report --study a --out {tmp_path}"):
        monkeypatch.setattr("sys.argv", ["mtdlab", *command.split(), "--storage", url])
        capsys.readouterr()
        with pytest.raises(SystemExit, match=r"^(0|None)$"):
            main()
        text = " ".join(capsys.readouterr().out.split())
        assert "learning_rate 0.001: chosen for 1 of 3 configurations; learning_rate" in text
        assert "learning_rate 0.002: chosen for 2 of 3 configurations; learning_rate" in text
        assert "learning_rate 0.004: chosen for 0 of 3 configurations, 6 of 6 runs failed" in text
        assert re.search(r"failed:? trials (\d+, ){5}\d+: the loss is nan", text)


def test_without_any_choice_the_sweep_ends(scored: Scored, written: Written, url: str) -> None:
    def fails(settings: TrainerSettings) -> float:
        raise TrialError(f"the loss is nan at {settings.learning_rate}", "nan_loss")

    scored(fails)
    with pytest.raises(MtdlabError, match="no value of learning_rate can be chosen for 3 of 3"):
        run.sweep(written(STUDY), url, ONE)


@pytest.mark.slow
def test_looks_add_trials_with_the_chosen_values(
    scored: Scored, written: Written, url: str
) -> None:
    until = "until: {decided: true, max_seeds: 4, looks: [2, 4]}\nbeyond_run: keep\n"
    scored(lambda settings: peaked(settings) + hash((settings.seed, settings.mtd)) % 7)
    run.sweep(written(STUDY + until), url, ONE)
    study = load_study("a", url)
    assert study.looks["seeds"].tolist()[0] == 2
    assert study.trials.groupby("ema_decay")["learning_rate"].nunique().tolist() == [1, 1]


@pytest.mark.slow
def test_an_export_has_the_choice(
    scored: Scored, written: Written, url: str, tmp_path: Path
) -> None:
    scored(peaked)
    run.sweep(written(STUDY), url, ONE)
    copied = f"sqlite:///{tmp_path / 'copied.db'}"
    export_study("a", url, tmp_path / "a.db")
    import_study(tmp_path / "a.db", copied)
    check(copied)
    one, other = (load_study("a", place).tuning for place in (url, copied))
    assert one is not None
    assert other is not None
    pd.testing.assert_frame_equal(one.trials, other.trials)
    assert one.chosen == other.chosen
    assert examine(copied, Path("none")).holds
    worker.open_in_process.cache_clear()
    assert run.sweep(written(STUDY), copied, ONE).ran == 0
