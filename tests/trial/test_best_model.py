"""The best trial's model, kept in a folder while the sweep runs."""

import json
import platform
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import optuna
import pytest

from mtdlab import load_study
from mtdlab.analysis.data.invocation import NO_INVOCATION
from mtdlab.analysis.report.study_facts import place_of_model
from mtdlab.api.run import run_once
from mtdlab.commands.show import _describe_study
from mtdlab.commands.sweep_summary import summary_lines
from mtdlab.config.study import StudySpec
from mtdlab.data_paths import RUN
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.methods.registry import make_settings
from mtdlab.store.claims import Claim
from mtdlab.store.progress import list_studies
from mtdlab.store.ranking import FinishedTrial, SavedModel
from mtdlab.store.store import Store
from mtdlab.sweep import run as runs
from mtdlab.trial import best_model, trainer
from mtdlab.trial import worker as workers
from mtdlab.trial.model_folders import kept_trial
from tests.tiny_studies import Killed, TinyStudy, describe_run, finished


@pytest.fixture
def spec(tiny_study: TinyStudy) -> StudySpec:
    return tiny_study()


@pytest.fixture
def of_one_seed(tiny_study: TinyStudy) -> StudySpec:
    return tiny_study(seeds=[0])


def sweep(spec: Any, place: Path) -> runs.SweepResult:
    return runs.sweep(
        spec, f"sqlite:///{place / 'studies.db'}", runs.Execution(jobs=1), models=place / "models"
    )


def test_the_folder_holds_the_best_trial_of_the_study(spec, url, tmp_path, monkeypatch) -> None:
    saved: list[tuple[int, float]] = []
    save = best_model.save_model

    def watched(folder: Path, settings: Any, inputs: Any, outcome: Any, facts: Any) -> None:
        saved.append((facts["trial"], outcome.after.dev.score))
        save(folder, settings, inputs, outcome, facts)

    monkeypatch.setattr(best_model, "save_model", watched)
    assert sweep(spec, tmp_path).counts == {"COMPLETE": 6}
    scores = load_study("kept", url).scores
    dev = scores[scores["task"] == "sts_dev"]
    expected = dev[dev["score"] == dev["score"].cummax()].drop_duplicates("score")
    assert saved == list(zip(expected["number"], expected["score"], strict=True))
    assert len(saved) < 6
    assert (tmp_path / "models" / "kept" / "config.json").exists()


@pytest.mark.parametrize(("number", "is_staged"), [(1, True), (5, False)])
def test_of_trials_with_equal_scores_the_first_is_staged(
    number: int, is_staged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[Any] = []
    monkeypatch.setattr(best_model, "save_model", lambda *given: saved.append(given))
    best = FinishedTrial(3, 0, {}, "COMPLETE", ranking=50.0)
    store: Any = SimpleNamespace(best_trial=lambda: best)
    trained: Any = SimpleNamespace(settings=None, inputs=None, outcome=None, facts={})
    study, claim = SimpleNamespace(store=store), Claim(1, "a", 0, {}, number)
    run: Any = SimpleNamespace(study=study, claim=claim, folder=tmp_path)
    assert best_model.stage_model(run, 50.0, trained, None) == []
    assert bool(saved) is is_staged


@pytest.mark.parametrize("left", ["", ".model.building-x", "model"])
@pytest.mark.parametrize("deaths", [0, 1, 2])
def test_only_deaths_while_saving_keep_a_trial_from_saving_its_model(
    left: str, deaths: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two deaths from outside, before the first checkpoint, cost the model of the best trial."""
    if left:
        (tmp_path / left).mkdir()
    saved: list[Any] = []
    monkeypatch.setattr(best_model, "save_model", lambda *given: saved.append(given))
    trained: Any = SimpleNamespace(settings=None, inputs=None, outcome=None, facts={})
    study = SimpleNamespace(store=SimpleNamespace(best_trial=lambda: None))
    claim = Claim(1, "a", 0, {}, 3, deaths=deaths)
    run: Any = SimpleNamespace(study=study, claim=claim, folder=tmp_path)
    notes = best_model.stage_model(run, 50.0, trained, None)
    is_refused = deaths == 2 and bool(left)
    assert (bool(saved), bool(notes)) == (not is_refused, is_refused)
    assert all("has died 2 times, also while saving" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("killed_in", ["finish", "publish_model", "replace_folder"])
def test_the_model_of_a_trial_whose_process_was_killed_is_published_without_training(
    of_one_seed, tmp_path, monkeypatch, killed_in: str
) -> None:
    (tmp_path / "straight").mkdir()
    best = sweep(of_one_seed, tmp_path / "straight").best
    workers.open_in_process.cache_clear()
    place = {"finish": Store, "publish_model": trainer, "replace_folder": best_model}[killed_in]
    whole = getattr(place, killed_in)

    def killed(*arguments: Any) -> Any:
        staged = (tmp_path / "models" / ".checkpoints").rglob("run.json")
        if any(json.loads(path.read_text())["trial"] == best.number for path in staged):
            raise Killed
        return whole(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(place, killed_in, killed)
        with pytest.raises(Killed, match=r"^$"):
            sweep(of_one_seed, tmp_path)
    workers.open_in_process.cache_clear()
    trained = []
    start = trainer.train

    def train(settings: Any, *others: Any) -> Any:
        trained.append((settings.ema_decay, settings.seed))
        return start(settings, *others)

    monkeypatch.setattr(trainer, "train", train)
    result = sweep(of_one_seed, tmp_path)
    assert (result.counts, result.best.number) == ({"COMPLETE": 3}, best.number)
    assert (best.parameters["ema_decay"], best.seed) not in trained
    assert kept_trial(tmp_path / "models" / "kept", result.storage) == best.number
    weights = "kept/model.safetensors"
    again, straight = (path / "models" / weights for path in (tmp_path, tmp_path / "straight"))
    assert again.read_bytes() == straight.read_bytes()
    assert not (tmp_path / "models" / ".checkpoints").exists()
    folder = str(tmp_path / "models" / "kept")
    assert result.model == SavedModel(best.number, platform.node(), folder)
    assert sweep(of_one_seed, tmp_path).ran == 0


@pytest.mark.slow
def test_a_model_that_is_missing_here_is_named_with_its_host(
    of_one_seed, url, tmp_path, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("mtdlab.trial.best_model.platform.node", lambda: "gpu-7")
        result = sweep(of_one_seed, tmp_path)
    models = tmp_path / "models"
    place = f"the model of trial {result.best.number} is on host gpu-7 in folder {models / 'kept'}"
    assert place not in " ".join(summary_lines(result, models, NO_INVOCATION))
    models.rename(tmp_path / "moved")
    assert place in " ".join(summary_lines(result, models, NO_INVOCATION))
    study = load_study("kept", url)
    assert place_of_model(study) == f"{models / 'kept'} on host gpu-7"
    [overview] = list_studies(url)
    shown = dict(_describe_study(study, overview, models / "kept", url))["model"]
    assert shown.endswith(place)


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (OSError(28, "No space left on device"), "OSError: [Errno 28] No space left on device"),
        pytest.param(KeyError("esimcse"), "KeyError: 'esimcse'", marks=pytest.mark.slow),
        (TrialError("the saved model scores 1.00 on dev"), "the saved model scores 1.00 on dev"),
    ],
)
def test_a_model_that_cannot_be_saved_is_a_note_on_its_trial(
    of_one_seed, url, tmp_path, monkeypatch, capsys, error: Exception, note: str
) -> None:
    recorded: list[str] = []

    def broken(_folder: Path, _settings: Any, _inputs: Any, _outcome: Any, facts: Any) -> None:
        recorded.append(load_study("kept", url).trials["state"][facts["trial"]])
        raise error

    monkeypatch.setattr(best_model, "save_model", broken)
    assert sweep(of_one_seed, tmp_path).counts == {"COMPLETE": 3}
    trials = load_study("kept", url).trials
    assert trials["note"][0] == f"model not saved: {note}"
    assert (trials["reason"] == "").all()
    assert trials["score"].notna().all()
    # before the result, so that a killed process leaves it
    assert set(recorded) == {"RUNNING"}
    assert f"trial 0: model not saved: {note}" in capsys.readouterr().err
    trial = optuna.load_study(study_name="kept", storage=url).trials[0]
    assert trial.user_attrs["note"] == f"model not saved: {note}"


def test_a_models_folder_that_cannot_be_made_is_a_note_too(store: Store, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder would be")
    claim = finished(store, 40.0)
    note = best_model.publish_model(tmp_path / "a-0", tmp_path / "models" / "kept", store, claim)
    assert note.startswith("model not saved: ")
    assert store.counts() == {"COMPLETE": 1, "WAITING": 1}


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_workers_that_finish_at_once_the_better_one_publishes(
    store: Store, tmp_path: Path, first: int
) -> None:
    """Whichever of them gets the folder's lock first."""
    claims = [finished(store, score) for score in (41.0, 40.0)]
    for at in (first, 1 - first):
        claim = claims[at]
        folder = tmp_path / str(claim.number)
        (folder / "model" / "mtdlab").mkdir(parents=True)
        (folder / "model" / RUN).write_text(describe_run(claim, (41.0, 40.0)[at]))
        assert best_model.publish_model(folder, tmp_path / "two", store, claim) == ""
    assert kept_trial(tmp_path / "two", store.database.url) == claims[0].number


def test_a_single_run_refuses_a_folder_of_another_kind_first(tmp_path, monkeypatch) -> None:
    trained = Mock(side_effect=AssertionError("it trained first"))
    monkeypatch.setattr("mtdlab.training.inputs.load_inputs", trained)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(MtdlabError, match="exists and is not a saved model"):
        run_once(make_settings(), tmp_path)
