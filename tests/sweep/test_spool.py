"""A finished trial's result survives a database that cannot be written at that moment."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtdlab import load_study
from mtdlab.config import read_study
from mtdlab.errors import StorageError
from mtdlab.store import Result, Store
from mtdlab.sweep import run as runs
from mtdlab.sweep import worker as workers
from mtdlab.sweep.model_folders import kept_trial
from mtdlab.sweep.spool import RESULT, load_result, save_result
from tests.sweep.test_best_model import STUDY

RESULT_OF_A_TRIAL = Result(
    "COMPLETE",
    values={"score": 41.5, "alignment": float("nan")},
    scores={"sts_dev": 41.0},
    arrays={"curve/loss": np.array([3, np.nan, 1], np.float32)},
    environment={"device": "cpu"},
)


def test_a_result_is_read_back_for_the_same_settings_alone(tmp_path: Path) -> None:
    assert load_result(tmp_path, "{}") is None
    save_result(tmp_path, RESULT_OF_A_TRIAL, "{}")
    read = load_result(tmp_path, "{}")
    assert read is not None
    assert (read.state, read.scores, read.environment) == (
        "COMPLETE",
        {"sts_dev": 41.0},
        {"device": "cpu"},
    )
    assert read.values["score"] == 41.5
    np.testing.assert_array_equal(read.arrays["curve/loss"], [3, np.nan, 1])
    assert load_result(tmp_path, '{"steps": 2}') is None


@pytest.mark.parametrize("name", ["values.json", "arrays.safetensors"])
def test_a_damaged_result_is_not_used(tmp_path: Path, name: str) -> None:
    save_result(tmp_path, RESULT_OF_A_TRIAL, "{}")
    file = tmp_path / RESULT / name
    file.write_bytes(file.read_bytes()[:-3])
    assert load_result(tmp_path, "{}") is None


def test_a_result_that_could_not_be_recorded_is_recorded_by_the_next_sweep(
    tiny_encoder: Path,
    tiny_corpus: Path,
    tiny_pairs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = STUDY.replace("ENCODER", str(tiny_encoder)).replace("CORPUS", str(tiny_corpus))
    (tmp_path / "study.yaml").write_text(text.replace("PAIRS", str(tiny_pairs)))
    spec = read_study(tmp_path / "study.yaml", ["seeds=[0]"])
    url, models = f"sqlite:///{tmp_path / 's.db'}", tmp_path / "models"
    finish, train, trained = Store.finish, workers.train, []

    def counted(settings: Any, *arguments: Any) -> Any:
        trained.append(settings.ema_decay)
        return train(settings, *arguments)

    def locked(*_arguments: Any) -> bool:
        raise StorageError("s.db: database is locked after 60 s")

    monkeypatch.setattr(workers, "train", counted)
    monkeypatch.setattr(Store, "finish", locked)
    with pytest.raises(StorageError, match="database is locked"):
        runs.sweep(spec, url, models=models, jobs=1)
    workers._open_study.cache_clear()
    assert len(trained) == 1
    monkeypatch.setattr(Store, "finish", finish)
    # the process that ran the trial would have ended
    monkeypatch.setattr("mtdlab.sweep.optuna_study.is_dead", lambda *_: True)
    result = runs.sweep(spec, url, models=models, jobs=1)
    assert (result.counts, result.ran) == ({"COMPLETE": 3}, 3)
    workers._open_study.cache_clear()
    # the first is the best: it is trained again at the end, for its model alone
    assert trained == [0.5, 0.75, 0.9, 0.5]
    assert result.best is not None
    assert kept_trial(models / "kept") == result.best.number == 0
    trials = load_study("kept", url).trials
    assert trials["note"][0] == "its result was kept on the disk"
    assert trials["score"].notna().all()
    assert not list((models / ".checkpoints").glob("**/result"))


def test_a_full_disk_loses_no_result(tmp_path: Path) -> None:
    """safetensors reports it by an error that is none of Python's own."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import numpy as np
from pathlib import Path
from mtdlab.store import Result
from mtdlab.sweep.spool import load_result, save_result
large = Result("COMPLETE", arrays={{"curve/loss": np.zeros(100_000, np.float32)}})
save_result(Path({str(tmp_path)!r}), large, "a")
assert load_result(Path({str(tmp_path)!r}), "a") is None
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
