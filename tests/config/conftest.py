"""A study file written and read in one call."""

import cProfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mtdlab.config.reader import read_study
from mtdlab.config.study import StudySpec

Read = Callable[..., StudySpec]
AtMostCalls = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where `read` writes the file."""
    return tmp_path / "study.yaml"


@pytest.fixture
def read(path: Path) -> Read:
    """Write a text as a study file and read it, with overrides and perhaps one of its profiles."""

    def read(text: str, *overrides: str, profile: str | None = None) -> StudySpec:
        path.write_text(text, encoding="utf-8")
        return read_study(path, overrides, profile)

    return read


def settings_of(spec: StudySpec) -> list[Any]:
    """The settings of each configuration, with the first seed."""
    first = [unit for unit in spec.search_trials() if unit.seed == spec.seeds[0]]
    return [spec.settings(unit.parameters or {}, unit.seed) for unit in first]


@pytest.fixture
def at_most_calls() -> AtMostCalls:
    """Limits the function calls of a block: the same on every machine, unlike its duration."""

    @contextmanager
    def limited(most: int) -> Iterator[None]:
        # counts in C: a function of Python's own takes longer than what it counts
        profile = cProfile.Profile()
        with profile:
            yield
        calls = sum(entry.callcount for entry in profile.getstats())
        assert calls <= most, f"{calls:,} calls"

    return limited
