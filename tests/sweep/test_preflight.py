"""Checks before a study is created: what a refused sweep leaves behind, and when none is needed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stub_store import end_trial

from mtdlab.config.study import StudySpec
from mtdlab.cost.estimate import estimate
from mtdlab.errors import MtdlabError
from mtdlab.store.claims import Result
from mtdlab.store.progress import list_studies
from mtdlab.sweep import run as runs
from mtdlab.sweep.open_study import has_trials_left, open_study
from mtdlab.trial.model_folders import check_writable
from mtdlab.trial.study import Job, objective_of
from tests.tiny_studies import TinyStudy

Write = Callable[..., StudySpec]


@pytest.fixture
def write(tiny_study: TinyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes a study file of two trials whose inputs exist, but for what is given."""
    monkeypatch.chdir(tmp_path)
    plain = {"study": "a", "search": {"ema_decay": [0.5, 0.75]}, "seeds": [0]}
    return lambda trainer=None, **keys: tiny_study(trainer, **plain | keys)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its content, every folder with None."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"corpus": "missing.txt"}, "missing.txt"),
        ({"encoder": "missing-encoder"}, "encoder missing-encoder: neither a folder here"),
        ({"evaluation": "missing-pairs"}, "missing-pairs"),
        ({"tasks": ["STS12"]}, "data of trainer.tasks are missing"),
        ({"batch_size": 5000}, "5000"),
        ({}, "needs the package tensorboard"),
    ],
)
@pytest.mark.parametrize("existing", [False, True])
def test_a_refused_sweep_leaves_no_study_and_no_file(
    write: Write,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, Any],
    message: str,
    existing: bool,
) -> None:
    monkeypatch.setattr("mtdlab.errors.find_spec", lambda _: None)
    if existing:
        open_study(write(study="other"), url)
    spec = write(changed, tracking="none" if changed else "tensorboard")
    before = snapshot(tmp_path)
    with pytest.raises(MtdlabError, match=message):
        runs.sweep(spec, url, runs.Execution(jobs=1))
    assert snapshot(tmp_path) == before
    if existing:
        assert [study.name for study in list_studies(url)] == ["other"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ("file", r"models cannot be saved in .*/file: .*/file is not a folder; name another"),
        ("file/models", r"models cannot be saved in .*/models: .*/file is not a folder"),
        ("/proc/models", r"models cannot be saved in /proc/models: /proc cannot be written to \("),
    ],
)
def test_models_that_cannot_be_saved_are_refused_before_the_study_is_created(
    write: Write, url: str, tmp_path: Path, models: str, message: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    spec = write()
    before = snapshot(tmp_path)
    with pytest.raises(MtdlabError, match=message):
        runs.sweep(spec, url, runs.Execution(jobs=1), models=Path(models))
    assert snapshot(tmp_path) == before


def test_a_folder_of_another_kind_in_place_of_the_model_is_refused_first(
    write: Write, url: str, tmp_path: Path
) -> None:
    (tmp_path / "models" / "a").mkdir(parents=True)
    (tmp_path / "models" / "a" / "notes.txt").write_text("mine")
    spec = write()
    before = snapshot(tmp_path)
    with pytest.raises(MtdlabError, match="exists and is not a saved model"):
        runs.sweep(spec, url, runs.Execution(jobs=1))
    assert snapshot(tmp_path) == before


def test_the_check_of_a_folder_leaves_nothing_in_it(tmp_path: Path) -> None:
    check_writable(tmp_path / "models" / "deeper")
    assert not any(tmp_path.iterdir())


def test_every_searched_input_is_checked(write: Write, tiny_encoder: Path, tmp_path: Path) -> None:
    search = {"encoder": [str(tiny_encoder), "second-encoder"], "ema_decay": [0.5, 0.75]}
    spec = write({"encoder": None}, search=search)
    with pytest.raises(MtdlabError, match="encoder second-encoder: neither a folder here"):
        objective_of(spec).check(Job(spec, "", tmp_path / "models"))


def test_the_scores_of_a_recorded_study_keep_their_unit(
    write: Write, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen, spec = list[bool](), write()

    def check(*_: object, is_new: bool) -> dict[str, str]:
        seen.append(is_new)
        return {}

    monkeypatch.setattr("mtdlab.trial.trainer.check_inputs", check)
    for _ in range(2):
        objective_of(spec).check(Job(spec, url, tmp_path / "models"))
        open_study(spec, url)
    assert seen == [True, False]


def finish(spec: StudySpec, url: str, state: str = "COMPLETE") -> None:
    """Record how both trials ended."""
    store = open_study(spec, url)
    for _ in range(2):
        end_trial(store, Result(state, values={"score": 1.0}))


def test_trials_are_left_until_all_have_ended(write: Write, url: str) -> None:
    spec = write()
    assert has_trials_left(spec, url)
    open_study(spec, url)
    assert has_trials_left(spec, url)
    finish(spec, url)
    assert not has_trials_left(spec, url)
    assert has_trials_left(write(seeds=[0, 1]), url)
    failed = write(study="b")
    finish(failed, url, "FAIL")
    assert not has_trials_left(failed, url)
    assert has_trials_left(failed, url, retry_failed=True)


def test_a_complete_study_answers_without_its_inputs(write: Write, url: str) -> None:
    spec = write({"corpus": "gone.txt"})
    finish(spec, url)
    assert runs.sweep(spec, url, runs.Execution(jobs=1)).counts == {"COMPLETE": 2}


def test_a_queue_below_a_batch_is_warned_of(write: Write) -> None:
    *_, warning = write({"queue_size": 3, "batch_size": 4, "initial_queue_size": 0}).warnings()
    assert warning == (
        "queue_size 3 is below batch_size 4: of the 4 keys of a step 3 enter the queue, and "
        "replace all that are in it; the others are never negatives of a later step"
    )
    for size in (0, 4):
        queue = {"queue_size": size, "batch_size": 4, "initial_queue_size": 0}
        assert not any("batch_size" in warning for warning in write(queue).warnings())


def test_every_missing_input_is_reported_at_once(write: Write, tmp_path: Path) -> None:
    missing = {"corpus": "no.txt", "encoder": "no-encoder", "evaluation": str(tmp_path)}
    spec = write(missing)
    sentences = [
        r"3 inputs are missing or cannot be read:\n",
        r"  encoder no-encoder: neither a folder here nor in the local hub cache; .*\n",
        r"  corpus no.txt: cannot be read: no such file or folder in the working folder.*\n",
        r"  evaluation .*sts-dev.csv: .*$",
    ]
    with pytest.raises(MtdlabError, match="".join(sentences)):
        objective_of(spec).check(Job(spec, "", tmp_path / "models"))
    with pytest.raises(MtdlabError, match="".join(sentences)):
        estimate(spec)
