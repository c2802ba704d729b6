"""The database of a test, studies of short trials on the tiny encoder, and stubs of trials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

from mtdlab.errors import TrialError
from mtdlab.settings import TrainerSettings
from mtdlab.store.claims import Result
from mtdlab.trial import trainer
from mtdlab.trial.results import ended_early
from tests.tiny_studies import closed_studies, store, tiny_study, url

__all__ = ["closed_studies", "store", "tiny_study", "url"]
Scored = Callable[[Callable[[TrainerSettings], float]], None]


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch, no_inputs: Path) -> Scored:  # noqa: ARG001
    """Sets the function that gives a trial's score in place of training; it may raise TrialError.

    The score is reported after half of the steps, as to a pruner.
    """

    def replace(function: Callable[[TrainerSettings], float]) -> None:
        def train(monitor: Any) -> tuple[Result, None]:
            try:
                value = function(monitor.settings)
                monitor.evaluated(2, value)
            except (TrialError, optuna.TrialPruned) as error:
                return ended_early(error, monitor), None
            values = {"score": value, "wall_seconds": 0.1}
            arrays = {"curve/loss": np.zeros(4, dtype=np.float32)}
            scores = {"sts_dev": value}
            return Result("COMPLETE", values=values, scores=scores, arrays=arrays), None

        monkeypatch.setattr(trainer, "train_trial", train)

    return replace
