"""A study file written and read in one call."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
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


@pytest.fixture
def at_most_calls() -> Callable[[int], AbstractContextManager[None]]:
    """Limits the function calls of a block: the same on every machine, unlike its duration."""

    @contextmanager
    def limited(most: int) -> Iterator[None]:
        calls = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)
        assert calls <= most, f"{calls:,} calls"

    return limited
