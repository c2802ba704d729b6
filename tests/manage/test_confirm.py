"""A study's best level and its runner-up, run again with fresh seeds. Training is replaced."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from mtdlab import load_study
from mtdlab.analysis.data.runs import MTD_DECIMALS
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.statistics.contrasts import Contrast
from mtdlab.cli import app
from mtdlab.commands.confirm import _sentence
from mtdlab.config.reader import read_study
from mtdlab.errors import NothingToReport
from mtdlab.manage.confirm import plan_confirmation
from mtdlab.store.claims import Result
from mtdlab.sweep import run
from mtdlab.trial import trainer, worker
from tests.conftest import Written

STUDY = """
study: first
trainer: {steps: 4, batch_size: 8}
search:
  ema_decay: [0.5, 0.8, 0.9, 0.99]
  queue_size: {times: batch_size, values: [1, 2]}
  initial_queue_size: [0]
seeds: [0, 1, 2]
verdict: {margin: 1}
beyond_run: keep
"""
pytestmark = pytest.mark.usefixtures("few_simulated_tables")


@pytest.fixture(scope="module", autouse=True)
def no_training() -> Iterator[None]:
    """A score that is highest at eta 0.9 and K/N 2, and noise of each seed."""

    def train(monitor: Any) -> tuple[Result, None]:
        settings = monitor.settings
        values = settings.model_dump()
        key = [settings.seed, round(1000 * values["ema_decay"]), values["queue_size"]]
        noise = np.random.default_rng(key).normal()
        peak = np.log((1 - values["ema_decay"]) / 0.1) ** 2
        score = 40 + settings.seed % 7 - 2 * peak + values["queue_size"] / 16 + 0.3 * noise
        values = {"score": float(score), "wall_seconds": 0.1}
        return Result("COMPLETE", values=values, scores={"sts_dev": float(score)}), None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtdlab.trial.trainer.check_inputs", lambda *_, **__: {})
        patch.setattr(trainer, "train_trial", train)
        yield


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the study, complete."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "study.yaml").write_text(STUDY)
    url, spec = f"sqlite:///{folder / 'studies.db'}", read_study(folder / "study.yaml")
    run.sweep(spec, url, run.Execution(jobs=1), models=folder / "models")
    return folder / "studies.db"


@pytest.fixture
def url(swept: Path, tmp_path: Path) -> str:
    worker.open_in_process.cache_clear()
    shutil.copy(swept, tmp_path / "studies.db")
    return f"sqlite:///{tmp_path / 'studies.db'}"


def confirm(url: str, *options: str) -> dict[str, Any]:
    command = ["confirm", "first", "--storage", url, "--jobs", "1", "--json", *options]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    worker.open_in_process.cache_clear()
    return dict(json.loads(done.stdout))


def test_both_configurations_run_with_seeds_that_the_study_did_not_use(url: str) -> None:
    found = confirm(url, "--seeds", "4")
    assert found["confirmation"] == "first-confirm"
    assert found["best_mtd"] == pytest.approx(12.0)
    trials = load_study("first-confirm", url).trials
    assert sorted(trials["seed"].unique()) == [1000, 1001, 1002, 1003]
    assert sorted(trials["mtd"].unique()) == pytest.approx(
        sorted([found["best_mtd"], found["runner_up_mtd"]])
    )
    assert len(trials) == 8


def test_two_divisions_of_one_mtd_are_confirmed_by_their_settings(
    written: Written, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'strata.db'}"
    search = "search:\n  mtd: {strata: [6, 20], per_stratum: 3}\n"
    text = STUDY[: STUDY.index("search:")] + search + STUDY[STUDY.index("  initial_queue") :]
    run.sweep(written(text + "questions: [{sufficiency: mtd}]\n"), url, run.Execution(jobs=1))
    found = confirm(url, "--seeds", "3")
    assert found["best_mtd"] == pytest.approx(found["runner_up_mtd"])
    assert re.fullmatch(r"ema_decay 0\.\d+, queue_size \d+", found["best"])
    assert found["best"] != found["runner_up"]
    first, second = (found[name].split()[-1] for name in ("best", "runner_up"))
    trials = load_study("first-confirm", url).trials
    assert sorted(trials["queue_size"].unique()) == sorted([int(first), int(second)])
    assert len(trials) == 6


def test_the_difference_is_that_of_the_fresh_seeds(url: str) -> None:
    found = confirm(url, "--seeds", "3")
    trials = load_study("first-confirm", url).trials
    assert found["best_mtd"] == 12, "without the last bits of 1 / (1 - 0.9) + 2"
    rounded = trials.assign(mtd=trials["mtd"].round(MTD_DECIMALS))
    by_seed = rounded.pivot_table(index="seed", columns="mtd", values="score")
    values = by_seed[found["best_mtd"]] - by_seed[found["runner_up_mtd"]]
    again = found["remeasured"]
    assert (again["seeds"], found["original"]["seeds"]) == (3, 3)
    assert again["mean"] == pytest.approx(values.mean())
    # t(0.975, 2 degrees of freedom) = 4.3027
    assert again["high"] - again["mean"] == pytest.approx(4.3027 * values.std() / 3**0.5, 1e-4)
    assert found["confirmed"] == (again["low"] > 0)
    original = load_study("first", url).trials
    first, second = (
        original[np.isclose(original["mtd"], found[name])].set_index("seed")["score"]
        for name in ("best_mtd", "runner_up_mtd")
    )
    assert found["original"]["mean"] == pytest.approx((first - second).mean())


@pytest.mark.parametrize(
    ("original", "again", "text"),
    [
        (
            (2, 1, 3),
            (1, 0.5, 1.5),
            "The study shows a significant difference, the new seeds show one.",
        ),
        ((2, 1, 3), (2.5, -1, 6), "a significant difference, the new seeds show none."),
        (
            (0.1, -1, 1),
            (2, 1, 3),
            "The study shows no significant difference, the new seeds show one.",
        ),
        ((0.1, -1, 1), (0.2, -1, 1), "no significant difference, the new seeds show none."),
    ],
)
def test_what_new_seeds_show_is_said_of_what_the_study_showed(
    original: tuple[float, ...], again: tuple[float, ...], text: str
) -> None:
    first, second = (
        Contrast({}, pd.DataFrame(), 3, 1, Estimate(*values), pd.DataFrame())
        for values in (original, again)
    )
    sentence = _sentence(first, second)
    assert f"{text} That of the study is too large on average, since" in sentence
    assert sentence.endswith("the new difference is still too large.")


@pytest.mark.slow
def test_a_confirmation_that_is_begun_keeps_its_configurations(url: str) -> None:
    first = confirm(url, "--seeds", "2")
    more = confirm(url, "--seeds", "4")
    assert (first["remeasured"]["seeds"], more["remeasured"]["seeds"]) == (2, 4)
    assert confirm(url, "--seeds", "2")["remeasured"]["seeds"] == 4
    assert more["best_mtd"] == first["best_mtd"]


def test_the_study_of_a_confirmation_has_the_settings_and_states_what_it_is(url: str) -> None:
    planned = plan_confirmation("first", url, 2)
    settings = [
        planned.spec.settings(unit.parameters or {}, 0) for unit in planned.spec.search_trials()
    ]
    assert {run.steps for run in settings} == {4}
    assert len({run.mtd for run in settings}) == 2
    assert planned.spec.description.startswith("Confirmation of study first with fresh seeds")
    assert (planned.spec.margin, planned.spec.beyond_run) == (1, "keep")


def test_one_level_cannot_be_confirmed(written: Written, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'one.db'}"
    run.sweep(
        written("study: one\ntrainer: {steps: 4}\nseeds: [0, 1]\n"), url, run.Execution(jobs=1)
    )
    with pytest.raises(NothingToReport, match="study one: fewer than two configurations"):
        plan_confirmation("one", url, 2)
    with pytest.raises(NothingToReport, match="no study two in"):
        plan_confirmation("two", url, 2)


METHODS = """
study: first
trainer: {steps: 4, batch_size: 8, learning_rate: 0.01}
search:
  method: [mocose, simcse, mixcse]
  temperature: [0.05, 0.1]
seeds: [0, 1, 2]
"""


def sweep_methods(url: str, written: Written, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """SimCSE scores highest at 0.1, then MoCoSE at 0.05."""
    means = {("simcse", 0.1): 9, ("simcse", 0.05): 6, ("mocose", 0.05): 7, ("mocose", 0.1): 5}

    def train(monitor: Any) -> tuple[Result, None]:
        settings = monitor.settings
        score = 40 + means.get((settings.method, settings.temperature), 0) + settings.seed % 3
        noise = np.random.default_rng([settings.seed, len(settings.method)]).normal()
        values = {"score": float(score + 0.1 * noise), "wall_seconds": 0.1}
        return Result("COMPLETE", values=values, scores={"sts_dev": values["score"]}), None

    monkeypatch.setattr(trainer, "train_trial", train)
    run.sweep(written(text), url, run.Execution(jobs=1))
    worker.open_in_process.cache_clear()


@pytest.mark.slow
def test_the_best_of_methods_is_confirmed_against_the_next_although_settings_differ(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'methods.db'}"
    sweep_methods(url, written, monkeypatch, METHODS)
    found = confirm(url, "--seeds", "3")
    assert found["best"] == "method simcse, temperature 0.1"
    assert found["runner_up"] == "method mocose, temperature 0.05"
    assert found["best_mtd"] is None
    assert found["runner_up_mtd"] > 0
    assert found["original"]["mean"] == pytest.approx(2, abs=0.3)
    assert found["confirmed"]
    trials = load_study("first-confirm", url).trials
    ran = trials.groupby("method")["temperature"].unique().to_dict()
    assert {name: values.tolist() for name, values in ran.items()} == {
        "simcse": [0.1],
        "mocose": [0.05],
    }
    assert sorted(trials["seed"].unique()) == [1000, 1001, 1002]
    assert confirm(url, "--seeds", "3")["best"] == found["best"]


@pytest.mark.slow
def test_the_best_of_settings_without_levels_of_mtd_is_confirmed(
    written: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'temperatures.db'}"
    text = METHODS.replace("  method: [mocose, simcse, mixcse]\n", "")
    sweep_methods(url, written, monkeypatch, text)
    found = confirm(url, "--seeds", "2")
    assert (found["best"], found["runner_up"]) == ("temperature 0.05", "temperature 0.1")
    assert found["best_mtd"] == found["runner_up_mtd"]
    assert found["remeasured"]["mean"] == pytest.approx(2, abs=0.3)
