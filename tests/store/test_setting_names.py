"""Studies that were recorded when `prediction_dim` was the dimension inside the predictor."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from analysis.experiments.catalogue import EXPERIMENTS
from analysis.experiments.compare import compute_experiment
from mtdlab import load_study
from mtdlab.config import make_settings, read_study
from mtdlab.errors import MtdlabError
from mtdlab.store.recorded import read_recorded, read_trial
from mtdlab.store.setting_names import present_parameters, present_settings
from mtdlab.sweep import run as runs

RECORDED = Path(__file__).parent / "data" / "schema-5.db"
FILE = """
study: grid
metric: sts_test
trainer: {batch_size: 8, steps: 4, evaluate_every: 2, preset: published-code}
search:
  prediction_dim: [32, 64]
seeds: [0, 1]
"""


@pytest.fixture
def earlier(tmp_path: Path) -> Path:
    """A database of an earlier version whose study `grid` searched `prediction_dim`."""
    path = tmp_path / "studies.db"
    shutil.copy(RECORDED, path)
    with closing(sqlite3.connect(path)) as connection:
        [(study, text)] = connection.execute(
            "SELECT id, identity FROM mtdlab_studies WHERE name = 'grid'"
        )
        identity = json.loads(text)
        identity["trainer"].pop("prediction_dim")
        identity["search"] = {"prediction_dim": "searched"}
        connection.execute(
            "UPDATE mtdlab_studies SET identity = ?, file_text = ? WHERE id = ?",
            (json.dumps(identity), FILE, study),
        )
        rows = connection.execute(
            "SELECT id, number, settings FROM mtdlab_trials WHERE study_id = ?", (study,)
        ).fetchall()
        for row, number, settings in rows:
            values: Any = None if settings is None else json.loads(settings)
            width = 32 if (number or 0) % 2 else 64
            changed = values and values | {"prediction_dim": width, "preset": "published-code"}
            connection.execute(
                "UPDATE mtdlab_trials SET settings = ?, parameters = ? WHERE id = ?",
                (changed and json.dumps(changed), json.dumps({"prediction_dim": width}), row),
            )
        connection.commit()
    return path


def test_the_hidden_dimension_is_shown_under_its_present_name(earlier: Path) -> None:
    study = load_study("grid", str(earlier))
    assert "prediction_dim" not in study.trials
    assert "prediction_dim" not in study.settings
    assert study.trials["predictor_hidden_dim"].tolist() == [64, 32, 64, 32, 64, 32, 64]
    assert "inside the prediction head" in study.settings["predictor_hidden_dim"].description
    assert "predictor_hidden_dim: [32, 64]" in study.study_file
    trial = read_trial(f"sqlite:///{earlier}", "grid", 1)
    assert trial.parameters == {"predictor_hidden_dim": 32}
    assert trial.settings["predictor_hidden_dim"] == 32
    assert "prediction_dim" not in trial.settings
    text = read_recorded(f"sqlite:///{earlier}", "grid").text
    assert text == FILE.replace("prediction_dim", "predictor_hidden_dim")


def test_it_is_not_compared_with_the_published_prediction_dimension(earlier: Path) -> None:
    """Table 6a is of queries, keys and queue."""
    [experiment] = [each for each in EXPERIMENTS if each.name == "prediction_dim"]
    study = load_study("grid", str(earlier))
    assert compute_experiment(study.trials, experiment, study.settings, width=768).empty
    renamed = study.trials.rename(columns={"predictor_hidden_dim": "prediction_dim"})
    assert not compute_experiment(renamed, experiment, study.settings, width=768).empty


def test_a_trial_is_repeated_as_it_ran(earlier: Path) -> None:
    """Not with what its preset has gained since."""
    recorded = dict(read_trial(f"sqlite:///{earlier}", "grid", 0).settings)
    recorded.pop("mtd", None)
    values = make_settings(**recorded).model_dump()
    assert values["preset"] == "published-code"
    assert (values["prediction_dim"], values["predictor_hidden_dim"]) == (None, 64)
    assert (values["max_gradient_norm"], values["head_initialisation"]) == (0, "torch")
    assert (values["head_norm_eps"], values["weight_decay_exceptions"]) == (1e-5, "none")
    assert values["augmented_branch"] == "online"


def test_it_is_not_resumed_with_the_other_meaning(earlier: Path, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(FILE)
    with pytest.raises(MtdlabError, match=r"search\.predictor_hidden_dim: was searched, now None"):
        runs.sweep(read_study(path), f"sqlite:///{earlier}", jobs=1)


def test_present_records_keep_both_dimensions() -> None:
    settings = make_settings(prediction_dim=24, predictor_hidden_dim=48).model_dump()
    assert present_settings(settings) == settings
    assert present_parameters({"prediction_dim": 24}, settings) == {"prediction_dim": 24}
    assert present_parameters({"prediction_dim": 24}, {}) == {"prediction_dim": 24}


def test_another_methods_setting_keeps_its_name() -> None:
    settings = {"method": "other", "prediction_dim": 24}
    assert present_settings(settings) == settings
