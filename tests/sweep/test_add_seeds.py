"""Studies that add seeds until their verdict is decided. Training itself is replaced."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from forked_commands import ForkedCommand
from stub_store import claim_trial, end_trial

from mtdlab import load_study
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.inference.looks import boundaries_at
from mtdlab.errors import MtdlabError
from mtdlab.settings import TrainerSettings
from mtdlab.store import owner
from mtdlab.store.claims import Result
from mtdlab.store.records import as_record
from mtdlab.store.store import Store
from mtdlab.store.tables import LookRow
from mtdlab.sweep import run
from mtdlab.sweep.engine import ThisProcess
from mtdlab.sweep.open_study import open_study
from mtdlab.trial import trainer, worker
from mtdlab.trial.signals import Interrupted
from tests.conftest import Written
from tests.sweep.test_supervisor import NoWorkers, supervised
from tests.tiny_studies import TinyStudy

STUDY = """
study: until
trainer: {steps: 4}
search:
  ema_decay: [0.5, 0.8, 0.9, 0.95, 0.99]
until: {decided: true, max_seeds: 6, looks: [3, 4, 6]}
beyond_run: keep
"""
EVERY_LOOK = STUDY.replace("6, looks: [3, 4, 6]", "5, looks: [3, 4, 5]")
Sweep = Callable[..., run.SweepResult]
pytestmark = pytest.mark.usefixtures("no_inputs")


def peaked(settings: TrainerSettings) -> float:
    """A peak at MTD 18, whose ends are far lower; residual standard deviation 1."""
    noise = np.random.default_rng([settings.seed, round(1000 * settings.ema_decay)])
    distance = np.log((settings.mtd or 0) / 18)
    return float(40 + settings.seed - 8 * distance**2 + noise.normal())


def unclear(settings: TrainerSettings) -> float:
    """No effect, residual standard deviation 5: neither a shape nor flat. Later seeds are lower."""
    noise = np.random.default_rng([settings.seed, round(1000 * settings.ema_decay)])
    return float(40 + 5 * noise.normal() - 100 * settings.seed)


@pytest.fixture
def score(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Sets the function that gives a trial's score; it may raise Interrupted."""

    def replace(function: Callable[[TrainerSettings], float]) -> None:
        def train(monitor: Any) -> tuple[Result, None]:
            try:
                value = function(monitor.settings)
            except Interrupted:
                monitor.run.stop.request()
                raise
            values = {"score": value, "wall_seconds": 0.1}
            return Result("COMPLETE", values=values, scores={"sts_dev": value}), None

        monkeypatch.setattr(trainer, "train_trial", train)

    return replace


@pytest.fixture
def sweep(written: Written, url: str, score: Any) -> Sweep:
    score(peaked)
    return lambda text=STUDY: run.sweep(written(text), url, run.Execution(jobs=1))


def test_a_clear_peak_ends_the_study_before_all_seeds(sweep: Sweep, url: str) -> None:
    result = sweep()
    assert (result.look.verdict, result.look.decision) == ("peaked", "decided")
    assert result.look.look < 3
    study = load_study("until", url)
    assert study.planned == len(study.trials) < 30
    last = study.looks.iloc[-1]
    assert last["p_value"] <= last["alpha"]
    assert list(last["trials"]) == study.trials["number"].tolist()
    assert sweep().ran == 0


@pytest.mark.slow
def test_a_flat_study_ends_for_futility(sweep: Sweep, score: Any) -> None:
    noise = np.random.default_rng(0)
    score(lambda settings: 40 + settings.seed + 0.01 * noise.normal())
    result = sweep()
    assert (result.look.verdict, result.look.decision) == ("within margin", "flat")
    assert result.counts == {"COMPLETE": 15}


@pytest.mark.slow
def test_an_unclear_study_ends_at_max_seeds_and_an_interrupted_sweep_takes_the_same_looks(
    sweep: Sweep,
    written: Written,
    url: str,
    score: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = f"sqlite:///{tmp_path / 'whole.db'}"
    score(unclear)
    assert run.sweep(written(STUDY), whole, run.Execution(jobs=1)).counts == {"COMPLETE": 30}
    frame = load_study("until", whole).looks
    assert frame["decision"].tolist() == ["continue", "continue", "max_seeds"]
    assert frame["seeds"].tolist() == [3, 4, 6]
    bounds = boundaries_at([3, 4, 6], 0.05)
    assert frame["alpha"].tolist() == pytest.approx(bounds.nominal.tolist())
    assert frame["spent"].tolist() == pytest.approx(bounds.cumulative.tolist())
    # the best score shown is that of all looks
    shown = re.findall(r"best (-?[\d.]+)", capsys.readouterr().err)
    assert list(map(float, shown)) == sorted(map(float, shown))
    worker.open_in_process.cache_clear()

    calls = []

    def interrupted(settings: TrainerSettings) -> float:
        calls.append(settings)
        if len(calls) in (4, 18, 29):
            raise Interrupted
        return unclear(settings)

    score(interrupted)
    assert [sweep().exit_code for _ in range(4)] == [130, 130, 130, 0]
    assert len(calls) == 33
    columns = ["look", "seeds", "runs", "alpha", "p_value", "verdict", "decision", "added"]
    resumed, straight = (load_study("until", place).looks[columns] for place in (url, whole))
    assert resumed.to_dict("records") == straight.to_dict("records")


def test_a_look_counts_the_trials_of_sweeps_that_still_run(
    sweep: Sweep, written: Written, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last trial of a look is another sweep's; it finishes while this one waits."""
    spec = written(STUDY)
    other = open_study(spec, url)
    claim = claim_trial(other)
    settings = spec.settings(claim.parameters, claim.seed)
    other.begin(claim, claim.parameters, settings.model_dump(), settings.mtd)

    def finish(_seconds: float) -> None:
        if other.counts() == {"COMPLETE": 14, "RUNNING": 1}:
            value = peaked(settings)
            result = Result("COMPLETE", values={"score": value}, scores={"sts_dev": value})
            assert other.finish(claim, result)

    wait = ThisProcess.wait
    monkeypatch.setattr(
        ThisProcess, "wait", lambda engine, seconds: (finish(seconds), wait(engine, 0.01))
    )
    assert sweep().look is not None
    first = load_study("until", url).looks.iloc[0]
    assert (first["look"], first["runs"]) == (1, 15)


def test_a_trial_of_a_killed_sweep_is_run_before_the_look(
    url: str, written: Written, tmp_path: Path
) -> None:
    spec = written(STUDY)
    store = open_study(spec, url)
    claim_trial(store, owner.this_process() | {"started": "0"})
    for _ in range(14):
        end_trial(store, Result("FAIL", "not trained"))
    supervised(spec, store, NoWorkers(), tmp_path).run()
    assert store.counts() == {"FAIL": 14, "WAITING": 1}
    assert store.last_look() is None


@pytest.mark.slow
def test_a_look_is_recorded_once_only_for_its_own_trials_and_its_design_cannot_change(
    sweep: Sweep, url: str
) -> None:
    sweep()
    store = Store(url, 1)
    last = store.last_look()
    shared = {"alpha": 0.1, "spent": 0.1, "verdict": "flat", "decision": "flat", "added": []}
    again = LookRow(look=last.look, seeds=3, trials=last.trials, **shared)
    assert not store.record_look(again, {})
    following = LookRow(look=last.look + 1, seeds=6, trials=last.trials[1:], **shared)
    assert not store.record_look(following, {})
    assert as_record(store.last_look()) == as_record(last)
    with pytest.raises(MtdlabError, match=r"until.looks: was \[3, 4, 6\], now \[3, 6\]"):
        sweep(STUDY.replace("[3, 4, 6]", "[3, 6]"))
    with pytest.raises(MtdlabError, match=r"verdict.alpha: was 0.05, now 0.2"):
        sweep(STUDY + "verdict: {alpha: 0.2}\n")
    with pytest.raises(MtdlabError, match=r"beyond_run: was keep, now leave-out"):
        sweep(STUDY.replace("keep", "leave-out"))
    with pytest.raises(MtdlabError, match=r"search.ema_decay: was"):
        sweep(STUDY.replace("0.99]", "0.99, 0.995]"))


@pytest.mark.slow
def test_two_sweeps_at_once_take_the_same_looks(
    url: str, tmp_path: Path, tiny_study: TinyStudy
) -> None:
    """Real trials of a fraction of a second, in two processes."""
    until = {"decided": True, "max_seeds": 4, "looks": [2, 3, 4]}
    tiny_study(study="until", seeds=None, until=until)
    words = ["sweep", "study.yaml", "--storage", url, "--jobs", "1", "--models", "models"]
    both = [ForkedCommand(words, tmp_path, {}) for _ in range(2)]
    errors = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    study = load_study("until", url)
    assert study.looks["look"].tolist() == list(range(1, len(study.looks) + 1))
    assert study.looks["decision"].iloc[-1] != "continue"
    assert (study.trials["state"] == "COMPLETE").all()
    assert len(study.trials) == study.looks["runs"].iloc[-1] == study.planned
    assert not study.trials.duplicated(["ema_decay", "seed"]).any()


@pytest.mark.slow
def test_seeds_are_added_at_the_leading_levels_first(sweep: Sweep, url: str, score: Any) -> None:
    """Levels that are far below the best wait after look 1; they are not dropped for good."""
    score(lambda settings: falling(settings, noise=0.5))
    text = EVERY_LOOK.replace("0.95, 0.99", "0.95, 0.97, 0.99")
    sweep(text + "verdict: {margin: 0.1}\n")
    study = load_study("until", url)
    second = trials_at(study, 1).groupby("ema_decay")["seed"].nunique()
    assert second.to_dict() == {0.5: 4, 0.8: 4, 0.9: 4, 0.95: 3, 0.97: 3, 0.99: 4}
    assert study.looks["added"].tolist() == [4, 8, 0]
    assert study.trials.groupby("ema_decay")["seed"].nunique().eq(5).all()


@pytest.mark.slow
def test_a_level_beyond_the_run_is_not_judged_and_gets_its_seeds_at_the_last_look(
    sweep: Sweep, url: str
) -> None:
    # 0.99 is left out of 160 steps (0.2), 0.95 not: the ends are MTD 10 and 28
    text = EVERY_LOOK.replace("beyond_run: keep", "beyond_run: leave-out").replace("4}", "160}")
    sweep(text + "verdict: {margin: 0.001, alpha: 1e-9}\n")
    study = load_study("until", url)
    second = trials_at(study, 1).groupby("ema_decay")["seed"].nunique()
    assert (second[0.99], second[0.95], second[0.5]) == (3, 4, 4)
    assert study.trials.groupby("ema_decay")["seed"].nunique().eq(5).all()
    assert list(study.verdict().left_out) == pytest.approx([108])


def falling(settings: TrainerSettings, noise: float) -> float:
    """The same at the two lowest levels of MTD and 10 points lower at the others."""
    random = np.random.default_rng([settings.seed, round(1000 * settings.ema_decay)])
    return float(40 - 10 * (settings.ema_decay > 0.85) + noise * random.normal())


def trials_at(study: StudyFrames, look: int) -> pd.DataFrame:
    """The trials that a look was computed from; 0 is the first."""
    return study.trials[study.trials["number"].isin(study.looks["trials"].iloc[look])]


RATES = """
study: rates
trainer: {steps: 4, method: simcse}
search: {learning_rate: [0.1, 0.2, 0.3, 0.4]}
until: {decided: true, max_seeds: 5, looks: [3, 4, 5]}
"""


def rated(settings: TrainerSettings, best: float, noise: float) -> float:
    """The learning rates 0.1 and 0.2 are alike but for `best` points, the others far lower."""
    random = np.random.default_rng([settings.seed, round(1000 * settings.learning_rate)])
    rate = settings.learning_rate
    return float(40 + best * (rate == 0.2) - 10 * (rate > 0.25) + noise * random.normal())


@pytest.mark.parametrize(
    ("best", "noise", "verdict", "decision"),
    [
        (4, 0.2, "separated", "decided"),
        pytest.param(0, 0.02, "equivalent", "equivalent", marks=pytest.mark.slow),
    ],
)
def test_a_comparison_of_configurations_ends_when_it_is_decided(
    sweep: Sweep, score: Any, best: float, noise: float, verdict: str, decision: str
) -> None:
    score(lambda settings: rated(settings, best, noise))
    result = sweep(RATES)
    assert (result.look.look, result.look.verdict, result.look.decision) == (1, verdict, decision)
    assert result.counts == {"COMPLETE": 12}
    assert sweep(RATES).ran == 0


@pytest.mark.slow
def test_configurations_that_may_be_the_best_get_seeds_first_and_all_get_them_at_the_end(
    sweep: Sweep, url: str, score: Any
) -> None:
    score(lambda settings: rated(settings, 0, 0.5))
    sweep(RATES + "verdict: {margin: 0.01, alpha: 0.001}\n")
    study = load_study("rates", url)
    second = trials_at(study, 1).groupby("learning_rate")["seed"].nunique()
    assert second.to_dict() == {0.1: 4, 0.2: 4, 0.3: 3, 0.4: 3}
    assert study.looks["decision"].tolist() == ["continue", "continue", "max_seeds"]
    assert study.trials.groupby("learning_rate")["seed"].nunique().eq(5).all()


@pytest.mark.slow
def test_methods_of_which_one_has_an_mtd_are_compared(sweep: Sweep, score: Any) -> None:
    noise = np.random.default_rng(1)
    score(lambda settings: 40 + 5 * (settings.method == "simcse") + 0.2 * noise.normal())
    text = RATES.replace(", method: simcse", "").replace(
        "learning_rate: [0.1, 0.2, 0.3, 0.4]", "method: [mocose, simcse], ema_decay: [0.5, 0.9]"
    )
    result = sweep(text)
    assert (result.look.verdict, result.look.decision) == ("separated", "decided")
    assert result.counts == {"COMPLETE": 9}
