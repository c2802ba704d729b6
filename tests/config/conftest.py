"""A study file written and read in one call."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mtdlab.config import StudySpec, read_study


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where `read` writes the file."""
    return tmp_path / "study.yaml"


@pytest.fixture
def read(path: Path) -> Callable[..., StudySpec]:
    """Write a text as a study file and read it, with overrides."""

    def read(text: str, *overrides: str) -> StudySpec:
        path.write_text(text, encoding="utf-8")
        return read_study(path, overrides)

    return read
