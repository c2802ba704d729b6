"""The baseline of a study: run with its seeds, and counted by nothing that the search decides."""

from pathlib import Path

import optuna
import pandas as pd
import pytest

from mtdlab import load_study
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.commands.compare import compare
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.manage.doctor import examine
from mtdlab.manage.exchange import export_study, import_study
from mtdlab.manage.reproduce import find_repeatable, run_again
from mtdlab.settings import TrainerSettings
from mtdlab.store.exchange import read_records
from mtdlab.store.progress import list_studies
from mtdlab.store.store import open_store
from mtdlab.store.tables import TrialRow
from mtdlab.sweep import run
from mtdlab.sweep.open_study import open_study
from mtdlab.trial import worker
from mtdlab.trial.model_folders import kept_trial
from tests.conftest import Written
from tests.sweep.conftest import Scored
from tests.tiny_studies import TinyStudy

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
PLAIN = "study: a\ntrainer: {steps: 4}\nsearch: {ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
BESIDE = PLAIN + "baseline: {method: simcse}\n"


def higher(settings: TrainerSettings) -> float:
    """The baseline is higher than every trial of the search."""
    return 50.0 if settings.method == "simcse" else 40.0 + settings.seed + settings.ema_decay


def test_it_is_run_with_each_seed_and_is_no_part_of_the_search(
    scored: Scored, written: Written, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scored(higher)
    result = run.sweep(written(BESIDE), url, run.Execution(jobs=1))
    assert (result.counts, result.exit_code) == ({"COMPLETE": 6}, 0)
    assert result.best is not None
    assert result.best.ranking == pytest.approx(41.75)
    study = load_study("a", url)
    assert (study.planned, len(study.trials), len(study.scores)) == (4, 4, 6)
    assert study.trials["number"].tolist() == [0, 1, 3, 4]
    beside = study.baseline
    assert beside is not None
    assert (beside.planned, dict(beside.values)) == (2, {"method": "simcse"})
    assert beside.trials["number"].tolist() == [2, 5]
    assert beside.trials["seed"].tolist() == [0, 1]
    copy = optuna.load_study(study_name="a", storage=url)
    assert [trial.number for trial in copy.trials] == [0, 1, 3, 4]
    for other in ("baseline", "5"):
        compare("a", "3", other, storage=url)
        printed = capsys.readouterr().out
        assert ["method", "mocose", "simcse"] in [line.split() for line in printed.splitlines()]
        assert f"trial 3 minus trial {5 if other == '5' else 2}: -9" in printed
    assert copy.best_value == pytest.approx(41.75)
    assert examine(url, Path("models")).holds
    [overview] = list_studies(url)
    assert (overview.planned, overview.best.number) == (6, result.best.number)


@pytest.mark.slow
def test_it_can_be_added_to_a_complete_study(scored: Scored, written: Written, url: str) -> None:
    scored(higher)
    run.sweep(written(PLAIN), url, run.Execution(jobs=1))
    worker.open_in_process.cache_clear()
    result = run.sweep(written(BESIDE), url, run.Execution(jobs=1))
    assert (result.ran, result.counts) == (2, {"COMPLETE": 6})
    assert run.sweep(written(BESIDE), url, run.Execution(jobs=1)).ran == 0


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (PLAIN, r"\(baseline: was {method: simcse}, now None\)"),
        pytest.param(
            BESIDE.replace("simcse}", "simcse, steps: 3}"),
            r"\(baseline.steps: was 4, now 3\)",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_one_that_has_trials_is_neither_changed_nor_removed(
    scored: Scored, written: Written, url: str, other: str, difference: str
) -> None:
    scored(higher)
    run.sweep(written(BESIDE), url, run.Execution(jobs=1))
    with pytest.raises(MtdlabError, match=difference) as refused:
        open_study(written(other), url, Invocation("sweep", ("a.yaml",)))
    assert "to resume it: put the former values back into the file" in str(refused.value)


def test_a_worker_without_it_runs_the_one_that_another_sweep_added(
    scored: Scored, written: Written, url: str
) -> None:
    scored(higher)
    before = written(PLAIN)
    open_study(before, url)
    open_study(written(BESIDE), url)
    job = worker.Job(before, url, Path("models").absolute())
    with run.stop_on_signals() as stop:
        assert worker.work(job, 1, stop)
    rows = read_records(url, "a")[TrialRow]
    ended = [row["role"] for row in rows if row["state"] == "COMPLETE"]
    assert sorted(ended) == ["baseline"] * 2 + ["search"] * 4


UNTIL = """
study: a
trainer: {steps: 4}
search: {ema_decay: [0.5, 0.8, 0.95]}
until: {decided: true, max_seeds: 3, looks: [2, 3]}
beyond_run: keep
"""


@pytest.mark.slow
def test_looks_neither_count_it_nor_run_on_without_it(
    scored: Scored, written: Written, url: str, tmp_path: Path
) -> None:
    scored(lambda settings: 40 + (settings.seed * 7 + hash(settings.mtd)) % 11)
    beside, alone = UNTIL + "baseline: {method: simcse}\n", f"sqlite:///{tmp_path / 'alone.db'}"
    result = run.sweep(written(beside), url, run.Execution(jobs=1))
    worker.open_in_process.cache_clear()
    run.sweep(written(UNTIL), alone, run.Execution(jobs=1))
    looks, expected = (load_study("a", place).looks for place in (url, alone))
    columns = ["look", "seeds", "runs", "p_value", "verdict", "decision", "added"]
    assert looks[columns].to_dict("records") == expected[columns].to_dict("records")
    study = load_study("a", url)
    assert study.baseline is not None
    assert len(looks) > 1
    assert study.baseline.trials["seed"].tolist() == sorted(set(study.trials["seed"]))
    assert result.counts == {"COMPLETE": len(study.trials) + len(study.baseline.trials)}
    # one that is added after the looks has the seeds of the search
    seeds = sorted(set(load_study("a", alone).trials["seed"]))
    assert run.sweep(written(beside), alone, run.Execution(jobs=1)).ran == len(seeds)
    added = load_study("a", alone).baseline
    assert added is not None
    assert added.trials["seed"].tolist() == seeds


def test_its_failures_are_those_of_the_study_and_are_run_again(
    scored: Scored, written: Written, url: str
) -> None:
    def fails(settings: TrainerSettings) -> float:
        if settings.method == "simcse":
            raise TrialError("the loss is nan", "nan_loss")
        return higher(settings)

    scored(fails)
    ended = run.sweep(written(BESIDE), url, run.Execution(jobs=1, max_failed=1))
    assert (ended.exit_code, ended.counts["FAIL"], ended.too_many_failed) == (1, 1, True)
    worker.open_in_process.cache_clear()
    result = run.sweep(written(BESIDE), url, run.Execution(jobs=1))
    assert (result.exit_code, result.counts) == (3, {"COMPLETE": 4, "FAIL": 2})
    assert [(row.role, row.seed) for row in result.failures] == [("baseline", 0), ("baseline", 1)]
    assert examine(url, Path("models")).holds
    worker.open_in_process.cache_clear()
    scored(higher)
    again = run.sweep(written(BESIDE), url, run.Execution(jobs=1, retry_failed=True))
    assert (again.ran, again.counts) == (2, {"COMPLETE": 6})


def test_neither_a_sampler_nor_a_pruner_sees_it(scored: Scored, written: Written, url: str) -> None:
    """Its scores, the lowest of all, would be pruned; in its turn it would spare the others."""
    text = BESIDE.replace("[0.5, 0.75]", "{low: 0.5, high: 0.9}")
    text += "sampler: tpe\ntrials: 6\npruner: median\n"
    scored(lambda settings: 1.0 if settings.method == "simcse" else higher(settings))
    result = run.sweep(written(text), url, run.Execution(jobs=1))
    beside = load_study("a", url).baseline
    assert beside is not None
    assert beside.trials["state"].tolist() == ["COMPLETE", "COMPLETE"]
    copy = optuna.load_study(study_name="a", storage=url)
    assert len(copy.trials) == 12 == sum(result.counts.values()) - 2
    assert {*copy.trials[0].params} == {"ema_decay"}


def test_a_trained_one_is_recorded_exported_and_reproduced_but_its_model_is_not_kept(
    tiny_study: TinyStudy, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    search = {"ema_decay": [0.5, 0.75]}
    spec = tiny_study(search=search, seeds=[0], baseline={"method": "simcse"})
    result = run.sweep(spec, url, run.Execution(jobs=1))
    assert (result.counts, result.exit_code) == ({"COMPLETE": 3}, 0)
    study = load_study("kept", url)
    assert study.baseline is not None
    assert study.items is not None
    assert study.items.numbers.tolist() == [0, 1, 2]
    assert study.methods == {"mocose": "MoCoSE", "simcse": "SimCSE"}
    # the one of the search that is best, whatever the baseline has
    assert kept_trial(Path("models/kept"), url) == result.best.number in (0, 1)
    assert examine(url, Path("models")).holds
    again = run_again(find_repeatable("kept", 2, url), lambda *_: None)
    assert again.identical
    copied = f"sqlite:///{tmp_path / 'copied.db'}"
    export_study("kept", url, tmp_path / "kept.db")
    import_study(tmp_path / "kept.db", copied)
    other = load_study("kept", copied).baseline
    assert other is not None
    pd.testing.assert_frame_equal(other.trials, study.baseline.trials)
    assert examine(copied, Path("none")).holds


@pytest.mark.slow
def test_an_import_refuses_another_role_and_the_model_of_a_baseline(
    scored: Scored, written: Written, url: str, tmp_path: Path
) -> None:
    scored(higher)
    run.sweep(written(BESIDE), url, run.Execution(jobs=1))
    store = open_store(url, "a")
    assert store is not None
    store.record_model(2, "here", "models/a")
    with pytest.raises(MtdlabError, match="trial 2 of a look, or of the model, is not in the"):
        export_study("a", url, tmp_path / "a.db")
