"""Exports of MLflow, Optuna, W&B and trackio, read as they are (`exports/README.md`)."""

import ast
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import optuna
import pandas as pd
import pytest

import mtdlab
from mtdlab.analysis import read_run_table
from mtdlab.analysis.data.cells import TableError
from mtdlab.analysis.inference.best import BestVerdict
from mtdlab.analysis.notebook import Study

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
EXPORTS = Path(__file__).parent / "exports"
RECIPES = Path(__file__).parents[3] / "docs" / "how-to" / "runs-made-elsewhere.md"
FILES = ("mlflow.csv", "wandb.csv", "trackio.json")
SETTINGS = {"lr", "momentum", "nesterov", "schedule"}


def check(study: Study, states: dict[str, int]) -> None:
    """The grid of `exports/README.md`: the highest accuracies are at lr 0.1, momentum 0.9."""
    assert study.metric == "accuracy"
    assert set(study.settings) == SETTINGS
    assert study.trials["state"].value_counts().to_dict() == states
    assert sorted(study.trials["seed"].unique()) == [0, 1, 2, 3]
    verdict = study.verdict()
    assert isinstance(verdict, BestVerdict)
    best = study.trials.set_index("number").loc[verdict.ranked[0]]
    assert (best["lr"], best["momentum"], best["schedule"]) == (0.1, 0.9, "cosine")
    assert study.trials.loc[study.trials["lr"] == 0.01, "schedule"].unique().tolist() == ["none"]


@pytest.mark.parametrize("name", FILES)
def test_an_export_is_read_without_being_changed(name: str) -> None:
    """A run that failed or goes on is never compared, though it has logged its score."""
    study = read_run_table(EXPORTS / name, score="accuracy")
    ended = {"COMPLETE": 11, "FAIL": 1, "RUNNING": 1}
    check(study, {"COMPLETE": 13} if name == "trackio.json" else ended)
    assert study.trials["run"].str.len().min() > 4
    if name == "mlflow.csv":
        assert study.facts["state"] == "column status: 11 COMPLETE, 1 RUNNING, 1 FAIL"
    assert "output_dir" in study.facts["columns not read"]
    assert "loss" in study.facts["columns not read"]


@pytest.mark.parametrize("name", FILES)
def test_the_score_of_several_is_asked_for(name: str) -> None:
    with pytest.raises(TableError, match=r"2 metrics, .*accuracy.*; choose the score with --sc"):
        read_run_table(EXPORTS / name)


def recipe(tracker: str) -> str:
    """The Python of the recipe that imports the tracker."""
    blocks = RECIPES.read_text(encoding="utf-8").split("```python\n")[1:]
    [code] = [block.partition("```")[0] for block in blocks if f"import {tracker}\n" in block]
    return code


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[pd.DataFrame]:
    """The tables that a recipe gives to `mtdlab.report`, which writes nothing."""
    tables: list[pd.DataFrame] = []

    def report(table: pd.DataFrame, **_: str) -> None:
        tables.append(table)

    monkeypatch.setattr(mtdlab, "report", report)
    return tables


def test_the_recipe_of_mlflow(read: list[pd.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    export: Any = ModuleType("mlflow")
    export.search_runs = lambda **_: pd.read_csv(EXPORTS / "mlflow.csv")
    monkeypatch.setitem(sys.modules, "mlflow", export)
    exec(recipe("mlflow"), {})
    check(read_run_table(read[0], score="accuracy"), {"COMPLETE": 11, "FAIL": 1, "RUNNING": 1})


def test_the_recipe_of_wandb(read: list[pd.DataFrame], monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = pd.read_csv(EXPORTS / "wandb.csv", keep_default_na=False)
    values = {name: recorded[name].map(ast.literal_eval) for name in ("config", "summary")}
    rows = recorded.assign(**values).to_dict("records")
    runs = [SimpleNamespace(**{str(name): row[name] for name in row}) for row in rows]
    export: Any = ModuleType("wandb")
    export.Api = lambda: SimpleNamespace(runs=lambda _: runs)
    monkeypatch.setitem(sys.modules, "wandb", export)
    exec(recipe("wandb"), {})
    check(read_run_table(read[0], score="accuracy"), {"COMPLETE": 11, "FAIL": 1, "RUNNING": 1})


def run_study(*directions: str) -> optuna.Study:
    """A grid with three seeds; a trial fails, and one is pruned after it has reported a score."""

    def objective(trial: optuna.Trial) -> float | tuple[float, ...]:
        lr, seed = trial.suggest_categorical("lr", [0.01, 0.1]), trial.suggest_int("seed", 0, 2)
        trial.set_user_attr("host", "node")
        score = 0.8 + 0.05 * (lr == 0.1) + 0.004 * seed + 0.001 * lr * seed
        if len(directions) > 1:
            return score, 1 - score
        trial.report(score, 1)
        if (lr, seed) == (0.01, 2):
            raise ArithmeticError
        if (lr, seed) == (0.1, 2):
            raise optuna.TrialPruned
        return score

    search = {"lr": [0.01, 0.1], "seed": [0, 1, 2]}
    study = optuna.create_study(
        directions=directions, sampler=optuna.samplers.GridSampler(search, seed=0)
    )
    study.optimize(objective, catch=ArithmeticError)
    return study


@pytest.mark.parametrize("multi_index", [False, True])
def test_the_table_of_a_study_of_optuna_is_read(multi_index: bool) -> None:
    frame = run_study("maximize").trials_dataframe(multi_index=multi_index)
    study = read_run_table(frame, scale="fraction")
    trials = study.trials
    assert study.metric == "value"
    assert list(study.settings) == ["lr"]
    assert trials["state"].value_counts().to_dict() == {"COMPLETE": 4, "FAIL": 1, "PRUNED": 1}
    seeds = frame["params", "seed"] if multi_index else frame["params_seed"]
    assert trials["seed"].tolist() == seeds.tolist()
    verdict = study.verdict()
    assert isinstance(verdict, BestVerdict)
    best = trials.set_index("number").loc[verdict.ranked[0]]
    assert best["lr"] == 0.1


def test_trials_of_optuna_keep_their_numbers(tmp_path: Path) -> None:
    frame = run_study("maximize").trials_dataframe()
    complete = frame[frame["state"] == "COMPLETE"]
    numbers = read_run_table(complete, scale="fraction").trials["number"].tolist()
    assert numbers == complete["number"].tolist() != [0, 1, 2, 3]
    complete.to_csv(tmp_path / "optuna.csv", index=False)
    assert (
        read_run_table(tmp_path / "optuna.csv", scale="fraction").trials["number"].tolist()
        == numbers
    )


def test_of_several_objectives_one_is_named() -> None:
    study = run_study("maximize", "minimize")
    with pytest.raises(TableError, match="2 metrics, values_0, values_1; choose the score with s"):
        read_run_table(study.trials_dataframe())
    assert (
        read_run_table(study.trials_dataframe(), score="values_0", scale="fraction").metric
        == "values_0"
    )
    frame = study.trials_dataframe().rename(columns={"values_0": "values_accuracy"})
    assert read_run_table(frame, score="accuracy").metric == "accuracy"


def test_a_study_of_optuna_without_a_seed_is_asked_for_one() -> None:
    frame = run_study("maximize").trials_dataframe().drop(columns="params_seed")
    with pytest.raises(TableError, match=r"no column seed among number, value, .*, or add one"):
        read_run_table(frame)
    study = read_run_table(frame.assign(seed=0), scale="fraction")
    assert list(study.settings) == ["lr"]


def test_names_that_mean_two_things_are_one_question() -> None:
    frame = pd.read_csv(EXPORTS / "mlflow.csv")
    seeds = frame.rename(columns={"params.seed": "params.random_state"})
    both = seeds.assign(**{"params.trainer.seed": seeds["params.random_state"]})
    asked = "'params.random_state' and 'params.trainer.seed' may be the seed; choose one with"
    with pytest.raises(TableError, match=asked):
        read_run_table(both, score="accuracy")
    study = read_run_table(both, score="accuracy", columns={"seed": "random_state"})
    assert set(study.settings) == SETTINGS
    assert read_run_table(seeds, score="accuracy").facts["seed"] == "column params.random_state"
    twice = frame.assign(**{"params.accuracy": "fine"})
    with pytest.raises(TableError, match="are all called 'accuracy'; state the whole name"):
        read_run_table(twice, score="accuracy")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 2]", "no table of runs; it must be an array of objects"),
        ('{"project": "a"}', "have one under the key rows, as trackio query --json writes it"),
        ("{", "not a JSON file"),
    ],
)
def test_json_that_is_no_table_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "t.json").write_text(text, encoding="utf-8")
    with pytest.raises(TableError, match=message):
        read_run_table(tmp_path / "t.json")


def test_a_cell_of_settings_may_hold_a_score_that_is_none() -> None:
    """W&B writes nan and inf as Python does."""
    frame = pd.read_csv(EXPORTS / "wandb.csv")
    frame.loc[0, "summary"] = "{'accuracy': nan, '_step': 0, 'loss': inf}"
    trials = read_run_table(frame, score="accuracy").trials
    assert trials["state"].tolist()[:2] == ["FAIL", "COMPLETE"]
