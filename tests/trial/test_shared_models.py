"""A study with --artifacts: its place, the best trial's model in it, trials taken over."""

import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from mtdlab import load_study, run_study
from mtdlab.analysis.data.invocation import NO_INVOCATION
from mtdlab.analysis.report.study_facts import place_of_model
from mtdlab.commands.show import _describe_study
from mtdlab.commands.study_exchange import export_study, import_study
from mtdlab.commands.sweep_summary import summary_fields, summary_lines
from mtdlab.config.study import StudySpec
from mtdlab.data_paths import RUN
from mtdlab.errors import MtdlabError
from mtdlab.manage.doctor import examine
from mtdlab.store.claims import Claim, Result
from mtdlab.store.progress import list_studies
from mtdlab.store.ranking import SavedModel
from mtdlab.store.store import Store
from mtdlab.sweep import run as runs
from mtdlab.trial import trainer
from mtdlab.trial import worker as workers
from mtdlab.trial.artifacts import Artifacts
from mtdlab.trial.best_model import share_model
from mtdlab.trial.model_folders import CHECKPOINTS, kept_trial
from mtdlab.trial.monitor import TrialMonitor
from tests.tiny_studies import Killed, TinyStudy, describe_run, finished

# memory is as remote as S3; `test_artifacts.py` and `test_trial_checkpoints.py` have all three
EACH_PLACE = pytest.mark.parametrize(
    "shared_url",
    ["memory", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("file", "s3"))],
    indirect=True,
)


@pytest.fixture
def spec(tiny_study: TinyStudy) -> StudySpec:
    return tiny_study(search={"ema_decay": [0.5, 0.9]}, seeds=[0])


@pytest.fixture
def sweep(spec: StudySpec, url: str, tmp_path: Path) -> Callable[..., runs.SweepResult]:
    """A sweep on a machine, which is a folder of models, in a process of its own."""

    def run(host: str, artifacts: str | None = None, **options: Any) -> runs.SweepResult:
        workers.open_in_process.cache_clear()
        place = tmp_path / host
        return runs.sweep(
            spec, url, runs.Execution(jobs=1, **options), models=place, artifacts=artifacts
        )

    return run


def stop_in(monkeypatch: pytest.MonkeyPatch, number: int, step: int) -> None:
    """Request a stop after a step of a trial, as a signal does."""
    passed = TrialMonitor.passed

    def stopping(self: TrialMonitor, at: int, shown: int) -> None:
        if self.run.claim.number == number and at == step:
            self.run.stop.request()
        passed(self, at, shown)

    monkeypatch.setattr(TrialMonitor, "passed", stopping)


@EACH_PLACE
def test_a_trial_interrupted_on_one_machine_ends_on_another_as_one_that_was_not(
    spec, sweep, url, shared_url, tmp_path, monkeypatch, capsys
) -> None:
    whole = f"sqlite:///{tmp_path / 'whole.db'}"
    best = runs.sweep(spec, whole, runs.Execution(jobs=1), models=tmp_path / "whole").best.number
    with monkeypatch.context() as patch:
        stop_in(patch, best, 3)
        assert sweep("a", shared_url).exit_code == 130
    artifacts = Artifacts(shared_url)
    assert any(file.endswith("manifest.json") for file in artifacts.files("kept/checkpoints"))
    with monkeypatch.context() as patch:
        # the end of a sweep would remove the checkpoints too
        patch.setattr("mtdlab.trial.trainer.Trainer.restore", lambda *_: None)
        # the second sweep names no place: that of the first one is recorded
        result = sweep("b")
    assert result.counts == {"COMPLETE": 2}
    study, expected = load_study("kept", url), load_study("kept", whole)
    assert study.trials["note"][best] == "resumed after step 3"
    for name in ("score", "best_step"):
        assert study.trials[name].tolist() == expected.trials[name].tolist()
    for one, other in zip(study.curves, expected.curves, strict=True):
        assert study.curves[one].equals(expected.curves[other])
    assert artifacts.files("kept/checkpoints") == []
    # those of the first machine are removed by its next sweep, which trains nothing again
    assert (tmp_path / "a" / CHECKPOINTS).exists()
    assert sweep("a").ran == 0
    assert not (tmp_path / "a" / CHECKPOINTS).exists()
    assert "its process ended before its model" not in capsys.readouterr().err


@EACH_PLACE
def test_the_best_model_is_shared_and_named_on_every_machine(
    sweep, url, shared_url, tmp_path
) -> None:
    result = sweep("a", shared_url)
    number, model = result.best.number, result.model
    assert model.trial == number
    assert model.is_shared
    assert model.folder.startswith(f"{shared_url}/kept/models/trial-{number}-")
    artifacts = Artifacts(shared_url)
    [name] = {file.split("/")[0] for file in artifacts.files("kept/models")}
    assert model.folder.endswith(name)
    # it is the model of the first machine
    back = tmp_path / "back"
    (back / RUN).parent.mkdir(parents=True)
    artifacts.download(f"kept/models/{name}", ["model.safetensors", str(RUN)], back)
    for file in ("model.safetensors", RUN):
        assert (back / file).read_bytes() == (tmp_path / "a" / "kept" / file).read_bytes()
    elsewhere = sweep("b")
    assert elsewhere.ran == 0
    lines = summary_lines(elsewhere, tmp_path / "b", NO_INVOCATION)
    assert f"model: {model.path}" in lines
    assert summary_fields(elsewhere, tmp_path / "b", NO_INVOCATION)["model"] == model.path
    [overview] = list_studies(url)
    study = load_study("kept", url)
    shown = dict(_describe_study(study, overview, tmp_path / "b" / "kept", url))["model"]
    assert shown == model.path
    is_file, inside = shared_url.startswith("file"), f"kept/models/{name} of the study's artifacts"
    assert place_of_model(study) == (inside if is_file else model.folder)
    found = examine(url, tmp_path / "b")
    assert found.holds
    assert str(model) in found.notes["kept"]


@pytest.mark.slow
def test_the_model_of_an_earlier_best_trial_on_this_machine_is_no_problem(
    sweep, url, tmp_path
) -> None:
    sweep("a", f"file://{tmp_path / 'shared'}")
    run = json.loads((tmp_path / "a" / "kept" / RUN).read_text())
    (tmp_path / "a" / "kept" / RUN).write_text(json.dumps(run | {"trial": 7}))
    assert examine(url, tmp_path / "a").holds


@pytest.mark.slow
def test_a_place_that_fails_later_is_a_note_and_the_next_sweep_shares_the_model(
    sweep, url, tmp_path, monkeypatch
) -> None:
    place = f"file://{tmp_path / 'shared'}"
    with monkeypatch.context() as patch:
        denied = Mock(side_effect=PermissionError(13, "Access Denied"))
        patch.setattr("fsspec.implementations.local.LocalFileSystem.put_file", denied)
        result = sweep("a", place)
    assert result.counts == {"COMPLETE": 2}
    assert result.exit_code == 0
    notes = load_study("kept", url).trials["note"]
    assert notes[result.best.number].startswith("model not shared: shared place file://")
    host, folder = platform.node(), str(tmp_path / "a" / "kept")
    assert result.model == SavedModel(result.best.number, host, folder)
    assert sweep("a").model.is_shared


@pytest.mark.slow
def test_a_study_that_was_begun_without_a_place_gets_one(sweep, tmp_path) -> None:
    assert not sweep("a").model.is_shared
    result = sweep("a", str(tmp_path / "shared"))
    assert result.ran == 0
    assert result.model.folder.startswith(f"file://{tmp_path}/shared/kept/models/trial-")


@pytest.mark.slow
@EACH_PLACE
def test_a_model_that_a_killed_machine_staged_is_published_by_another(
    sweep, shared_url, tmp_path, monkeypatch
) -> None:
    best = sweep("straight", f"file://{tmp_path / 'straight-shared'}").best.number
    (tmp_path / "studies.db").unlink()
    publish = trainer.publish_model

    def killed(folder: Path, model: Path, store: Store, claim: Claim) -> str:
        if claim.number == best:
            raise Killed
        return publish(folder, model, store, claim)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "publish_model", killed)
        with pytest.raises(Killed, match=r"^$"):
            sweep("a", shared_url)
    assert Artifacts(shared_url).files("kept/checkpoints")
    result = sweep("b")
    assert result.counts == {"COMPLETE": 2}
    assert (result.model.trial, result.model.is_shared) == (best, True)
    weights = Path("kept") / "model.safetensors"
    straight = tmp_path / "straight" / weights
    assert (tmp_path / "b" / weights).read_bytes() == straight.read_bytes()
    assert Artifacts(shared_url).files("kept/checkpoints") == []


@EACH_PLACE
@pytest.mark.slow
def test_the_shared_checkpoints_of_a_failed_trial_are_removed(
    sweep, shared_url, monkeypatch
) -> None:
    monkeypatch.setattr("mtdlab.trial.checkpoints.LEAST_SECONDS", 0)
    monkeypatch.setattr("mtdlab.trial.checkpoints.COST", 1e9)
    artifacts, found = Artifacts(shared_url), []

    def broken(*_: object) -> Result:
        found.append(artifacts.files("kept/checkpoints"))
        raise ValueError("broken")

    monkeypatch.setattr("mtdlab.trial.trainer.complete", broken)
    # the end of a sweep would remove them too
    monkeypatch.setattr("mtdlab.trial.trainer.Trainer.restore", lambda *_: None)
    assert sweep("a", shared_url).counts == {"FAIL": 2}
    assert all(found)
    assert artifacts.files("kept/checkpoints") == []


def a_model(folder: Path, claim: Claim, score: float) -> Path:
    (folder / "two" / RUN).parent.mkdir(parents=True)
    (folder / "two" / RUN).write_text(describe_run(claim, score))
    (folder / "two" / "config.json").write_text(str(claim.number))
    return folder / "two"


@pytest.mark.parametrize("overtaken", [False, True])
def test_of_two_machines_that_share_at_once_the_better_model_stays(
    store, shared_url, tmp_path, monkeypatch, overtaken
) -> None:
    """The first one has uploaded its model, but not recorded it, when the second one ends."""
    artifacts = Artifacts(shared_url)
    worse = finished(store, 40.0)
    first, upload = a_model(tmp_path / "a", worse, 40.0), Artifacts.upload

    def share_better() -> None:
        better = finished(store, 41.0)
        share_model(a_model(tmp_path / "b", better, 41.0), store, artifacts)

    def overtake(self: Artifacts, folder: Path, name: str, last: str) -> None:
        upload(self, folder, name, last)
        if folder == first and overtaken:
            share_better()

    monkeypatch.setattr(Artifacts, "upload", overtake)
    share_model(first, store, artifacts)
    if not overtaken:
        share_better()
    best = store.best_trial()
    assert best.score == 41.0
    model = store.saved_model()
    assert (model.trial, model.is_shared) == (best.number, True)
    [name] = {file.split("/")[0] for file in artifacts.files("two/models")}
    assert model.folder == f"{shared_url}/two/models/{name}"
    # neither uploads again, nor the worse one in place of the better
    share_model(first, store, artifacts)
    share_model(tmp_path / "b" / "two", store, artifacts)
    assert store.saved_model() == model


def test_another_place_than_the_recorded_one_is_refused(sweep, tmp_path, monkeypatch) -> None:
    sweep("a", str(tmp_path / "one"))
    with pytest.raises(MtdlabError, match=r"in file://.*/one, not in file://.*/two; leave --art"):
        sweep("b", str(tmp_path / "two"))
    assert not (tmp_path / "two").exists()
    # also where two sweeps begin at once: neither has found the place of the other
    with monkeypatch.context() as patched:
        patched.setattr(runs, "choose_artifacts", lambda *_: f"file://{tmp_path}/two")
        with pytest.raises(MtdlabError, match=r"in file://.*/one, not in file://.*/two"):
            sweep("b", str(tmp_path / "two"))
    assert sweep("b", f"file://{tmp_path}/one/").ran == 0


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("s3://id:secret@bucket/runs", "contains a password or a key"),
        ("nothing://place", r"nothing://place cannot be used \(ValueError: Protocol not known"),
        ("/dev/null/runs", r"file:///dev/null/runs cannot be used \(NotADirectoryError"),
        ("MODELS", "--artifacts and --models are the same folder"),
    ],
)
def test_a_place_that_cannot_be_used_is_refused_before_anything_is_recorded(
    sweep, tmp_path, place, sentence
) -> None:
    with pytest.raises(MtdlabError, match=sentence) as refused:
        sweep("a", place.replace("MODELS", str(tmp_path / "a")))
    assert refused.value.exit_code == 2
    assert not (tmp_path / "studies.db").exists()


@pytest.mark.usefixtures("s3_url")
def test_a_missing_bucket_is_refused_before_anything_is_recorded(sweep, tmp_path) -> None:
    with pytest.raises(MtdlabError, match="s3://misspelt cannot be used") as refused:
        sweep("a", "s3://misspelt")
    assert refused.value.exit_code == 2
    assert not (tmp_path / "studies.db").exists()


@pytest.mark.usefixtures("spec")
def test_run_study_takes_it_and_the_next_call_in_the_process_uses_it(tmp_path) -> None:
    options: Any = {"storage": str(tmp_path / "studies.db"), "models": tmp_path / "m", "jobs": 1}
    file = tmp_path / "study.yaml"
    assert not run_study(file, **options).model.is_shared
    overrides = {"seeds": [0, 1]}
    result = run_study(file, **options, overrides=overrides, artifacts=str(tmp_path / "shared"))
    assert (result.ran, result.model.is_shared) == (2, True)


@pytest.mark.slow
def test_a_copy_of_a_study_shares_nothing_with_it(sweep, url, tmp_path) -> None:
    sweep("a", str(tmp_path / "shared"))
    export_study("kept", url, tmp_path / "copy.db")
    import_study(tmp_path / "copy.db", url, "again")
    assert Store(url, 1).artifacts() == f"file://{tmp_path / 'shared'}"
    assert Store(url, 2).artifacts() is None
    assert kept_trial(tmp_path / "a" / "kept", url) is not None
