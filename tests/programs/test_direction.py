"""Studies of a loss: each choice and answer is that of its negative, maximised, in mirror."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import optuna
import pytest

from mtdlab import load_study
from tests.commands.conftest import Command

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "figures_not_drawn")

PROGRAM = """
import math


def train(settings, *, seed, checkpoints, report):
    loss = 2 + (math.log(settings["rate"]) ** 2) / 9 + 0.01 * math.sin(7 * seed + settings["rate"])
    for step in (1, 2, 3):
        report(step, SIGN * (loss + 1 / step))
    return {"val_loss": loss, "merit": -loss, "other": 7.0, "per_item": {NAME: [SIGN * loss] * 3}}
"""
SWEEP = "sweep {0}.yaml --objective {0}:train --jobs 1 --storage {0}.db"
VARIANTS = {
    "grid": "search: {rate: [0.2, 0.5, 1.0, 2.0, 6.0]}\nseeds: [0, 1, 2, 3]\n",
    "tpe": "search: {rate: {min: 0.1, max: 9.0, distribution: log_uniform_values}}\n"
    "sampler: tpe\ntrials: 14\nseeds: [0]\n",
    "pruned": "search: {rate: [0.2, 0.5, 1.0, 2.0, 6.0]}\nseeds: [0, 1, 2, 3]\npruner: median\n",
    "until": "search: {rate: [0.2, 1.0, 6.0]}\nseeds: [0, 1]\n"
    "until: {decided: true, max_seeds: 6, looks: [3, 6]}\n",
}


@pytest.fixture
def both(folder: Path) -> Path:
    """A study of a loss, and one of its negative, in databases of their own."""
    for name, metric, sign in (("low", "val_loss", 1), ("high", "merit", -1)):
        text = PROGRAM.replace("SIGN", str(sign)).replace("NAME", repr(metric))
        (folder / f"{name}.py").write_text(text)
        direction = f"direction: {'minimize' if sign == 1 else 'maximize'}\n"
        head = f"study: it\nmetric: {metric}\n{direction}verdict: {{margin: 0.05}}\n"
        (folder / f"{name}.yaml").write_text(head)
    return folder


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of variants that have been run, for the tests that begin with the same sweeps."""
    return tmp_path_factory.mktemp("kept")


def run_both(both: Path, run: Command, variant: str, kept: Path) -> None:
    if (kept / variant).exists():
        shutil.copytree(kept / variant, both, dirs_exist_ok=True)
        return
    for name in ("low", "high"):
        file = both / f"{name}.yaml"
        file.write_text(file.read_text() + VARIANTS[variant])
        run(SWEEP.format(name))
    shutil.copytree(both, kept / variant)


@pytest.mark.parametrize(
    "variant",
    ["grid", "pruned", *(pytest.param(name, marks=pytest.mark.slow) for name in ("tpe", "until"))],
)
def test_a_loss_is_minimised_as_its_negative_is_maximised(
    variant: str, both: Path, run: Command, kept: Path
) -> None:
    run_both(both, run, variant, kept)
    low, high = (load_study("it", f"{name}.db") for name in ("low", "high"))
    columns = ["number", "seed", "rate", "state", "score"]
    assert low.trials[columns].equals(high.trials[columns])
    assert low.curves.equals(high.curves)
    if variant == "pruned":
        assert (low.trials["state"] == "PRUNED").any()
    assert (low.metric, high.metric) == ("-val_loss", "merit")
    assert low.score_format.as_read(float(low.trials["score"].max())) > 1.9
    assert low.looks["decision"].tolist() == high.looks["decision"].tolist()
    lower, higher = (
        json.loads(run(f"show it --storage {name}.db --json").stdout) for name in ("low", "high")
    )
    assert (lower["direction"], higher["direction"]) == ("minimize", "maximize")
    assert lower["best"]["trial"] == higher["best"]["trial"]
    assert lower["best"]["score"] == pytest.approx(-higher["best"]["score"])
    assert lower["verdict"]["outcome"] == higher["verdict"]["outcome"]
    assert lower["verdict"]["p_value"] == pytest.approx(higher["verdict"]["p_value"], nan_ok=True)
    shown = run("show it --storage low.db").stdout
    assert "val_loss, in its own unit; lower is better" in shown
    assert "-val_loss" not in shown
    assert "0 problems" in run("doctor it --storage low.db").stdout


def test_optuna_sees_a_loss_as_it_was_returned(both: Path, run: Command, kept: Path) -> None:
    run_both(both, run, "pruned", kept)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    copy = optuna.load_study(study_name="it", storage="sqlite:///low.db")
    recorded = load_study("it", "low.db").trials
    assert copy.direction == optuna.study.StudyDirection.MINIMIZE
    best = recorded.loc[recorded["score"].idxmax()]
    assert copy.best_trial.number == best["number"]
    assert copy.best_value == pytest.approx(-best["score"])
    assert copy.best_trial.intermediate_values[3] == pytest.approx(copy.best_value + 1 / 3)
    assert copy.best_trial.user_attrs["val_loss"] == copy.best_value
    # values that another program changed are written again
    with sqlite3.connect("low.db") as database:
        database.execute("UPDATE trial_values SET value = -value")
    run(SWEEP.format("low"))
    assert optuna.load_study(study_name="it", storage="sqlite:///low.db").best_value > 0


def test_the_next_configuration_is_confirmed_in_the_same_direction(
    both: Path, run: Command, kept: Path
) -> None:
    run_both(both, run, "grid", kept)
    line = "confirm it --objective low:train --storage low.db --seeds 3 --jobs 1 --json"
    found = json.loads(run(line).stdout)
    assert load_study("it-confirm", "low.db").metric == "-val_loss"
    assert found["best"].startswith("rate 1")
    assert found["original"]["mean"] < 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "metric: val_loss\n",
            "lower is better of a score with the name val_loss;",
        ),
        (
            "metric: val_loss\ndirection: minimize\n",
            "has a unit of its own; write verdict",
        ),
        (
            "metric: val_loss\ndirection: down\n",
            "unknown direction 'down'; choose from",
        ),
        (
            "metric: val_loss\nselect_by: other\ndirection: minimize\n",
            "it holds for val_loss and other alike, but other is no loss by its name",
        ),
    ],
)
def test_a_new_study_states_how_its_scores_are_judged(
    text: str, message: str, both: Path, run: Command
) -> None:
    (both / "low.yaml").write_text(f"study: it\n{text}{VARIANTS['grid']}")
    for command in (SWEEP.format("low"), "plan low.yaml --objective low:train --storage low.db"):
        said = " ".join(run(command, 2).stderr.split())
        assert message in said, said


def test_a_study_that_was_begun_without_a_direction_goes_on_as_it_was(
    both: Path, run: Command
) -> None:
    """Earlier versions maximised each score; a direction that is stated later is another study."""
    file = both / "low.yaml"
    text = "study: it\nmetric: val_loss\ndirection: maximize\nverdict: {margin: 0.05}\n"
    file.write_text(text + VARIANTS["grid"].replace(", 3]", "]"))
    run(SWEEP.format("low"))
    old = text.replace("direction: maximize\n", "")
    file.write_text(old + VARIANTS["grid"])
    assert "complete, 20 of 20" in run(SWEEP.format("low")).stdout
    study: Any = load_study("it", "low.db")
    assert (study.metric, study.trials["score"].min() > 0) == ("val_loss", True)
    file.write_text(text.replace("maximize", "minimize") + VARIANTS["grid"])
    assert "direction: was maximize, now minimize" in run(SWEEP.format("low"), 2).stderr
