"""Settings of a run short enough for a test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtdlab.spec import TrainerSettings

Settings = Callable[..., TrainerSettings]


@pytest.fixture
def settings_of(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> Settings:
    """Settings of a run of a second, but for what is given."""

    def settings(**changed: Any) -> TrainerSettings:
        values: dict[str, Any] = {
            "encoder": str(tiny_encoder), "corpus": str(tiny_corpus),
            "evaluation": str(tiny_pairs), "batch_size": 8, "steps": 10, "evaluate_every": 4,
            "learning_rate": 1e-3, "device": "cpu", "precision": "float32", "max_length": 16,
        }
        if changed.get("method") != "simcse":
            values |= {"queue_size": 20, "initial_queue_size": 5}
        return TrainerSettings(**values | changed)

    return settings
