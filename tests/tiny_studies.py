"""A database of the test, and studies of short trials on the tiny encoder."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from stub_store import end_trial, new_store

from mtdlab.config.study import PlannedTrial, StudySpec
from mtdlab.store.claims import Claim, Result
from mtdlab.store.store import Store
from mtdlab.trial.worker import open_in_process
from tests.conftest import Written

TRAINER = {
    "batch_size": 8,
    "queue_size": 16,
    "initial_queue_size": 4,
    "steps": 4,
    "evaluate_every": 2,
    "learning_rate": 5e-3,
    "max_length": 16,
    "device": "cpu",
    "precision": "float32",
}
TinyStudy = Callable[..., StudySpec]


def present(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value is not None}


@pytest.fixture(autouse=True)
def closed_studies() -> Iterator[None]:
    """What a test opened in this process is not open in the next."""
    yield
    open_in_process.cache_clear()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'studies.db'}"


class Killed(BaseException):
    """The end of the process."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Of a study of two trials."""
    planned = (PlannedTrial("a", 0, {}), PlannedTrial("b", 0, {}))
    return new_store(f"sqlite:///{tmp_path / 'two.db'}", *planned, name="two")


def finished(store: Store, score: float) -> Claim:
    """The next trial, complete."""
    return end_trial(store, Result("COMPLETE", values={"score": score}, scores={"sts_dev": score}))


def describe_run(claim: Claim, score: float) -> str:
    """What the folder of the model of such a trial says of its run."""
    run = {"trial": claim.number, "seed": claim.seed, "scores": {"sts_dev": score}}
    return json.dumps(run)


@pytest.fixture
def tiny_study(
    written: Written, tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path
) -> TinyStudy:
    """Write `study.yaml` and read it: three levels with two seeds, unless keys say otherwise.

    A key with None is left out.
    """
    inputs = {"encoder": tiny_encoder, "corpus": tiny_corpus, "evaluation": tiny_pairs}
    plain = {"search": {"ema_decay": [0.5, 0.75, 0.9]}, "seeds": [0, 1]}

    def write(trainer: dict[str, Any] | None = None, **keys: Any) -> StudySpec:
        given = {name: str(path) for name, path in inputs.items()} | TRAINER | (trainer or {})
        study = {"study": "kept", "trainer": present(given)} | plain | keys
        return written(yaml.safe_dump(present(study)))

    return write
