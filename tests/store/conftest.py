"""The tests of the store run on both kinds of database; training is replaced where one sweeps."""

from collections.abc import Iterator

import pytest

from mtdlab.trial import trainer
from mtdlab.trial.worker import open_in_process
from tests.postgresql import url
from tests.store.make_database import replacement_of_training

__all__ = ["url"]


@pytest.fixture
def no_training(no_inputs: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # noqa: ARG001
    """Trials are complete at once, with the results of the recorded database."""
    done = enumerate([("COMPLETE", "")] * 50, start=100)
    monkeypatch.setattr(trainer, "train_trial", replacement_of_training(done))
    yield
    open_in_process.cache_clear()
