"""A study computes with one precision, whichever machines its sweeps run on."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from mtdlab import load_study
from mtdlab.errors import TrialError
from mtdlab.settings import TrainerSettings
from mtdlab.store.store import Store
from mtdlab.sweep import run as runs
from mtdlab.trial import trainer
from mtdlab.trial import worker as workers
from tests.conftest import Written

STUDY = """
study: small
trainer: {batch_size: 8, steps: 4, initial_queue_size: 0PRECISION}
search: {ema_decay: [0.5, 0.75]SEARCHED}
seeds: SEEDS
"""
pytestmark = pytest.mark.usefixtures("no_inputs")
OLD, NEW = {"avx512_bf16": False}, {"avx512_bf16": True}
Sweep = Callable[..., list[str]]


@pytest.fixture
def sweep(written: Written, url: str, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Runs the study on a processor with given features; returns the precisions trained with."""
    used: list[str] = []

    def prepared(settings: TrainerSettings) -> None:
        used.append(settings.precision)
        raise TrialError("not trained")

    def call(features: dict[str, bool], seeds: str, precision: str = "", searched: str = "") -> Any:
        used.clear()
        workers.open_in_process.cache_clear()
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: features)
        text = STUDY.replace("SEEDS", seeds).replace("PRECISION", precision)
        runs.sweep(written(text.replace("SEARCHED", searched)), url, runs.Execution(jobs=1))
        return list(used)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(trainer, "load_inputs", prepared)
    return call


def recorded(url: str) -> str | None:
    return Store(url, 1).study().precision


@pytest.mark.parametrize(
    ("first", "second", "precision", "other"),
    [
        (OLD, NEW, "float32", "bfloat16"),
        (NEW, OLD, "bfloat16", "float32"),
    ],
)
@pytest.mark.slow
def test_a_later_sweep_keeps_the_precision_that_auto_had_at_first(
    sweep: Sweep,
    url: str,
    capsys: pytest.CaptureFixture[str],
    first: dict[str, bool],
    second: dict[str, bool],
    precision: str,
    other: str,
) -> None:
    assert sweep(first, "[0]") == [precision] * 2
    assert "precision" not in capsys.readouterr().err
    assert sweep(second, "[0, 1]") == [precision] * 2
    message = f"precision {precision}, as in its earlier trials; auto would choose {other} on this"
    assert message in " ".join(capsys.readouterr().err.split())
    assert recorded(url) == precision
    # the trials record what the file says, so that trials of both machines compare as equal
    trials = load_study("small", url).trials
    assert trials["precision"].tolist() == ["auto"] * 4


@pytest.mark.slow
def test_a_precision_that_the_file_names_is_used_as_it_is(
    sweep: Sweep, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    named = ", precision: bfloat16"
    assert sweep(OLD, "[0]", named) == ["bfloat16"] * 2
    assert sweep(NEW, "[0, 1]", named) == ["bfloat16"] * 2
    assert recorded(url) is None
    assert "auto would choose" not in capsys.readouterr().err


def test_a_searched_precision_is_resolved_where_it_is_auto(sweep: Sweep, url: str) -> None:
    searched = ", precision: [auto, float32]"
    assert sweep(NEW, "[0]", searched=searched) == ["bfloat16", "float32"] * 2
    assert sweep(OLD, "[0, 1]", searched=searched) == ["bfloat16", "float32"] * 2
    assert recorded(url) == "bfloat16"
