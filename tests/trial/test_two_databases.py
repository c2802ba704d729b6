"""Studies of one name in two databases: each has models and checkpoints of its own."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from mtdlab import load_study
from mtdlab.commands.show import find_model
from mtdlab.config.study import StudySpec
from mtdlab.data_paths import RUN
from mtdlab.errors import MtdlabError
from mtdlab.manage.doctor import examine
from mtdlab.store.progress import list_studies
from mtdlab.sweep import run as runs
from mtdlab.trial.artifacts import Artifacts
from mtdlab.trial.best_model import publish_model
from mtdlab.trial.worker import open_in_process
from tests.tiny_studies import TinyStudy, describe_run, finished
from tests.trial.test_shared_models import stop_in


@pytest.fixture
def spec(tiny_study: TinyStudy) -> StudySpec:
    return tiny_study(search={"ema_decay": [0.5]}, seeds=[0])


@pytest.fixture
def sweep(spec: StudySpec, tmp_path: Path) -> Any:
    """Runs the study in a database, with the models' folder that all share."""

    def run(database: str, artifacts: str | None = None, models: str = "m") -> runs.SweepResult:
        open_in_process.cache_clear()
        url, folder = f"sqlite:///{tmp_path / database}", tmp_path / models
        return runs.sweep(spec, url, runs.Execution(jobs=1), models=folder, artifacts=artifacts)

    return run


def shown(folder: Path, database: str) -> str | None:
    """The folder of the best trial's model, as `show` prints it."""
    url = f"sqlite:///{folder / database}"
    [overview] = list_studies(url)
    return find_model(overview, folder / "m" / "kept", url)[0]


@pytest.mark.parametrize("has_identity", [True, False])
def test_a_model_of_another_databases_study_is_not_replaced(
    has_identity: bool, sweep: Any, tmp_path: Path
) -> None:
    """Of one without the identity of its database, as of an earlier version, its trial tells."""
    sweep("one.db")
    run = tmp_path / "m" / "kept" / RUN
    if not has_identity:
        written = json.loads(run.read_text())
        del written["database"]
        run.write_text(json.dumps(written))
    before = run.read_bytes()
    with pytest.raises(MtdlabError, match=r"m/kept holds the model of a study kept in another dat"):
        sweep("two.db")
    assert not (tmp_path / "two.db").exists()
    assert sweep("two.db", models="others").exit_code == 0
    assert run.read_bytes() == before
    # the same database by another name
    (tmp_path / "one.db").rename(tmp_path / "moved.db")
    assert sweep("moved.db").exit_code == 0
    assert shown(tmp_path, "moved.db") == str(tmp_path / "m" / "kept")
    assert examine(f"sqlite:///{tmp_path / 'moved.db'}", tmp_path / "m").holds


def test_a_model_that_another_database_has_replaced_is_found(sweep: Any, tmp_path: Path) -> None:
    """Earlier versions did so."""
    sweep("one.db")
    run = tmp_path / "m" / "kept" / RUN
    other = json.loads(run.read_text())
    other["scores"] = {name: score / 2 for name, score in other["scores"].items()}
    run.write_text(json.dumps(other))
    url = f"sqlite:///{tmp_path / 'one.db'}"
    [problem] = examine(url, tmp_path / "m").studies["kept"]
    assert "kept holds a model whose seed and scores are not those of trial 0" in problem.found
    assert shown(tmp_path, "one.db") is None


def test_a_model_that_another_database_saved_meanwhile_stays(store: Any, tmp_path: Path) -> None:
    """Both studies began while neither had a model."""
    claim = finished(store, 41.0)
    for folder in (tmp_path / "trial" / "model", tmp_path / "two"):
        (folder / RUN).parent.mkdir(parents=True)
        (folder / RUN).write_text(describe_run(claim, 41.0))
    other = json.dumps(json.loads(describe_run(claim, 45.0)) | {"database": "0123456789abcdef"})
    (tmp_path / "two" / RUN).write_text(other)
    note = publish_model(tmp_path / "trial", tmp_path / "two", store, claim)
    assert note.startswith("model not saved: ")
    assert "holds the model of a study two in another database; move it away" in note
    assert (tmp_path / "two" / RUN).read_text() == other


def test_an_interrupted_trial_keeps_its_checkpoint_while_another_database_runs_its_study(
    sweep: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the models' folder, and in a place that both share with other machines."""
    place = str(tmp_path / "shared")
    with monkeypatch.context() as patch:
        stop_in(patch, 0, 3)
        assert sweep("one.db", place).exit_code == 130
    kept = sorted(path for path in (tmp_path / "m").rglob("step-*") if path.is_dir())
    shared = Artifacts(f"file://{place}").files("kept/checkpoints")
    assert kept != []
    assert shared != []
    assert sweep("two.db", place).counts == {"COMPLETE": 1}
    assert all(path.exists() for path in kept)
    assert Artifacts(f"file://{place}").files("kept/checkpoints") == shared
    # the model of the second stands where that of the first would; the trial goes on elsewhere
    shutil.copytree(tmp_path / "m" / ".checkpoints", tmp_path / "own" / ".checkpoints")
    assert sweep("one.db", models="own").counts == {"COMPLETE": 1}
    notes = load_study("kept", f"sqlite:///{tmp_path / 'one.db'}").trials["note"]
    assert notes.tolist() == ["resumed after step 3"]
