"""Encoders of these tests compute in float32."""

from pathlib import Path

import pytest

from tests.conftest import WORDS
from tests.encoders.random_encoders import write_family


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the processor has bfloat16 instructions: results differ in the third digit."""
    monkeypatch.setattr("mtdlab.device._has_bfloat16", lambda _: False)


@pytest.fixture(scope="session")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random decoder, Qwen3."""
    return write_family(tmp_path_factory.mktemp("qwen3"), "qwen3", WORDS)
