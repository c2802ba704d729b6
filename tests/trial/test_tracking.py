"""Training curves as TensorBoard event files."""

import sys
from pathlib import Path

import numpy as np
import pytest

from mtdlab.errors import MtdlabError, require
from mtdlab.evaluation.suite import Evaluation
from mtdlab.methods.registry import make_settings
from mtdlab.training.inputs import EncoderScores
from mtdlab.training.loop import Outcome
from mtdlab.trial.trainer import track

NAN = float("nan")


@pytest.fixture
def outcome() -> Outcome:
    dev, test = Evaluation(42.0, 0.1, -2.0, 0.2), Evaluation(40.0, 0.1, -2.0, 0.2)
    view = EncoderScores(dev, test, np.ones(3))
    curve = {
        "loss": np.array([3.0, 2.0, 1.0, 0.5], dtype=np.float32),
        "score": np.array([NAN, 41.0, NAN, 42.0], dtype=np.float32),
    }
    return Outcome(4, view, view, curve, {}, 1.0)


def test_the_file_holds_curves_scores_and_settings(
    tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="the extra tensorboard is not installed",
    )
    monkeypatch.chdir(tmp_path)
    assert track("a", 3, make_settings(steps=4, ema_decay=0.9), outcome) == ""
    read = events.EventAccumulator(str(tmp_path / "tensorboard" / "a" / "trial-00003"))
    read.Reload()
    found = {
        tag: [(event.step, event.value) for event in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }
    assert found == {
        "loss": [(1, 3.0), (2, 2.0), (3, 1.0), (4, 0.5)],
        "sts_dev": [(2, 41.0), (4, 42.0)],
        "final/sts_dev": [(4, 42.0)],
        "final/sts_test": [(4, 40.0)],
    }
    settings = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"ema_decay" in settings


def test_an_error_becomes_a_note(
    tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tensorboard").write_text("a file where the folder should be")
    note = track("a", 3, make_settings(), outcome)
    assert note.startswith("training curves not written: ")


def test_a_missing_package_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    require("tracking", "tensorboard", "json")
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MtdlabError, match=r"a needs .* tensorboard; .*'mtdlab\[tensorboard\]'"):
        require("a", "tensorboard", "json", "tensorboard")
