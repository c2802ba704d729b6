"""The best trial's model, kept while the sweep goes on."""

from pathlib import Path
from typing import Any

import pytest

from mtdlab import load_study
from mtdlab.config import TrainerSettings, read_study
from mtdlab.errors import MtdlabError
from mtdlab.sweep import best_model as keep
from mtdlab.sweep import run as runs
from mtdlab.sweep import single
from mtdlab.sweep import worker as workers

STUDY = """
study: kept
trainer:
  encoder: ENCODER
  corpus: CORPUS
  evaluation: PAIRS
  batch_size: 8
  queue_size: 16
  initial_queue_size: 4
  steps: 4
  evaluate_every: 2
  learning_rate: 5e-3
search: {ema_decay: [0.5, 0.75, 0.9]}
seeds: [0, 1]
"""


@pytest.fixture
def spec(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path, tmp_path: Path) -> Any:
    text = STUDY.replace("ENCODER", str(tiny_encoder)).replace("CORPUS", str(tiny_corpus))
    (tmp_path / "study.yaml").write_text(text.replace("PAIRS", str(tiny_pairs)))
    yield read_study(tmp_path / "study.yaml")
    workers._desk.cache_clear()


def sweep(spec: Any, place: Path) -> runs.SweepResult:
    return runs.sweep(spec, f"sqlite:///{place / 's.db'}", models=place / "models", jobs=1)


def test_the_folder_holds_the_best_trial_of_the_study(spec, tmp_path, monkeypatch) -> None:
    saved: list[tuple[int, float]] = []
    save = keep.save_model

    def watched(folder: Path, settings: Any, materials: Any, outcome: Any, facts: Any) -> None:
        saved.append((facts["trial"], outcome.after.test.score))
        save(folder, settings, materials, outcome, facts)

    monkeypatch.setattr(keep, "save_model", watched)
    assert sweep(spec, tmp_path).counts == {"COMPLETE": 6}
    trials = load_study("kept", f"sqlite:///{tmp_path / 's.db'}").trials
    records = trials["score"].cummax()
    expected = trials[trials["score"] == records].drop_duplicates("score")
    assert saved == list(zip(expected["number"], expected["score"], strict=True))
    assert len(saved) < 6
    assert (tmp_path / "models" / "kept" / "config.json").exists()


def test_a_full_disk_costs_the_model_not_the_trial(spec, tmp_path, monkeypatch) -> None:
    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keep, "save_model", full)
    assert sweep(spec, tmp_path).counts == {"COMPLETE": 6}
    reasons = load_study("kept", f"sqlite:///{tmp_path / 's.db'}").trials["reason"]
    assert reasons[0] == "the model was not saved: [Errno 28] No space left on device"


def test_a_folder_with_something_else_is_refused_before_anything_runs(spec, tmp_path) -> None:
    (tmp_path / "models" / "kept").mkdir(parents=True)
    (tmp_path / "models" / "kept" / "notes.txt").write_text("mine")
    with pytest.raises(MtdlabError, match="kept: holds something else than a saved model"):
        sweep(spec, tmp_path)
    assert load_study("kept", f"sqlite:///{tmp_path / 's.db'}").trials.empty


def test_a_single_run_refuses_such_a_folder_before_it_trains(tmp_path, monkeypatch) -> None:
    def trained(*_arguments: Any) -> None:
        raise AssertionError("it trained first")

    monkeypatch.setattr(single, "load_inputs", trained)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(MtdlabError, match="holds something else than a saved model"):
        single.run_once(TrainerSettings(), tmp_path)
