"""A database of the test, and studies of short trials on the tiny encoder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from mtdlab.config import StudySpec, read_study
from mtdlab.sweep.worker import open_in_process

TRAINER = {
    "batch_size": 8,
    "queue_size": 16,
    "initial_queue_size": 4,
    "steps": 4,
    "evaluate_every": 2,
    "learning_rate": 5e-3,
    "precision": "float32",
}
TinyStudy = Callable[..., StudySpec]


@pytest.fixture(autouse=True)
def closed_studies() -> Iterator[None]:
    """What a test opened in this process is not open in the next."""
    yield
    open_in_process.cache_clear()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'studies.db'}"


@pytest.fixture
def tiny_study(
    tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path, tmp_path: Path
) -> TinyStudy:
    """Write `study.yaml` and read it: three levels with two seeds, unless keys say otherwise."""
    inputs = {"encoder": tiny_encoder, "corpus": tiny_corpus, "evaluation": tiny_pairs}

    def write(trainer: dict[str, Any] | None = None, **keys: Any) -> StudySpec:
        plain = {"search": {"ema_decay": [0.5, 0.75, 0.9]}, "seeds": [0, 1]}
        given = {name: str(path) for name, path in inputs.items()} | TRAINER | (trainer or {})
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump({"study": "kept", "trainer": given} | plain | keys))
        return read_study(path)

    return write
